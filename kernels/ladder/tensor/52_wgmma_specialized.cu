// Warp specialization: a fifth warp is the producer and keeps a ring of stages full by TMA; the
// consumer warpgroup waits only for data. Each stage has two mbarriers: `full` completes when its
// bytes have arrived, `empty` when the four consumer warps have released it. MMAs of a K tile are
// waited for after those of the next are issued, so that the tensor cores always have work. Two
// blocks per SM: one multiplies while the other stores its tile.
#include <cstddef>
#include <cstdint>

#include "kernels/parts/store.cuh"
#include "kernels/parts/wgmma_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_specialized {
namespace {

constexpr int kStages = 3, kBlocks = 2;  // 96 KiB, 128 accumulators per thread
constexpr int kConsumerThreads = 128, kThreads = kConsumerThreads + 32;

template <typename Tile>
__global__ void __launch_bounds__(kThreads, kBlocks)
    wgmma_specialized([[maybe_unused]] const __grid_constant__ WgmmaWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  Ring<Tile::kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kConsumerThreads / 32);
  __syncthreads();
  const auto tile = work.tiles.place(static_cast<int>(blockIdx.x));
  const int row = tile.row * Tile::kBM, column = tile.column * Tile::kBN;

  if (threadIdx.x >= kConsumerThreads) {  // the producer
    if (threadIdx.x > kConsumerThreads) return;
    for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
      ring.begin_stage();
      Tile::A::copy(ring.data(), work.a_map, row, k_tile * Tile::kBK, ring.full());
      Tile::B::copy(ring.data() + Tile::A::kBytes, work.b_map, column, k_tile * Tile::kBK,
                    ring.full());
    }
    return;
  }

  float acc[Tile::kBM / 64][Tile::kAccumulators];
  std::uint32_t before = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
    ring.wait_for_stage();
    wgmma_fence();
    Tile::issue_mmas(acc, ring.data(), 0, k_tile > 0);
    wgmma_commit();
    wgmma_wait<1>();  // for the previous K tile
    if (k_tile > 0) release(before);
    before = ring.empty();
  }
  wgmma_wait_all(acc);
  store_by_threads<typename Tile::Output>(acc, work.c, work.m, work.n, row, column);
#endif
}

constexpr RungShape kShape{.rows = 128, .columns = 128, .threads = kThreads, .stages = kStages};

const Registration registration(wgmma_rung<kShape>(
    [](auto tile) -> WgmmaKernel<WgmmaWork> { return wgmma_specialized<decltype(tile)>; },
    {
        .name = "WgmmaSpecialized",
        .idea = "Warp specialization: a producer warp fills a ring of stages, a warpgroup only "
                "multiplies.",
        .source = "NVIDIA, CUTLASS: warp-specialised kernels of compute capability 9.0",
        .rung = 52,
    }));

}  // namespace
}  // namespace gemm::tensor::wgmma_specialized
