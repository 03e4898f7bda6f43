// A larger tile: 128 x 128 instead of 64 x 64. The warpgroup computes it as two halves of 64 rows
// that share the K tile of B: twice the FLOP per byte loaded, and per byte of B that wgmma reads. A
// K tile is eight wgmmas of 64 x 128 x 16 instead of four of 64 x 64 x 16, so there are fewer waits
// and barriers as well. Cost: 128 accumulators per thread.
//
// The next bottleneck: latency. The warpgroup loads, waits, multiplies, waits; with three blocks on
// an SM at most, the tensor cores are often idle.
#include <cstddef>
#include <cstdint>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_big_tile {
namespace {

constexpr int kBM = 128, kBN = 128, kBK = 64;  // 64 steps of k are lines of 128 bytes
constexpr int kThreads = 128;
constexpr int kABytes = kBM * 128, kStageBytes = (kBM + kBN) * 128;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    wgmma_big_tile([[maybe_unused]] const __grid_constant__ Work work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  __shared__ __align__(kSwizzleAlignment) std::byte stage[kStageBytes];
  __shared__ std::uint64_t full_barrier;
  const std::uint32_t a = shared_address(stage), b = a + kABytes;
  const std::uint32_t full = shared_address(&full_barrier);
  if (threadIdx.x == 0) {
    init_barrier(full, 1);
    fence_barrier_init();
  }
  __syncthreads();
  const auto place = work.tiles.place(static_cast<int>(blockIdx.x));
  const int row = place.row * kBM, column = place.column * kBN;
  float acc[kBM / 64][kBN / 2];  // two halves, which share B
#pragma unroll 4
  for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile) {
    if (threadIdx.x == 0) {
      arrive_and_expect(full, kStageBytes);
      tma_load(a, work.a_map, k_tile * kBK, row, full);
      tma_load(b, work.b_map, k_tile * kBK, column, full);
    }
    wait(full, k_tile % 2);
    wgmma_fence();
    multiply_k_tile<T>(acc, a, b, k_tile > 0);
    wgmma_commit();
    wgmma_wait_all(acc);
    __syncthreads();  // the wgmmas of all four warps have read the K tile
  }
#pragma unroll
  for (int part = 0; part < kBM / 64; ++part)
    store_accumulators<T>(acc[part], work.c, work.m, work.n, row + 64 * part, column);
#endif
}

template <typename T>
Launch launch(const Problem& p, const Device&, const Operands& o) {
  const Tiles tiles(p, kBM, kBN);
  const int k_tiles = static_cast<int>(ceil_div(p.k, kBK));
  return launched(wgmma_big_tile<T>, {tiles.count(), kThreads},
                  {tiles, p.m, p.n, k_tiles, o.c, k_major_map<T>(o.a, p.m, p.k, kBM),
                   k_major_map<T>(o.b, p.n, p.k, kBN)});
}

const Registration registration(nt_rung(
    {
        .name = "WgmmaBigTile",
        .idea = "A tile of 128 x 128 per warpgroup: twice the FLOP per byte loaded.",
        .source = "NVIDIA, CUTLASS: the hierarchy of tiles",
        .rung = 51,
        .unsupported = needs_sm_90a(wgmma_big_tile<__half>),
    },
    {kBM, kBN, 128, wgmma_bytes(kBM, kBN), Epilogue::pairs},
    {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}}));

}  // namespace
}  // namespace gemm::tensor::wgmma_big_tile
