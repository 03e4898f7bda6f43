// The tensor cores of compute capability 9.0 at their simplest: a warpgroup computes a tile of 64 x
// 64. One thread loads the next K tiles of A and B by TMA; when they have arrived, four
// asynchronous wgmmas of 16 steps of k each are issued and waited for. wgmma reads both operands
// directly from shared memory, in the swizzle in which TMA wrote them: no fragment loads, no
// registers for operands, and one thread's instruction copies a whole K tile.
//
// The next bottleneck: bytes. A tile of 64 x 64 loads a byte for every 32 FLOP, from the L2 and
// from shared memory, and loads and MMAs do not overlap within a block; only other blocks on the SM
// keep the tensor cores busy meanwhile.
#include <cstddef>
#include <cstdint>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma {
namespace {

constexpr int kBM = 64, kBN = 64, kBK = 64;  // 64 steps of k are lines of 128 bytes
constexpr int kThreads = 128;
constexpr int kABytes = kBM * 128, kStageBytes = (kBM + kBN) * 128;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    wgmma([[maybe_unused]] const __grid_constant__ Work work) {
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
  float acc[kBM / 64][kBN / 2];  // of 64 rows, 64 columns
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
  store_accumulators<T>(acc[0], work.c, work.m, work.n, row, column);
#endif
}

template <typename T>
Launch launch(const Problem& p, const Device&, const Operands& o) {
  const Tiles tiles(p, kBM, kBN);
  const int k_tiles = static_cast<int>(ceil_div(p.k, kBK));
  return launched(wgmma<T>, {tiles.count(), kThreads},
                  {tiles, p.m, p.n, k_tiles, o.c, k_major_map<T>(o.a, p.m, p.k, kBM),
                   k_major_map<T>(o.b, p.n, p.k, kBN)});
}

const Registration registration(nt_rung(
    {
        .name = "Wgmma",
        .idea = "wgmma: a warpgroup multiplies directly from shared memory, which TMA fills.",
        .source = "NVIDIA, PTX ISA, asynchronous warpgroup-level matrix instructions",
        .rung = 50,
        .unsupported = needs_sm_90a(wgmma<__half>),
    },
    {kBM, kBN, 128, wgmma_bytes(kBM, kBN), Epilogue::pairs},
    {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}}));

}  // namespace
}  // namespace gemm::tensor::wgmma
