// A batch, or groups, in one persistent launch: tiles are counted through all products, so that a
// block goes from one product to the next without a pause, and the producer loads the first stages
// of the next one during the epilogue of the last. The pipeline, the tile and the epilogue are
// those of WgmmaTmaStore.
//
// One tensor map has the rows of all A, one those of all B. A tile beyond the last row of its
// product loads rows of the next one: these results are not stored. TMA cuts C at the end of the
// batch only, and not at the end of a product, so that threads store it where a product ends
// within the 64 rows of a consumer. A consumer all of whose rows are beyond it issues no MMAs.
//
// Groups come in order of their rows, the largest first: the last tiles are the short ones, and SMs
// end at about the same time. The row tiles of a column of a product are next to each other, so
// that its B comes from DRAM once.
//
// The next bottleneck: the last wave of tiles. A batch has more tiles than one product, but their
// number still is no multiple of the number of SMs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"
#include "kernels/tokens.hpp"

namespace gemm::tensor::wgmma_batched {
namespace {

constexpr int kBM = 128, kBN = 256, kBK = 64;  // 64 steps of k are lines of 128 bytes
constexpr int kStages = 4, kConsumers = 2;     // consumers are warpgroups
constexpr int kGroup = 16;                     // rows of tiles
constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;
constexpr int kHalf = 64;  // rows of a tile for each consumer
constexpr int kHalfBytes = kHalf * 128, kABytes = kBM * 128, kStageBytes = (kBM + kBN) * 128;

// The epilogue stages 64 x 128 of C for each consumer.
constexpr int kStaged = 128;
constexpr int kSharedBytes =
    kStages * kStageBytes + kConsumers * staging_bytes(kStaged) + kSwizzleAlignment;

// Tensor maps are of all products.
struct BatchedWork : Work {
  Products products;
  int count, columns;               // tiles of all products, and in a row of tiles
  std::int16_t order[kMostGroups];  // of groups

  // Work::tiles, m and c are not used.
  BatchedWork(const Work& work, const Products& all) : Work(work), products(all), order{} {
    columns = static_cast<int>(ceil_div(n, kBN));
    count = 0;
    for (int which = 0; which < all.batch; ++which)
      count += static_cast<int>(ceil_div(all.rows(which), kBM)) * columns;
    if (!is_grouped(all)) return;
    std::iota(order, order + all.batch, std::int16_t{0});
    std::stable_sort(order, order + all.batch,
                     [&](int one, int other) { return all.rows(one) > all.rows(other); });
  }
};

// A block's way through the tiles, of which it takes every gridDim.x-th.
struct Walk {
  const BatchedWork& work;
  int index = static_cast<int>(blockIdx.x);
  int place = -1, begin = 0, end = 0;      // place in the order; tiles from the first one on
  int which = 0, first_row = 0, rows = 0;  // of the product

  // Goes to the product of the tile `index`; false after the last.
  __device__ bool at_tile() {
    if (index >= work.count) return false;
    while (index >= end) {
      ++place;
      which = is_grouped(work.products) ? work.order[place] : place;
      first_row = static_cast<int>(work.products.first_row(which));
      rows = static_cast<int>(work.products.rows(which));
      begin = end;
      end += tile_rows() * work.columns;
    }
    return true;
  }
  __device__ void next() { index += static_cast<int>(gridDim.x); }
  __device__ int tile_rows() const { return (rows + kBM - 1) / kBM; }
  // The first row and column of the tile in the product.
  struct Tile {
    int row, column;
  };
  __device__ Tile tile() const {
    const auto place = TileOrder{tile_rows(), work.columns, kGroup}.place(index - begin);
    return {place.row * kBM, place.column * kBN};
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
  const int n = static_cast<int>(work.n);

  if (threadIdx.x >= kConsumerThreads) {
    dealloc_registers<40>();  // of 168, which 384 threads have at first
    if (threadIdx.x > kConsumerThreads) return;
    for (Walk walk{work}; walk.at_tile(); walk.next()) {
      const auto tile = walk.tile();
      const int row = walk.first_row + tile.row, column = walk.which * n + tile.column;
      const bool both = tile.row + kHalf < walk.rows;
      for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
        ring.begin_stage(both ? kStageBytes : kStageBytes - kHalfBytes);
        tma_load(ring.data(), work.a_map, k_tile * kBK, row, ring.full());
        if (both)
          tma_load(ring.data() + kHalfBytes, work.a_map, k_tile * kBK, row + kHalf, ring.full());
        tma_load(ring.data() + kABytes, work.b_map, k_tile * kBK, column, ring.full());
      }
    }
    return;
  }

