// The transpose of a matrix, for kernels that want an operand so.
//
// A thread that reads along a row and stores what it read down a column, as a first attempt does,
// reads whole cache lines and writes 32 different ones: it is the store that is not coalesced. So
// the tile is turned in shared memory, where reading down a column costs nothing if rows are one
// element longer than there are banks.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "kernels/common/device_array.cuh"
#include "kernels/common/tile_grid.cuh"
#include "kernels/gemm.hpp"

namespace gemm::simt {

constexpr int kTurned = 32,
              kTurnedRows = 8;  // edge of a tile; rows of it that a block takes at once
using TransposeGrid = TileGrid<kTurned, kTurned>;

template <typename T>
__global__ void transpose(Problem matrix, TransposeGrid grid, const T* __restrict__ from,
                          T* __restrict__ to) {
  __shared__ T tile[kTurned][kTurned + 1];
  const int x = threadIdx.x;
  const std::int64_t rows = matrix.m, columns = matrix.n;
  const std::int64_t first_row = grid.first_row(), first_column = grid.first_column();
#pragma unroll
  for (int first = 0; first < kTurned; first += kTurnedRows) {
    const int y = first + threadIdx.y;
    if (first_row + y < rows && first_column + x < columns)
      tile[y][x] = from[(first_row + y) * columns + first_column + x];
  }
  __syncthreads();
#pragma unroll
  for (int first = 0; first < kTurned; first += kTurnedRows) {
    const int y = first + threadIdx.y;
    if (first_column + y < columns && first_row + x < rows)
      to[(first_column + y) * rows + first_row + x] = tile[x][y];
  }
}

// Enqueues to = from^T, where `from` has so many rows and columns.
template <typename T>
void enqueue_transpose(const T* from, T* to, std::int64_t rows, std::int64_t columns,
                       Stream stream) {
  const Problem matrix{.m = rows, .n = columns, .k = 1, .precision = Precision::f32};
  const TransposeGrid grid(matrix);
  transpose<T><<<grid.blocks(), dim3(kTurned, kTurnedRows), 0, stream>>>(matrix, grid, from, to);
}

// The transpose in memory of its own, complete when this returns. Once is enough for any number of
// launches: the values of the operands do not change between them.
template <typename T>
std::shared_ptr<T> transposed(const void* from, std::int64_t rows, std::int64_t columns) {
  auto to = device_array<T>(rows * columns);
  enqueue_transpose(static_cast<const T*>(from), to.get(), rows, columns, nullptr);
  cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) status = cudaStreamSynchronize(nullptr);
  if (status != cudaSuccess)
    throw std::runtime_error(std::string("transpose: ") + cudaGetErrorString(status));
  return to;
}

}  // namespace gemm::simt
