// The tensor cores of compute capability 9.0 at their simplest: a warpgroup computes a tile of 64 x
// 64. One thread loads the next K tiles of A and B by TMA; when they have arrived, four
// asynchronous wgmmas of 16 steps of k each are issued and waited for. wgmma reads both operands
// directly from shared memory, K-major or MN-major: no fragment loads, no registers for operands.
//
// Cost: loads and MMAs do not overlap within a block; only other blocks on the SM keep the tensor
// cores busy meanwhile.
#include <cstddef>
#include <cstdint>

#include "kernels/parts/store.cuh"
#include "kernels/parts/wgmma_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma {
namespace {

constexpr int kThreads = 128;

template <typename Tile>
__global__ void __launch_bounds__(kThreads)
    wgmma([[maybe_unused]] const __grid_constant__ WgmmaWork work) {
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
  float acc[1][Tile::kAccumulators];
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

constexpr RungShape kShape{.rows = 64, .columns = 64, .threads = kThreads, .stages = 0};

const Registration registration(wgmma_rung<kShape>(
    [](auto tile) -> WgmmaKernel<WgmmaWork> { return wgmma<decltype(tile)>; },
    {
        .name = "Wgmma",
        .idea = "wgmma: a warpgroup multiplies directly from shared memory, which TMA fills.",
        .source = "NVIDIA, PTX ISA, asynchronous warpgroup-level matrix instructions",
        .rung = 50,
    }));

}  // namespace
}  // namespace gemm::tensor::wgmma
