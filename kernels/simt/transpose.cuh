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
#include <type_traits>

#include "kernels/gemm.hpp"
#include "kernels/simt/device_array.cuh"
#include "kernels/simt/tile_grid.cuh"

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

// The same by 16 bytes, where rows and columns are multiples of four floats: a quarter of the
// accesses, and four of them under way in each thread.
constexpr int kTurnedWide = 64, kTurnedWideThreads = 256;
using WideTransposeGrid = TileGrid<kTurnedWide, kTurnedWide>;

// A template like its sibling, so that each file that includes it may have one.
template <int kThreads = kTurnedWideThreads>
__global__ void __launch_bounds__(kThreads)
    transpose_wide(Problem matrix, WideTransposeGrid grid, const float* __restrict__ from,
                   float* __restrict__ to) {
  __shared__ float tile[kTurnedWide][kTurnedWide + 1];
  constexpr int kQuads = kTurnedWide / 4, kAtOnce = kThreads / kQuads;
  const int quad = 4 * (threadIdx.x % kQuads), first = threadIdx.x / kQuads;
  const std::int64_t rows = matrix.m, columns = matrix.n;
  const std::int64_t first_row = grid.first_row(), first_column = grid.first_column();
  float4 read[kTurnedWide / kAtOnce];
#pragma unroll
  for (int i = 0; i < kTurnedWide / kAtOnce; ++i) {
    const std::int64_t row = first_row + first + i * kAtOnce;
    if (row < rows && first_column + quad < columns)
      read[i] = *reinterpret_cast<const float4*>(from + row * columns + first_column + quad);
  }
#pragma unroll
  for (int i = 0; i < kTurnedWide / kAtOnce; ++i) {
    float* to_row = &tile[first + i * kAtOnce][quad];
    to_row[0] = read[i].x, to_row[1] = read[i].y, to_row[2] = read[i].z, to_row[3] = read[i].w;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kTurnedWide / kAtOnce; ++i) {
    const int x = first + i * kAtOnce;
    if (first_column + x < columns && first_row + quad < rows)
      *reinterpret_cast<float4*>(to + (first_column + x) * rows + first_row + quad) =
          make_float4(tile[quad][x], tile[quad + 1][x], tile[quad + 2][x], tile[quad + 3][x]);
  }
}

// Enqueues to = from^T, where `from` has so many rows and columns.
template <typename T>
void enqueue_transpose(const T* from, T* to, std::int64_t rows, std::int64_t columns,
                       Stream stream) {
  if constexpr (std::is_same_v<T, float>) {
    if (rows % 4 == 0 && columns % 4 == 0 && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
      const Problem matrix{.m = rows, .n = columns, .k = 1, .precision = Precision::f32};
      const WideTransposeGrid grid(matrix);
      transpose_wide<><<<grid.blocks(), kTurnedWideThreads, 0, stream>>>(matrix, grid, from, to);
      return;
    }
  }
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
