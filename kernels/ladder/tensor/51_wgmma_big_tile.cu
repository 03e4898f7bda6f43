// A larger tile: 128 x 128 instead of 64 x 64. The warpgroup computes it as two halves of 64 rows
// that share the K tile of B: twice the FLOP per byte loaded, and per byte of B that wgmma reads. A
// K tile is eight wgmmas of 64 x 128 x 16 instead of four of 64 x 64 x 16, so there are fewer waits
// and barriers as well. Cost: 128 accumulators per thread.
#include <cstddef>
#include <cstdint>

#include "kernels/parts/store.cuh"
#include "kernels/parts/wgmma_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_big_tile {
namespace {

constexpr int kThreads = 128;

template <typename Tile>
__global__ void __launch_bounds__(kThreads)
    wgmma_big_tile([[maybe_unused]] const __grid_constant__ WgmmaWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  __shared__ __align__(kSwizzleAlignment) std::byte stage_bytes[Tile::kStageBytes];
  __shared__ std::uint64_t full_barrier;
  const std::uint32_t stage = shared_address(stage_bytes), full = shared_address(&full_barrier);
  if (threadIdx.x == 0) {
    init_barrier(full, 1);
    fence_barrier_init();
  }
  __syncthreads();
  const auto tile = work.tiles.place(static_cast<int>(blockIdx.x));
  const int row = tile.row * Tile::kBM, column = tile.column * Tile::kBN;
  float acc[Tile::kBM / 64][Tile::kAccumulators];  // two halves, which share B
#pragma unroll 4
  for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile) {
    if (threadIdx.x == 0) {
      arrive_and_expect(full, Tile::kStageBytes);
      Tile::A::copy(stage, work.a_map, row, k_tile * Tile::kBK, full);
      Tile::B::copy(stage + Tile::A::kBytes, work.b_map, column, k_tile * Tile::kBK, full);
    }
    wait(full, k_tile % 2);
    wgmma_fence();
    Tile::issue_mmas(acc, stage, 0, k_tile > 0);
    wgmma_commit();
    wgmma_wait_all(acc);
    __syncthreads();  // the wgmmas of all four warps have read the K tiles
  }
  store_by_threads<typename Tile::Output>(acc, work.c, work.m, work.n, row, column);
#endif
}

constexpr RungShape kShape{.rows = 128, .columns = 128, .threads = kThreads, .stages = 0};

const Registration registration(wgmma_rung<kShape>(
    [](auto tile) -> WgmmaKernel<WgmmaWork> { return wgmma_big_tile<decltype(tile)>; },
    {
        .name = "WgmmaBigTile",
        .idea = "A tile of 128 x 128 per warpgroup: twice the FLOP per byte loaded.",
        .source = "NVIDIA, CUTLASS: the hierarchy of tiles",
        .rung = 51,
    }));

}  // namespace
}  // namespace gemm::tensor::wgmma_big_tile
