// Warp specialization: a fifth warp is the producer and keeps a ring of stages full by TMA; the
// consumer warpgroup waits only for data. Each stage has two mbarriers: `full` completes when its
// bytes have arrived, `empty` when the four consumer warps have released it (ring.cuh). MMAs of a K
// tile are waited for after those of the next are issued, so that the tensor cores always have
// work. Two blocks per SM: one multiplies while the other stores its tile.
//
// The next bottleneck: the bandwidth of the L2 and of shared memory, with 64 FLOP per byte loaded.
#include <cstddef>
#include <cstdint>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_specialized {
namespace {

constexpr int kBM = 128, kBN = 128, kBK = 64;  // 64 steps of k are lines of 128 bytes
constexpr int kStages = 3, kBlocks = 2;        // 96 KiB, 128 accumulators per thread
constexpr int kConsumerThreads = 128, kThreads = kConsumerThreads + 32;
constexpr int kABytes = kBM * 128, kStageBytes = (kBM + kBN) * 128;

template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    wgmma_specialized([[maybe_unused]] const __grid_constant__ Work work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  Ring<kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kConsumerThreads / 32);
  __syncthreads();
  const auto place = work.tiles.place(static_cast<int>(blockIdx.x));
  const int row = place.row * kBM, column = place.column * kBN;

  if (threadIdx.x >= kConsumerThreads) {  // the producer
    if (threadIdx.x > kConsumerThreads) return;
    for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
      ring.begin_stage();
      tma_load(ring.data(), work.a_map, k_tile * kBK, row, ring.full());
      tma_load(ring.data() + kABytes, work.b_map, k_tile * kBK, column, ring.full());
    }
    return;
  }

  float acc[kBM / 64][kBN / 2];
  std::uint32_t before = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
    ring.wait_for_stage();
    wgmma_fence();
    multiply_k_tile<T>(acc, ring.data(), ring.data() + kABytes, k_tile > 0);
    wgmma_commit();
    wgmma_wait<1>();  // for the previous K tile
    if (k_tile > 0) release(before);
    before = ring.empty();
  }
  wgmma_wait_all(acc);
#pragma unroll
  for (int part = 0; part < kBM / 64; ++part)
    store_accumulators<T>(acc[part], work.c, work.m, work.n, row + 64 * part, column);
#endif
}

template <typename T>
Launch launch(const Problem& p, const Device&, const Operands& o) {
  const Tiles tiles(p, kBM, kBN);
  const int k_tiles = static_cast<int>(ceil_div(p.k, kBK));
  return launched(wgmma_specialized<T>,
                  {tiles.count(), kThreads, kStages * kStageBytes + kSwizzleAlignment},
                  {tiles, p.m, p.n, k_tiles, o.c, k_major_map<T>(o.a, p.m, p.k, kBM),
                   k_major_map<T>(o.b, p.n, p.k, kBN)});
}

const Registration registration(nt_rung(
    {
        .name = "WgmmaSpecialized",
        .idea = "Warp specialization: a producer warp fills a ring of stages, a warpgroup only "
                "multiplies.",
        .source = "NVIDIA, CUTLASS: warp-specialised kernels of compute capability 9.0",
        .rung = 52,
        .unsupported = needs_sm_90a(wgmma_specialized<__half>),
    },
    {kBM, kBN, 128, wgmma_bytes(kBM, kBN), Epilogue::pairs},
    {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}}));

}  // namespace
}  // namespace gemm::tensor::wgmma_specialized
