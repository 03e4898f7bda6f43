// Two cooperative consumer warpgroups, 64 rows each, with the largest tile that registers permit:
// 128 x 256, twice the FLOP per K tile of B. The producer, now a warpgroup, gives its registers to
// the consumers (setmaxnreg), since 128 accumulators per thread leave no others. Cost: one block
// per SM, so nothing overlaps its epilogue.
#include <cstddef>
#include <cstdint>

#include "kernels/parts/multiply.cuh"
#include "kernels/parts/store.cuh"
#include "kernels/parts/wgmma_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_two_consumers {
namespace {

constexpr int kStages = 4, kConsumers = 2;  // consumers are warpgroups
constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;

template <typename Tile>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_two_consumers([[maybe_unused]] const __grid_constant__ WgmmaWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  Ring<Tile::kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kConsumerThreads / 32);
  __syncthreads();
  const auto tile = work.tiles.place(static_cast<int>(blockIdx.x));
  const int row = tile.row * Tile::kBM, column = tile.column * Tile::kBN;

  if (threadIdx.x >= kConsumerThreads) {
    dealloc_registers<kProducerRegisters>();
    if (threadIdx.x > kConsumerThreads) return;
    load_k_tiles<Tile>(ring, work, tile);
    return;
  }

  alloc_registers<kConsumerRegisters>();
  const int consumer = static_cast<int>(threadIdx.x) / 128;
  float acc[1][Tile::kAccumulators];  // of this consumer's 64 rows
  std::uint32_t before = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
    ring.wait_for_stage();
    wgmma_fence();
    Tile::issue_mmas(acc, ring.data(), consumer, k_tile > 0);
    wgmma_commit();
    wgmma_wait<1>();  // for the previous K tile
    if (k_tile > 0) release(before);
    before = ring.empty();
  }
  wgmma_wait_all(acc);
  store_by_threads<typename Tile::Output>(acc, work.c, work.m, work.n, row + 64 * consumer, column);
#endif
}

constexpr RungShape kShape{
    .rows = 64 * kConsumers, .columns = 256, .threads = kThreads, .stages = kStages};

const Registration registration(wgmma_rung<kShape>(
    [](auto tile) -> WgmmaKernel<WgmmaWork> { return wgmma_two_consumers<decltype(tile)>; },
    {
        .name = "WgmmaTwoConsumers",
        .idea = "Two cooperative consumer warpgroups share a tile of 128 x 256.",
        .source =
            "NVIDIA, CUTLASS 3, warp-specialized cooperative kernels; Andrew, fast.cu, kernel 5",
        .rung = 53,
    }));

}  // namespace
}  // namespace gemm::tensor::wgmma_two_consumers
