// Who copies does not multiply: a fifth warp keeps a ring of stages full, and the warpgroup waits
// for slices only, never for room. Each stage has two barriers: `full` ends a phase when its bytes
// are there, `empty` when the four warps are done with it. A slice's products are waited for once
// those of the next are enqueued, so that the tensor cores always have something to do. Two blocks
// share an SM: one multiplies while the other stores its tile.
#include <cstddef>
#include <cstdint>

#include "kernels/registry.hpp"
#include "kernels/tensor/wgmma/launch.cuh"
#include "kernels/tensor/wgmma/store.cuh"

namespace gemm::tensor {
namespace {

constexpr int kStages = 3, kBlocks = 2;  // 96 KiB and 128 sums a thread: two blocks an SM
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
    for (int slice = 0; slice < work.slices; ++slice, ring.next()) {
      ring.begin_stage();
      Tile::A::copy(ring.data(), work.a_map, row, slice * Tile::kBK, ring.full());
      Tile::B::copy(ring.data() + Tile::A::kBytes, work.b_map, column, slice * Tile::kBK,
                    ring.full());
    }
    return;
  }

  float sums[Tile::kBM / 64][Tile::kSums];
  std::uint32_t before = 0;
#pragma unroll 1
  for (int slice = 0; slice < work.slices; ++slice, ring.next()) {
    ring.wait_for_stage();
    fence_products();
    Tile::enqueue_products(sums, ring.data(), 0, slice > 0);
    commit_products();
    wait_for_groups<1>();  // those of the slice before
    if (slice > 0) release(before);
    before = ring.empty();
  }
  wait_for_products(sums);
  store_by_threads<typename Tile::Output>(sums, work.c, work.m, work.n, row, column);
#endif
}

constexpr RungShape kShape{.rows = 128, .columns = 128, .threads = kThreads, .stages = kStages};

const Registration registration(wgmma_rung<kShape>(
    [](auto tile) -> WgmmaKernel<WgmmaWork> { return wgmma_specialized<decltype(tile)>; },
    {
        .name = "WgmmaSpecialized",
        .idea = "A warp of its own keeps a ring of stages full while the warpgroup multiplies.",
        .source = "NVIDIA, CUTLASS: warp-specialised kernels of compute capability 9.0",
        .rung = 52,
    }));

}  // namespace
}  // namespace gemm::tensor