  alloc_registers<232>();
  const int consumer = static_cast<int>(threadIdx.x) / 128;
  const int offset = consumer * kHalfBytes;  // of its rows in a K tile of A
  const std::uint32_t staging = ring.end() + consumer * staging_bytes(kStaged);
  float acc[1][kBN / 2];
  for (Walk walk{work}; walk.at_tile(); walk.next()) {
    const auto tile = walk.tile();
    const int row = tile.row + kHalf * consumer;
    if (row >= walk.rows) {  // beyond the product
      for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
        ring.wait_for_stage();
        release(ring.empty());
      }
      continue;
    }
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
    if (work.stores_by_tma() && row + kHalf <= walk.rows)
      store_by_tma<T, kStaged>(acc[0], work.c_map, walk.first_row + row, tile.column, staging,
                               consumer);
    else
      store_accumulators<T>(acc[0], static_cast<T*>(work.c) + std::int64_t{walk.first_row} * n,
                            walk.rows, n, row, tile.column);
  }
  if (threadIdx.x % 128 == 0) tma_store_wait_read();  // shared memory is freed at the end
#endif
}

template <typename T>
Launch launch(const Problem& p, const Device& device, const Operands& o) {
  const std::int64_t rows = p.batch * p.m, columns = p.batch * p.n;
  const auto c_map = p.n % 8 != 0 ? CUtensorMap{}
                                  : tensor_map(static_cast<T*>(o.c), rows, p.n, p.n, kHalf, 64,
                                               CU_TENSOR_MAP_SWIZZLE_128B);
  const int k_tiles = static_cast<int>(ceil_div(p.k, kBK));
  const BatchedWork work(
      {Tiles(p, kBM, kBN), p.m, p.n, k_tiles, o.c, k_major_map<T>(o.a, rows, p.k, kHalf),
       k_major_map<T>(o.b, columns, p.k, kBN), c_map},
      Products(p));
  return launched(wgmma_batched<T>,
                  {std::min(work.count, std::max(1, device.sm_count)), kThreads, kSharedBytes},
                  work);
}

std::optional<std::string> unsupported(const Problem& p, const Device& device) {
  if (const auto why = needs_sm_90a(wgmma_batched<__half>)(p, device)) return why;
  if (p.batch * std::max(p.m, p.n) > 1 << 30)
    return "requires at most 2^30 rows of all A, and columns of all B";
  return std::nullopt;
}

// Of all tiles as if they were whole.
Traffic traffic(const Problem& p, const Device&) {
  const Products all(p);
  Traffic sum{.dram = compulsory_bytes(p), .l2 = 0, .shared = 0};
  for (std::int64_t which = 0; which < p.batch; ++which) {
    if (all.rows(which) == 0) continue;
    const Traffic one =
        traffic_of(all.product(which), {kBM, kBN, 128, wgmma_bytes(kBM, kBN), Epilogue::tma});
    sum.l2 += one.l2;
    sum.shared += one.shared;
  }
  return sum;
}

Kernel kernel() {
  Kernel rung = nt_rung(
      {
          .name = "WgmmaBatched",
          .idea = "A persistent kernel over all products of a batch, or all groups, as if their "
                  "tiles were one C's.",
          .source = "NVIDIA, CUTLASS 3, persistent scheduler over the batch and over groups",
          .rung = 58,
          .batches = Batches::only,
          .unsupported = unsupported,
      },
      {}, {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}});
  rung.traffic = traffic;
  return rung;
}
const Registration registration(kernel());

}  // namespace
}  // namespace gemm::tensor::wgmma_batched
