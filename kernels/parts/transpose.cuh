// Transpose of a matrix, for kernels that need a transposed operand.
//
// A thread that reads along a row and writes down a column has coalesced loads but uncoalesced
// stores: 32 different cache lines per warp. So the tile is transposed in shared memory, where
// reading a column is free of bank conflicts if rows are padded by one element.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/gemm.hpp"
#include "kernels/parts/device_array.cuh"
#include "kernels/parts/tile_grid.cuh"

namespace gemm::simt {

constexpr int kTransposeTile = 32,
              kTransposeRows = 8;  // edge of a tile; its rows per pass of the block
using TransposeGrid = TileGrid<kTransposeTile, kTransposeTile>;

template <typename T>
__global__ void transpose(Problem matrix, TransposeGrid grid, const T* __restrict__ from,
                          T* __restrict__ to) {
  __shared__ T tile[kTransposeTile][kTransposeTile + 1];
  const int x = threadIdx.x;
  const std::int64_t rows = matrix.m, columns = matrix.n;
  const std::int64_t first_row = grid.first_row(), first_column = grid.first_column();
#pragma unroll
  for (int first = 0; first < kTransposeTile; first += kTransposeRows) {
    const int y = first + threadIdx.y;
    if (first_row + y < rows && first_column + x < columns)
      tile[y][x] = from[(first_row + y) * columns + first_column + x];
  }
  __syncthreads();
#pragma unroll
  for (int first = 0; first < kTransposeTile; first += kTransposeRows) {
    const int y = first + threadIdx.y;
    if (first_column + y < columns && first_row + x < rows)
      to[(first_column + y) * rows + first_row + x] = tile[x][y];
  }
}

// Enqueues to = from^T; rows and columns are those of `from`.
template <typename T>
void enqueue_transpose(const T* from, T* to, std::int64_t rows, std::int64_t columns,
                       Stream stream) {
  const Problem matrix{.m = rows, .n = columns, .k = 1, .precision = Precision::f32};
  const TransposeGrid grid(matrix);
  transpose<T>
      <<<grid.blocks(), dim3(kTransposeTile, kTransposeRows), 0, stream>>>(matrix, grid, from, to);
}

// The transpose in its own memory, complete on return. It is made once for any number of launches,
// since operands do not change between them.
template <typename T>
DeviceArray<T> transposed(const void* from, std::int64_t rows, std::int64_t columns) {
  auto to = device_array<T>(rows * columns);
  enqueue_transpose(static_cast<const T*>(from), to.get(), rows, columns, nullptr);
  cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) status = cudaStreamSynchronize(nullptr);
  if (status != cudaSuccess)
    throw std::runtime_error(std::string("transpose: ") + cudaGetErrorString(status));
  return to;
}

}  // namespace gemm::simt
