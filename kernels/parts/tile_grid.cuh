// The tile of C that a block computes, in row-major order or in groups. The grid is one-dimensional
// because gridDim.y is limited to 65,535.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "kernels/gemm.hpp"

namespace gemm::simt {

template <int kRows, int kColumns>
struct TileGrid {
  std::int64_t tile_rows, tile_columns;

  explicit TileGrid(const Problem& p)
      : tile_rows(ceil_div(p.m, kRows)), tile_columns(ceil_div(p.n, kColumns)) {}

  // Throws std::length_error beyond 2^31 - 1 tiles, the limit of gridDim.x.
  unsigned blocks() const {
    if (tile_rows > 0x7fffffff / tile_columns)
      throw std::length_error("C has more tiles than a grid can have blocks (2^31 - 1)");
    return static_cast<unsigned>(tile_rows * tile_columns);
  }
  // A grid has fewer than 2^31 blocks: a 32-bit division suffices and is much faster.
  __device__ std::int64_t first_row() const {
    return std::int64_t{kRows} * (blockIdx.x / static_cast<unsigned>(tile_columns));
  }
  __device__ std::int64_t first_column() const {
    return std::int64_t{kColumns} * (blockIdx.x % static_cast<unsigned>(tile_columns));
  }
};

// Rasterization: blocks that run at the same time (a wave) take compact groups of tiles, so that
// together they read fewer rows of A and columns of B than in row-major order.
//
// Groups of `group` rows of tiles, one group after another; within a group, column by column.
template <int kRows, int kColumns>
struct GroupedGrid {
  TileGrid<kRows, kColumns> tiles;
  int group;

  struct Place {
    std::int64_t first_row, first_column;
  };
  unsigned blocks() const { return tiles.blocks(); }
  __device__ Place place() const {
    // There are fewer than 2^31 blocks: 32-bit divisions suffice, 32-bit products do not.
    const std::int64_t in_group = group * tiles.tile_columns;
    const unsigned groups = static_cast<unsigned>(blockIdx.x / in_group);
    const unsigned index = static_cast<unsigned>(blockIdx.x - groups * in_group);
    const unsigned rows = static_cast<unsigned>(
        min(static_cast<std::int64_t>(group), tiles.tile_rows - std::int64_t{groups} * group));
    return {(std::int64_t{groups} * group + index % rows) * kRows,
            std::int64_t{index / rows} * kColumns};
  }
};

// Whether 32-bit offsets reach every element. Kernels are compiled for both: 64-bit address
// arithmetic in the inner loop keeps fewer loads in flight and halves the rate of the naive kernel.
inline bool offsets_fit_int(const Problem& p) {
  constexpr double kLargest = 0x7fffffff - 1024;  // the last tile reaches beyond the edge
  return 1.0 * p.m * p.k <= kLargest && 1.0 * p.k * p.n <= kLargest && 1.0 * p.m * p.n <= kLargest;
}

// Whether every row of the FP32 matrices begins at a multiple of 16 bytes (the matrices themselves
// do).
inline bool rows_of_16_bytes(const Problem& p) { return p.k % 4 == 0 && p.n % 4 == 0; }

// What a kernel is compiled for: rows that begin at multiples of 16 bytes, or any.
enum class Rows { aligned, any };

}  // namespace gemm::simt
