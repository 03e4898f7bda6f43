// The tensor cores of compute capability 9.0 as simply as they can be used: a warpgroup computes a
// tile of 64 x 64. One thread has TMA copy the next K tiles of A and B; when they are there, four
// products of 16 steps of k each are enqueued and waited for. Neither fragments nor registers are
// loaded: wgmma reads both operands from shared memory, in either direction.
//
// Copies and products take turns; only other blocks on the SM keep the tensor cores busy meanwhile.
#include <cstddef>
#include <cstdint>

#include "kernels/registry.hpp"
#include "kernels/tensor/wgmma/launch.cuh"
#include "kernels/tensor/wgmma/store.cuh"

namespace gemm::tensor {
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
    Tile::enqueue_mmas(acc, stage, 0, k_tile > 0);
    wgmma_commit();
    wgmma_wait_all(acc);
    __syncthreads();  // the products of all four warps have read the K tiles
  }
  store_by_threads<typename Tile::Output>(acc, work.c, work.m, work.n, row, column);
#endif
}

constexpr RungShape kShape{.rows = 64, .columns = 64, .threads = kThreads, .stages = 0};

const Registration registration(wgmma_rung<kShape>(
    [](auto tile) -> WgmmaKernel<WgmmaWork> { return wgmma<decltype(tile)>; },
    {
        .name = "Wgmma",
        .idea =
            "A warpgroup multiplies straight out of shared memory, which the copy engine fills.",
        .source = "NVIDIA, PTX ISA, asynchronous warpgroup-level matrix instructions",
        .rung = 50,
    }));

}  // namespace
}  // namespace gemm::tensor
