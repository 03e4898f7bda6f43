// A persistent kernel: one block per SM computes many tiles, so that the producer loads the next
// tile's stages during the epilogue of the last one, and blocks are launched once. Tiles that are
// computed at the same time form a square (rasterization), whose rows of A and columns of B stay in
// the L2.
#include <cstddef>

#include "kernels/parts/multiply.cuh"
#include "kernels/parts/store.cuh"
#include "kernels/parts/wgmma_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_persistent {
namespace {

constexpr int kStages = 4, kConsumers = 2;  // consumers are warpgroups
constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;

template <typename Tile>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_persistent([[maybe_unused]] const __grid_constant__ WgmmaWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  Ring<Tile::kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kConsumerThreads / 32);
  __syncthreads();

  if (threadIdx.x >= kConsumerThreads) {
    dealloc_registers<kProducerRegisters>();
    if (threadIdx.x > kConsumerThreads) return;
    for (int index = static_cast<int>(blockIdx.x); index < work.tiles.count(); index += gridDim.x) {
      const auto tile = work.tiles.place(index);
      load_k_tiles<Tile>(ring, work, tile);
    }
    return;
  }

  alloc_registers<kConsumerRegisters>();
  const int consumer = static_cast<int>(threadIdx.x) / 128;
  float acc[1][Tile::kAccumulators];
  for (int index = static_cast<int>(blockIdx.x); index < work.tiles.count(); index += gridDim.x) {
    multiply_k_tiles<Tile>(ring, work.k_tiles, consumer, acc);
    const auto tile = work.tiles.place(index);
    const int row = tile.row * Tile::kBM + 64 * consumer, column = tile.column * Tile::kBN;
    store_by_threads<typename Tile::Output>(acc, work.c, work.m, work.n, row, column);
  }
#endif
}

constexpr RungShape kShape{.rows = 64 * kConsumers,
                           .columns = 256,
                           .threads = kThreads,
                           .stages = kStages,
                           .group = 16,
                           .persistent = true};

const Registration registration(wgmma_rung<kShape>(
    [](auto tile) -> WgmmaKernel<WgmmaWork> { return wgmma_persistent<decltype(tile)>; },
    {
        .name = "WgmmaPersistent",
        .idea =
            "A persistent kernel with rasterization: one block per SM, groups of 16 rows of tiles.",
        .source = "NVIDIA, CUTLASS 3, persistent scheduler with rasterization",
        .rung = 54,
    }));

}  // namespace
}  // namespace gemm::tensor::wgmma_persistent
