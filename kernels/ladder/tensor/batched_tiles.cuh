// What the kernels over all products of a batch, or of groups, share: a tile of 128 x 256 with a
// ring of four stages for two consumers, the way through the tiles, and what is not supported.
#pragma once

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

namespace gemm::tensor::batched {

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

// Those of all products.
inline int tiles_of(const Products& all) {
  std::int64_t rows = 0;
  for (int which = 0; which < all.batch; ++which) rows += ceil_div(all.rows(which), kBM);
  return static_cast<int>(rows * ceil_div(all.n, kBN));
}

// Tensor maps are of all products.
struct BatchedWork : Work {
  Products products;
  int whole, count, columns;        // tiles that are whole, all, and those in a row
  std::int16_t order[kMostGroups];  // of groups

  // Work::tiles, m and c are not used. Of the last `cut` tiles each half is a tile.
  BatchedWork(const Work& work, const Products& all, int cut) : Work(work), products(all), order{} {
    columns = static_cast<int>(ceil_div(n, kBN));
    count = tiles_of(all);
    whole = std::max(0, count - cut);
    count += count - whole;
    if (!is_grouped(all)) return;
    std::iota(order, order + all.batch, std::int16_t{0});
    std::stable_sort(order, order + all.batch,
                     [&](int one, int other) { return all.rows(one) > all.rows(other); });
  }
};

// A block's way through tiles whose index grows.
struct Walk {
  const BatchedWork& work;
  int index = static_cast<int>(blockIdx.x);
  int place = -1, begin = 0, end = 0;      // place in the order; tiles from the first one on
  int which = 0, first_row = 0, rows = 0;  // of the product

  // Goes to the product of the tile `index`; false after the last.
  __device__ bool at_tile() {
    if (index >= work.count) return false;
    while (whole_tile() >= end) {
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
  __device__ bool cut() const { return index >= work.whole; }
  __device__ int whole_tile() const { return cut() ? (work.whole + index) / 2 : index; }
  __device__ int tile_rows() const { return (rows + kBM - 1) / kBM; }
  // The first row and column of the tile in the product, and its rows: none, or less, in the second
  // half of a tile that has only the first.
  struct Tile {
    int row, column, rows;
  };
  __device__ Tile tile() const {
    const auto place = TileOrder{tile_rows(), work.columns, kGroup}.place(whole_tile() - begin);
    const int row = place.row * kBM + (cut() ? (index - work.whole) % 2 * kHalf : 0);
    return {row, place.column * kBN, min(rows - row, cut() ? kHalf : kBM)};
  }
};

// The work of all products. Throws std::runtime_error.
template <typename T>
BatchedWork batched_work(const Problem& p, const Operands& o, int cut = 0) {
  const std::int64_t rows = p.batch * p.m, columns = p.batch * p.n;
  const auto c_map = p.n % 8 != 0 ? CUtensorMap{}
                                  : tensor_map(static_cast<T*>(o.c), rows, p.n, p.n, kHalf, 64,
                                               CU_TENSOR_MAP_SWIZZLE_128B);
  const int k_tiles = static_cast<int>(ceil_div(p.k, kBK));
  return BatchedWork(
      {Tiles(p, kBM, kBN), p.m, p.n, k_tiles, o.c, k_major_map<T>(o.a, rows, p.k, kHalf),
       k_major_map<T>(o.b, columns, p.k, kBN), c_map},
      Products(p), cut);
}

template <typename... Parameters>
auto needs_rows_within_limits(void (*kernel)(Parameters...)) {
  return [=](const Problem& p, const Device& device) -> std::optional<std::string> {
    if (auto why = needs_sm_90a(kernel)(p, device)) return why;
    if (p.batch * std::max(p.m, p.n) > 1 << 30)
      return "requires at most 2^30 rows of all A, and columns of all B";
    return std::nullopt;
  };
}

// Of all tiles as if they were whole.
inline Traffic traffic_of_products(const Problem& p, const TileShape& tile) {
  const Products all(p);
  Traffic sum{.dram = compulsory_bytes(p), .l2 = 0, .shared = 0};
  for (std::int64_t which = 0; which < p.batch; ++which) {
    if (all.rows(which) == 0) continue;
    const Traffic one = traffic_of(all.product(which), tile);
    sum.l2 += one.l2;
    sum.shared += one.shared;
  }
  return sum;
}
inline Traffic traffic(const Problem& p, const Device&) {
  return traffic_of_products(p, {kBM, kBN, 128, wgmma_bytes(kBM, kBN), Epilogue::tma});
}
inline gemm::Work work(const Problem& p, const Device& device) {
  return work_of(p, device, traffic(p, device), {kBM, kBN}, tiles_of(Products(p)), device.sm_count);
}

}  // namespace gemm::tensor::batched
