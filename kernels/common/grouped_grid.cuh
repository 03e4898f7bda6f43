// Rasterization: the order in which blocks take tiles of C. Blocks that run at the same time (a
// wave) take compact groups of tiles, so that together they read fewer rows of A and columns of B
// than with row-major order.
#pragma once

#include <cstdint>

#include "kernels/common/tile_grid.cuh"

namespace gemm::simt {

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

}  // namespace gemm::simt
