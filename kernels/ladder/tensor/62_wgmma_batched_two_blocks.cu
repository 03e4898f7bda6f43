// Two blocks on an SM, with tiles of half the width: while one stores its tile, or waits for its
// first K tiles, the tensor cores compute the other's. Products of a small k, of which a batch
// often consists, spend as much time at the ends of a tile as within it.
//
// A block computes one tile and ends, so that C is staged where the K tiles were. The producer is
// one warp: a warpgroup would leave the consumers too few registers.
//
// The next bottleneck: the L2. A tile of 128 x 128 loads a third more for each product than one of
// 128 x 256.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_batched_two_blocks {
namespace {

constexpr int kBM = 128, kBN = 128, kBK = 64;  // 64 steps of k are lines of 128 bytes
constexpr int kStages = 3, kConsumers = 2;     // consumers are warpgroups
constexpr int kGroup = 16;                     // rows of tiles
constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 32;
constexpr int kABytes = kBM * 128, kStageBytes = (kBM + kBN) * 128;
constexpr int kSharedBytes = kStages * kStageBytes + kSwizzleAlignment;
constexpr int kStoredRows = 64;  // by TMA, of each consumer
static_assert(kConsumers * staging_bytes(kBN) <= kStages * kStageBytes);

// Tiles, m and n are of one product, the tensor maps of all.
struct BatchedWork : Work {
  bool by_tma;
};

// Both consumers have read the last K tile.
__device__ void sync_consumers() {
  asm volatile("bar.sync %0, %1;" ::"n"(kConsumers + 1), "n"(kConsumerThreads) : "memory");
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 2)
    wgmma_batched_two_blocks([[maybe_unused]] const __grid_constant__ BatchedWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  let_next_launch_begin();
  Ring<kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kConsumerThreads / 32);
  if (threadIdx.x == kConsumerThreads) prefetch_maps(work, work.by_tma);
  __syncthreads();
  const int which = static_cast<int>(blockIdx.x) / work.tiles.count();
  const auto tile = work.tiles.place(static_cast<int>(blockIdx.x) - which * work.tiles.count());
  const int m = static_cast<int>(work.m), n = static_cast<int>(work.n);
  const int first_row = tile.row * kBM, first_column = tile.column * kBN;  // of the product

  if (threadIdx.x >= kConsumerThreads) {
    if (threadIdx.x > kConsumerThreads) return;
    wait_for_previous_launch();  // everything else in the block depends on the loads
    for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
      ring.begin_stage();
      tma_load(ring.data(), work.a_map, k_tile * kBK, which * m + first_row, ring.full());
      tma_load(ring.data() + kABytes, work.b_map, k_tile * kBK, which * n + first_column,
               ring.full());
    }
    return;
  }

  const int consumer = static_cast<int>(threadIdx.x) / 128;
  const int offset = consumer * 64 * 128;  // of its 64 rows in a K tile of A
  const std::uint32_t staging = ring.first + consumer * staging_bytes(kBN);
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
  sync_consumers();
  const int row = first_row + kStoredRows * consumer;
  if (row >= m) return;  // beyond the product
  if (work.by_tma) {
    store_by_tma<T, kBN>(acc[0], work.c_map, which * m + row, first_column, staging, consumer);
    if (threadIdx.x % 128 == 0) tma_store_wait_read();  // shared memory is freed at the end
  } else {
    store_accumulators<T>(acc[0], static_cast<T*>(work.c) + which * work.m * work.n, work.m, work.n,
                          row, first_column);
  }
#endif
}

template <typename T>
Launch launch(const Problem& p, const Device&, const Operands& o) {
  const Tiles tiles(p, kBM, kBN, kGroup);
  const bool by_tma = p.n % 8 == 0 && p.m % kStoredRows == 0;
  const std::int64_t rows = p.batch * p.m, columns = p.batch * p.n;
  const auto c_map = by_tma ? tensor_map(static_cast<T*>(o.c), rows, p.n, p.n, kStoredRows, 64,
                                         CU_TENSOR_MAP_SWIZZLE_128B)
                            : CUtensorMap{};
  const int k_tiles = static_cast<int>(ceil_div(p.k, kBK));
  const Work work{tiles,
                  p.m,
                  p.n,
                  k_tiles,
                  o.c,
                  k_major_map<T>(o.a, rows, p.k, kBM),
                  k_major_map<T>(o.b, columns, p.k, kBN),
                  c_map};
  return launched(wgmma_batched_two_blocks<T>,
                  {.count = p.batch * tiles.count(),
                   .threads = kThreads,
                   .shared_bytes = kSharedBytes,
                   .overlaps = true},
                  BatchedWork{work, by_tma});
}

std::optional<std::string> unsupported(const Problem& p, const Device& device) {
  if (p.tokens != Tokens::equal) return "takes no groups";
  if (const auto why = needs_sm_90a(wgmma_batched_two_blocks<__half>)(p, device)) return why;
  if (p.batch * std::max(p.m, p.n) > 1 << 30)
    return "requires at most 2^30 rows of all A, and columns of all B";
  return std::nullopt;
}

Kernel rung() {
  Kernel kernel = nt_rung(
      {
          .name = "WgmmaBatchedTwoBlocks",
          .idea = "Two blocks on an SM: one stores its tile while the other computes.",
          .source = "NVIDIA, CUTLASS 2, occupancy instead of a persistent pipeline",
          .rung = 62,
          .batches = Batches::only,
          .unsupported = unsupported,
      },
      {kBM, kBN, 128, wgmma_bytes(kBM, kBN), Epilogue::tma},
      {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}});
  kernel.work = [traffic = kernel.traffic](const Problem& p, const Device& device) {
    return work_of(p, device, traffic(p, device), {kBM, kBN},
                   1.0 * p.batch * Tiles(p, kBM, kBN).count(), 2.0 * device.sm_count);
  };
  return kernel;
}

const Registration registration(rung());

}  // namespace
}  // namespace gemm::tensor::wgmma_batched_two_blocks
