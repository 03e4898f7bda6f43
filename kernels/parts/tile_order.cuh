// Rasterization: the order in which tiles of C are computed. Groups of `group` rows of tiles, one
// after another; within a group, column by column. Tiles that are computed at the same time then
// share rows of A and columns of B in the L2.
#pragma once

namespace gemm {

struct TileOrder {
  int rows, columns;  // of tiles
  int group;          // rows of tiles in a group; 1: row-major order

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
