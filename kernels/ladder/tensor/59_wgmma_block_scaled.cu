// FP8 with a factor for each block of A and B. Tensor cores accumulate FP8 with 14 bits, so that a
// consumer adds their sum of 128 products to FP32 accumulators anyway (promotion): where it does,
// it multiplies by the factors of the blocks. The pipeline and the epilogue are those of
// WgmmaTmaStore.
//
// A tile is 128 columns wide, so that each K tile has one factor of B for all of it, and a thread
// needs those of its two rows of A. It loads them a K tile ahead, and the producer brings them into
// the L2 before (block_factors.cuh). The sum of a
// K tile must be complete before it is scaled: a consumer waits for its MMAs, and the other one
// keeps the tensor cores busy meanwhile. Cost: second accumulators, so that tiles are smaller.
//
// The next bottleneck: few tiles. With few rows of A most SMs stay idle.
#include <cuda_fp8.h>

#include <cstddef>
#include <cstdint>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/parts/block_factors.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/parts/wgmma_sizes.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_block_scaled {
namespace {

using Element = __nv_fp8_e4m3;
using Output = __nv_bfloat16;

constexpr int kBM = 128, kBN = 128, kBK = 128;  // 128 steps of k are lines of 128 bytes
constexpr int kStages = 6, kConsumers = 2;      // consumers are warpgroups
constexpr int kGroup = 16;                      // rows of tiles
constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;
constexpr int kABytes = kBM * 128, kStageBytes = (kBM + kBN) * 128;
static_assert(kBN == kScaleBlock && kBK == kScaleBlock);

constexpr int kSharedBytes =
    kStages * kStageBytes + kConsumers * staging_bytes(kBN) + kSwizzleAlignment;

struct ScaledWork : Work {
  const float *a_scales, *b_scales;
};

// partial = A * B for 64 rows of A and a K tile, in MMAs of 32 steps of k.
__device__ void multiply_block(float (&partial)[kBN / 2], std::uint32_t a, std::uint32_t b) {
#pragma unroll
  for (int step = 0; step < kBK / 32; ++step)
    multiply<Element, false, false>(partial, k_major_descriptor(a + 32 * step),
                                    k_major_descriptor(b + 32 * step), step > 0);
}

__global__ void __launch_bounds__(kThreads, 1)
    wgmma_block_scaled([[maybe_unused]] const __grid_constant__ ScaledWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  Ring<kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kConsumerThreads / 32);
  __syncthreads();
  const int first = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);

  if (threadIdx.x >= kConsumerThreads) {
    dealloc_registers<40>();  // of 168, which 384 threads have at first
    if (threadIdx.x > kConsumerThreads) return;
    for (int index = first; index < work.tiles.count(); index += blocks) {
      const auto place = work.tiles.place(index);
      const int row = place.row * kBM, column = place.column * kBN;
      for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
        prefetch_factors(work.a_scales, work.b_scales, work.m, work.k_tiles, row, kBM, column,
                         k_tile, k_tile == 0);
        ring.begin_stage();
        tma_load(ring.data(), work.a_map, k_tile * kBK, row, ring.full());
        tma_load(ring.data() + kABytes, work.b_map, k_tile * kBK, column, ring.full());
      }
    }
    return;
  }

  alloc_registers<232>();
  const int consumer = static_cast<int>(threadIdx.x) / 128;
  const int offset = consumer * 64 * 128;  // of its 64 rows in a K tile of A
  const std::uint32_t staging = ring.end() + consumer * staging_bytes(kBN);
  float acc[kBN / 2], partial[1][kBN / 2], factors[1][2];
  for (int index = first; index < work.tiles.count(); index += blocks) {
    const auto place = work.tiles.place(index);
    const int row = place.row * kBM + 64 * consumer, column = place.column * kBN;
    BlockFactors<1> of_blocks(work.a_scales, work.b_scales, work.m, work.k_tiles, row, column, 0);
#pragma unroll
    for (int i = 0; i < kBN / 2; ++i) acc[i] = 0;
#pragma unroll 1
    for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
      ring.wait_for_stage();
      wgmma_fence();
      multiply_block(partial[0], ring.data() + offset, ring.data() + kABytes);
      wgmma_commit();
      wgmma_wait_all(partial);
      release(ring.empty());
      of_blocks.next(factors, k_tile + 1 < work.k_tiles);
      add_scaled(acc, partial[0], factors[0]);
    }
    if (work.stores_by_tma())
      store_by_tma<Output, kBN>(acc, work.c_map, row, column, staging, consumer);
    else
      store_accumulators<Output>(acc, work.c, work.m, work.n, row, column);
  }
  if (threadIdx.x % 128 == 0) tma_store_wait_read();  // shared memory is freed at the end
#endif
}

Launch launch(const Problem& p, const Device& device, const Operands& o) {
  const Tiles tiles(p, kBM, kBN, kGroup);
  const auto c_map = p.n % 8 != 0 ? CUtensorMap{}
                                  : tensor_map(static_cast<Output*>(o.c), p.m, p.n, p.n, 64, 64,
                                               CU_TENSOR_MAP_SWIZZLE_128B);
  const int k_tiles = static_cast<int>(ceil_div(p.k, kBK));
  const Work work{tiles,
                  p.m,
                  p.n,
                  k_tiles,
                  o.c,
                  k_major_map<Element>(o.a, p.m, p.k, kBM),
                  k_major_map<Element>(o.b, p.n, p.k, kBN),
                  c_map};
  return launched(wgmma_block_scaled, {blocks_at_once(tiles, device), kThreads, kSharedBytes},
                  ScaledWork{work, o.a_scales, o.b_scales});
}

const Registration registration(nt_rung(
    {
        .name = "WgmmaBlockScaled",
        .idea = "FP8 with a factor for each block: sums of 128 products are scaled as they are "
                "promoted.",
        .source = "DeepSeek-AI, DeepGEMM; DeepSeek-V3 Technical Report (2024), section 3.3.2",
        .rung = 59,
        .unsupported = needs_sm_90a(wgmma_block_scaled),
    },
    {kBM, kBN, 128, wgmma_bytes(kBM, kBN), Epilogue::tma}, {{Precision::e4m3block, launch}}));

}  // namespace
}  // namespace gemm::tensor::wgmma_block_scaled
