// TMA multicast: two blocks of a cluster compute vertically adjacent tiles and need the same K
// tiles of B. Each loads half of one and multicasts it to both: a third less L2 traffic. Cost: the
// blocks run in lockstep, since a stage is empty only when the consumers of both blocks have
// released it to both producers.
//
// The next bottleneck: the epilogue again. Both consumers store at the same time, and the tensor
// cores wait until the first MMAs of the next tile.
#include <cstddef>
#include <cstdint>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_multicast {
namespace {

constexpr int kBM = 128, kBN = 256, kBK = 64;  // 64 steps of k are lines of 128 bytes
constexpr int kStages = 4, kConsumers = 2;     // consumers are warpgroups
constexpr int kCluster = 2;                    // blocks, one above the other
constexpr int kGroup = 8;                      // rows of clusters of tiles
constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;
constexpr int kABytes = kBM * 128, kStageBytes = (kBM + kBN) * 128;

// The epilogue stages 64 x 128 of C for each consumer.
constexpr int kStaged = 128;
constexpr int kSharedBytes =
    kStages * kStageBytes + kConsumers * staging_bytes(kStaged) + kSwizzleAlignment;

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_multicast([[maybe_unused]] const __grid_constant__ Work work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  Ring<kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kCluster * kConsumerThreads / 32);
  sync_cluster();
  const int rank = rank_in_cluster();
  const int first = static_cast<int>(blockIdx.x) / kCluster,
            clusters = static_cast<int>(gridDim.x) / kCluster;

  if (threadIdx.x >= kConsumerThreads) {
    dealloc_registers<40>();  // of 168, which 384 threads have at first
    if (threadIdx.x > kConsumerThreads) return;
    constexpr int kPart = kBN / kCluster;  // columns of B that this block loads, for all
    for (int index = first; index < work.tiles.count(); index += clusters) {
      const auto place = work.tiles.place(index);
      const int row = (place.row * kCluster + rank) * kBM, column = place.column * kBN;
      for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
        ring.begin_stage();
        tma_load(ring.data(), work.a_map, k_tile * kBK, row, ring.full());
        tma_load_multicast((1 << kCluster) - 1, ring.data() + kABytes + rank * kPart * 128,
                           work.b_map, k_tile * kBK, column + rank * kPart, ring.full());
      }
    }
    ring.drain();
    return;
  }

  alloc_registers<232>();
  const int consumer = static_cast<int>(threadIdx.x) / 128;
  const int offset = consumer * 64 * 128;  // of its 64 rows in a K tile of A
  const std::uint32_t staging = ring.end() + consumer * staging_bytes(kStaged);
  float acc[1][kBN / 2];
  for (int index = first; index < work.tiles.count(); index += clusters) {
    std::uint32_t before = 0;
#pragma unroll 1
    for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
      ring.wait_for_stage();
      wgmma_fence();
      multiply_k_tile<T>(acc, ring.data() + offset, ring.data() + kABytes, k_tile > 0);
      wgmma_commit();
      wgmma_wait<1>();  // for the previous K tile
      if (k_tile > 0) release<kCluster>(before);
      before = ring.empty();
    }
    wgmma_wait_all(acc);
    release<kCluster>(before);
    const auto place = work.tiles.place(index);
    const int row = (place.row * kCluster + rank) * kBM + 64 * consumer,
              column = place.column * kBN;
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
  const Tiles tiles(p, kCluster * kBM, kBN, kGroup);
  const auto c_map = p.n % 8 != 0 ? CUtensorMap{}
                                  : tensor_map(static_cast<T*>(o.c), p.m, p.n, p.n, 64, 64,
                                               CU_TENSOR_MAP_SWIZZLE_128B);
  const int k_tiles = static_cast<int>(ceil_div(p.k, kBK));
  return launched(wgmma_multicast<T>,
                  {blocks_at_once(tiles, device, kCluster), kThreads, kSharedBytes, kCluster},
                  {tiles, p.m, p.n, k_tiles, o.c, k_major_map<T>(o.a, p.m, p.k, kBM),
                   k_major_map<T>(o.b, p.n, p.k, kBN / kCluster), c_map});
}

const Registration registration(nt_rung(
    {
        .name = "WgmmaMulticast",
        .idea = "TMA multicast: clusters of two blocks load each K tile of B once.",
        .source = "NVIDIA, CUTLASS 3, TMA multicast; Andrew, fast.cu, kernel 8",
        .rung = 56,
        .unsupported = needs_sm_90a(wgmma_multicast<__half>),
    },
    {kBM, kBN, 128, wgmma_bytes(kBM, kBN), Epilogue::tma, kCluster},
    {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}}));

}  // namespace
}  // namespace gemm::tensor::wgmma_multicast
