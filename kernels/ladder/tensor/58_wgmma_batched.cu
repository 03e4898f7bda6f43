// A batch in one persistent launch: tiles are counted through all products, so that a block goes
// from one product to the next without a pause, and the producer loads the first stages of the next
// one during the epilogue of the last. The pipeline, the tile and the epilogue are those of
// WgmmaTmaStore.
//
// One tensor map has the rows of all A, one those of all B. A tile beyond the last row of its
// product loads rows of the next one: these results are not stored. TMA cuts C at the end of the
// batch only, and not at the end of a product, so that threads store it where a product ends
// within the 64 rows of a consumer.
//
// The next bottleneck: the last wave of tiles. A batch has more tiles than one product, but their
// number still is no multiple of the number of SMs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_batched {
namespace {

constexpr int kBM = 128, kBN = 256, kBK = 64;  // 64 steps of k are lines of 128 bytes
constexpr int kStages = 4, kConsumers = 2;     // consumers are warpgroups
constexpr int kGroup = 16;                     // rows of tiles
constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;
constexpr int kABytes = kBM * 128, kStageBytes = (kBM + kBN) * 128;
constexpr int kStoredRows = 64;  // by TMA, of each consumer

// The epilogue stages 64 x 128 of C for each consumer.
constexpr int kStaged = 128;
constexpr int kSharedBytes =
    kStages * kStageBytes + kConsumers * staging_bytes(kStaged) + kSwizzleAlignment;

// Tiles, m and n are of one product, the tensor maps of all.
struct BatchedWork : Work {
  int batch;
  bool by_tma;

  __device__ int count() const { return batch * tiles.count(); }
  struct Place {
    int which, row, column;  // product, and in it the first row and column of the tile
  };
  __device__ Place place(int index) const {
    const int which = index / tiles.count();
    const auto place = tiles.place(index - which * tiles.count());
    return {which, place.row * kBM, place.column * kBN};
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_batched([[maybe_unused]] const __grid_constant__ BatchedWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  Ring<kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kConsumerThreads / 32);
  __syncthreads();
  const int first = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  const int m = static_cast<int>(work.m), n = static_cast<int>(work.n);

  if (threadIdx.x >= kConsumerThreads) {
    dealloc_registers<40>();  // of 168, which 384 threads have at first
    if (threadIdx.x > kConsumerThreads) return;
    for (int index = first; index < work.count(); index += blocks) {
      const auto place = work.place(index);
      const int row = place.which * m + place.row, column = place.which * n + place.column;
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
  for (int index = first; index < work.count(); index += blocks) {
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
    const auto place = work.place(index);
    const int row = place.row + kStoredRows * consumer;
    if (row >= m) continue;  // beyond the product
    if (work.by_tma)
      store_by_tma<T, kStaged>(acc[0], work.c_map, place.which * m + row, place.column, staging,
                               consumer);
    else
      store_accumulators<T>(acc[0], static_cast<T*>(work.c) + place.which * work.m * work.n, work.m,
                            work.n, row, place.column);
  }
  if (threadIdx.x % 128 == 0) tma_store_wait_read();  // shared memory is freed at the end
#endif
}

template <typename T>
Launch launch(const Problem& p, const Device& device, const Operands& o) {
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
  return launched(
      wgmma_batched<T>,
      {std::min(p.batch * tiles.count(), std::max(1, device.sm_count)), kThreads, kSharedBytes},
      BatchedWork{work, p.batch, by_tma});
}

std::optional<std::string> unsupported(const Problem& p, const Device& device) {
  if (const auto why = needs_sm_90a(wgmma_batched<__half>)(p, device)) return why;
  if (p.batch * std::max(p.m, p.n) > 1 << 30)
    return "requires at most 2^30 rows of all A, and columns of all B";
  return std::nullopt;
}

const Registration registration(nt_rung(
    {
        .name = "WgmmaBatched",
        .idea = "A persistent kernel over all products of a batch, as if their tiles were one C's.",
        .source = "NVIDIA, CUTLASS 3, persistent scheduler over the batch (mode L of a problem)",
        .rung = 58,
        .batches = Batches::only,
        .unsupported = unsupported,
    },
    {kBM, kBN, 128, wgmma_bytes(kBM, kBN), Epilogue::tma},
    {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}}));

}  // namespace
}  // namespace gemm::tensor::wgmma_batched
