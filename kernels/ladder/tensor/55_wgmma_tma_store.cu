// An epilogue by TMA: C goes through shared memory (stmatrix) and is stored by TMA as whole lines,
// asynchronously. Before, each warp stored 16 bytes of eight rows at a time, half a sector each.
// Cost: shared memory for 64 x 128 of C per consumer, which is refilled once TMA has read it
// (store.cuh).
#include <cstddef>

#include "kernels/parts/multiply.cuh"
#include "kernels/parts/store.cuh"
#include "kernels/parts/wgmma_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_tma_store {
namespace {

constexpr int kStages = 4, kConsumers = 2;  // consumers are warpgroups
constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;
constexpr int kStagedColumns = 128;

template <typename Tile>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_tma_store([[maybe_unused]] const __grid_constant__ WgmmaWork work) {
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
    store_tile<typename Tile::Output, kStagedColumns>(acc, work, row, column, ring.end(), consumer);
  }
  finish_stores();
#endif
}

constexpr RungShape kShape{.rows = 64 * kConsumers,
                           .columns = 256,
                           .threads = kThreads,
                           .stages = kStages,
                           .group = 16,
                           .persistent = true,
                           .staging_bytes = kConsumers * staging_bytes(kStagedColumns)};

const Registration registration(wgmma_rung<kShape>(
    [](auto tile) -> WgmmaKernel<WgmmaWork> { return wgmma_tma_store<decltype(tile)>; },
    {
        .name = "WgmmaTmaStore",
        .idea = "Epilogue by TMA: C is stored in whole lines, asynchronously.",
        .source = "NVIDIA, PTX ISA, stmatrix and cp.async.bulk.tensor",
        .rung = 55,
    }));

}  // namespace
}  // namespace gemm::tensor::wgmma_tma_store
