// The ping-pong schedule: each of the two consumer warpgroups has its own tile, 128 x 128; one runs
// its epilogue while the other issues MMAs, so that the tensor cores never wait for a store. In the
// cooperative schedule before, both stored at the same time. Cost: a smaller tile, with more bytes
// per FLOP.
//
// The ring holds the K tiles of one tile after another. A consumer skips those of the other, and
// waits for its first one only once the other has received all of its own, since an mbarrier
// distinguishes just two phases. Two named barriers keep that order, as CUTLASS's
// OrderedSequenceBarrier does.
//
// The next bottleneck: the last wave of tiles, which leaves SMs idle at most sizes, and power. The
// kernels of kernels/best cut tiles along k (stream-K), and choose tile and schedule by a trial.
#include <cstddef>
#include <cstdint>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_ping_pong {
namespace {

constexpr int kBM = 128, kBN = 128, kBK = 64;  // 64 steps of k are lines of 128 bytes
constexpr int kStages = 6, kConsumers = 2;     // consumers are warpgroups
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
    wgmma_ping_pong([[maybe_unused]] const __grid_constant__ Work work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  Ring<kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kCluster * 128 / 32);
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
  const std::uint32_t staging = ring.end() + consumer * staging_bytes(kStaged);
  if (consumer == 1) ring.skip(work.k_tiles);
  float acc[kBM / 64][kBN / 2];
  for (int index = first + consumer * clusters; index < work.tiles.count();
       index += kConsumers * clusters) {
    // Named barriers 4 and 5 keep the order of the consumers.
    if (index > first) asm volatile("bar.sync %0, 256;" ::"r"(4 + consumer) : "memory");
    std::uint32_t before = 0;
#pragma unroll 1
    for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
      ring.wait_for_stage();
      wgmma_fence();
      multiply_k_tile<T>(acc, ring.data(), ring.data() + kABytes, k_tile > 0);
      wgmma_commit();
      wgmma_wait<1>();  // for the previous K tile
      if (k_tile > 0) release<kCluster>(before);
      before = ring.empty();
    }
    if (index + clusters < work.tiles.count())
      asm volatile("bar.arrive %0, 256;" ::"r"(5 - consumer) : "memory");
    wgmma_wait_all(acc);
    release<kCluster>(before);
    ring.skip(work.k_tiles);
    const auto place = work.tiles.place(index);
    const int row = (place.row * kCluster + rank) * kBM, column = place.column * kBN;
#pragma unroll
    for (int part = 0; part < kBM / 64; ++part) {
      if (work.stores_by_tma())
        store_by_tma<T, kStaged>(acc[part], work.c_map, row + 64 * part, column, staging, consumer);
      else
        store_accumulators<T>(acc[part], work.c, work.m, work.n, row + 64 * part, column);
    }
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
  return launched(wgmma_ping_pong<T>,
                  {blocks_at_once(tiles, device, kCluster), kThreads, kSharedBytes, kCluster},
                  {tiles, p.m, p.n, k_tiles, o.c, k_major_map<T>(o.a, p.m, p.k, kBM),
                   k_major_map<T>(o.b, p.n, p.k, kBN / kCluster), c_map});
}

const Registration registration(nt_rung(
    {
        .name = "WgmmaPingPong",
        .idea = "The ping-pong schedule: one warpgroup stores its tile while the other multiplies.",
        .source = "NVIDIA, CUTLASS 3, warp-specialized ping-pong kernels",
        .rung = 57,
        .unsupported = needs_sm_90a(wgmma_ping_pong<__half>),
    },
    {kBM, kBN, 128, wgmma_bytes(kBM, kBN), Epilogue::tma, kCluster},
    {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}}));

}  // namespace
}  // namespace gemm::tensor::wgmma_ping_pong
