// The order in which tiles of C are computed: down columns of `group` tiles, group after group of
// rows of tiles, so that tiles computed at the same time touch few rows of A and columns of B,
// which the L2 then holds.
#pragma once

namespace gemm {

struct TileOrder {
  int rows, columns;  // of tiles
  int group;          // rows of tiles in a group; 1: row by row

  struct Place {
    int row, column;  // of tiles
  };

  __host__ __device__ int count() const { return rows * columns; }
  __device__ Place place(int tile) const {
    const int in_group = group * columns;
    const int before = tile / in_group, index = tile - before * in_group;
    const int height = min(group, rows - before * group);
    return {before * group + index % height, index / height};
  }
};

}  // namespace gemm
