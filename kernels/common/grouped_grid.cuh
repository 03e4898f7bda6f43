// Tiles of C in compact groups: blocks that run at the same time, a wave, then touch fewer rows of
// A and columns of B between them than if they took whole rows of tiles.
#pragma once

#include <cstdint>

#include "kernels/common/tile_grid.cuh"

namespace gemm::simt {

// Walks down columns of `group` tiles, group by group of rows of tiles.
template <int kRows, int kColumns>
struct GroupedGrid {
  TileGrid<kRows, kColumns> tiles;
  int group;

  struct Place {
    std::int64_t first_row, first_column;
  };
  unsigned blocks() const { return tiles.blocks(); }
  __device__ Place place() const {
    // There are fewer than 2^31 blocks, so that divisions of 32 bits do; but not products.
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
