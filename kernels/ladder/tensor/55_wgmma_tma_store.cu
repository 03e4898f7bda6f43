// An epilogue by TMA: C goes through shared memory (stmatrix) and is stored by TMA as whole lines,
// asynchronously. Before, each warp stored 16 bytes of eight rows at a time, half a sector each.
// Cost: shared memory for 64 x 128 of C per consumer, which is refilled once TMA has read it. Where
// rows of C do not begin at multiples of 16 bytes, threads store it as before.
//
// The next bottleneck: power and the L2, from which each block loads its own copy of A and B.
#include <cstddef>
#include <cstdint>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_tma_store {
namespace {

constexpr int kBM = 128, kBN = 256, kBK = 64;  // 64 steps of k are lines of 128 bytes
constexpr int kStages = 4, kConsumers = 2;     // consumers are warpgroups
constexpr int kGroup = 16;                     // rows of tiles
constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;
constexpr int kABytes = kBM * 128, kStageBytes = (kBM + kBN) * 128;

// The epilogue stages 64 x 128 of C for each consumer.
constexpr int kStaged = 128;
constexpr int kSharedBytes =
    kStages * kStageBytes + kConsumers * staging_bytes(kStaged) + kSwizzleAlignment;

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_tma_store([[maybe_unused]] const __grid_constant__ Work work) {
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
  const std::uint32_t staging = ring.end() + consumer * staging_bytes(kStaged);
  float acc[1][kBN / 2];
  for (int index = first; index < work.tiles.count(); index += blocks) {
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
    release(before);
    const auto place = work.tiles.place(index);
    const int row = place.row * kBM + 64 * consumer, column = place.column * kBN;
    if (work.stores_by_tma())
      store_by_tma<T, kStaged>(acc[0], work.c_map, row, column, staging, consumer);
    else
      store_accumulators<T>(acc[0], work.c, work.m, work.n, row, column);
  }
  if (threadIdx.x % 128 == 0) tma_store_wait_read();  // shared memory is freed at the end
#endif
}

template <typename T>
Launch launch(const Problem& p, const Device& device, const Operands& o) {
  const Tiles tiles(p, kBM, kBN, kGroup);
  const auto c_map = p.n % 8 != 0 ? CUtensorMap{}
                                  : tensor_map(static_cast<T*>(o.c), p.m, p.n, p.n, 64, 64,
                                               CU_TENSOR_MAP_SWIZZLE_128B);
  const int k_tiles = static_cast<int>(ceil_div(p.k, kBK));
  return launched(wgmma_tma_store<T>, {blocks_at_once(tiles, device), kThreads, kSharedBytes},
                  {tiles, p.m, p.n, k_tiles, o.c, k_major_map<T>(o.a, p.m, p.k, kBM),
                   k_major_map<T>(o.b, p.n, p.k, kBN), c_map});
}

const Registration registration(nt_rung(
    {
        .name = "WgmmaTmaStore",
        .idea = "Epilogue by TMA: C is stored in whole lines, asynchronously.",
        .source = "NVIDIA, PTX ISA, stmatrix and cp.async.bulk.tensor",
        .rung = 55,
        .unsupported = needs_sm_90a(wgmma_tma_store<__half>),
    },
    {kBM, kBN, 128, wgmma_bytes(kBM, kBN), Epilogue::tma},
    {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}}));

}  // namespace
}  // namespace gemm::tensor::wgmma_tma_store
