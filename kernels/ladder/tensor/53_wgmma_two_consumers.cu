// Two cooperative consumer warpgroups, 64 rows each, with the largest tile that registers permit:
// 128 x 256, twice the FLOP per K tile of B. The producer, now a warpgroup, gives its registers to
// the consumers (setmaxnreg), since 128 accumulators per thread leave no others. Cost: one block
// per SM, so nothing overlaps its epilogue.
//
// The next bottleneck: the ends of tiles. While a block stores its tile and the next one starts,
// its SM multiplies nothing.
#include <cstddef>
#include <cstdint>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_two_consumers {
namespace {

constexpr int kBM = 128, kBN = 256, kBK = 64;  // 64 steps of k are lines of 128 bytes
constexpr int kStages = 4, kConsumers = 2;     // consumers are warpgroups
constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;
constexpr int kABytes = kBM * 128, kStageBytes = (kBM + kBN) * 128;

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_two_consumers([[maybe_unused]] const __grid_constant__ Work work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  Ring<kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kConsumerThreads / 32);
  __syncthreads();
  const auto place = work.tiles.place(static_cast<int>(blockIdx.x));
  const int row = place.row * kBM, column = place.column * kBN;

  if (threadIdx.x >= kConsumerThreads) {
    dealloc_registers<40>();  // of 168, which 384 threads have at first
    if (threadIdx.x > kConsumerThreads) return;
    for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
      ring.begin_stage();
      tma_load(ring.data(), work.a_map, k_tile * kBK, row, ring.full());
      tma_load(ring.data() + kABytes, work.b_map, k_tile * kBK, column, ring.full());
    }
    return;
  }

  alloc_registers<232>();
  const int consumer = static_cast<int>(threadIdx.x) / 128;
  const int offset = consumer * 64 * 128;  // of its 64 rows in a K tile of A
  float acc[1][kBN / 2];
  std::uint32_t before = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
    ring.wait_for_stage();
    wgmma_fence();
    multiply_k_tile<T>(acc, ring.data() + offset, ring.data() + kABytes, k_tile > 0);
    wgmma_commit();
    wgmma_wait<1>();  // for the previous K tile
    if (k_tile > 0) release(before);
    before = ring.empty();
  }
  wgmma_wait_all(acc);
  store_accumulators<T>(acc[0], work.c, work.m, work.n, row + 64 * consumer, column);
#endif
}

template <typename T>
Launch launch(const Problem& p, const Device&, const Operands& o) {
  const Tiles tiles(p, kBM, kBN);
  const int k_tiles = static_cast<int>(ceil_div(p.k, kBK));
  return launched(wgmma_two_consumers<T>,
                  {tiles.count(), kThreads, kStages * kStageBytes + kSwizzleAlignment},
                  {tiles, p.m, p.n, k_tiles, o.c, k_major_map<T>(o.a, p.m, p.k, kBM),
                   k_major_map<T>(o.b, p.n, p.k, kBN)});
}

const Registration registration(nt_rung(
    {
        .name = "WgmmaTwoConsumers",
        .idea = "Two cooperative consumer warpgroups share a tile of 128 x 256.",
        .source =
            "NVIDIA, CUTLASS 3, warp-specialized cooperative kernels; Andrew, fast.cu, kernel 5",
        .rung = 53,
        .unsupported = needs_sm_90a(wgmma_two_consumers<__half>),
    },
    {kBM, kBN, 128, wgmma_bytes(kBM, kBN), Epilogue::pairs},
    {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}}));

}  // namespace
}  // namespace gemm::tensor::wgmma_two_consumers
