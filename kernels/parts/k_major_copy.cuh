// Copies a matrix K-major, for kernels that support no other layout: transposes it if k is not
// contiguous, and pads rows to multiples of 16 bytes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/gemm.hpp"

namespace gemm::tensor {

// A tile of a matrix in shared memory, in which it is transposed if need be. Elements outside the
// matrix are zero.
constexpr int kCopyTileRows = 32, kCopyTileK = 64, kCopyThreads = 256;

// kPad elements of padding avoid bank conflicts.
template <typename T, bool kKMajor, int kPad>
struct CopyTile {
  static constexpr int kPitch = (kKMajor ? kCopyTileK : kCopyTileRows) + kPad;
  T elements[(kKMajor ? kCopyTileRows : kCopyTileK) * kPitch];

  __device__ T& at(int row, int k) {
    return elements[kKMajor ? row * kPitch + k : k * kPitch + row];
  }

  // Loads from (first_row, first_k) on of a matrix of rows x depth elements, in which elements
  // along k are contiguous (kKMajor), or elements along the rows.
  __device__ void load(const T* from, std::int64_t rows, std::int64_t depth, std::int64_t first_row,
                       std::int64_t first_k) {
#pragma unroll
    for (int round = 0; round < kCopyTileRows * kCopyTileK / kCopyThreads; ++round) {
      const int i = round * kCopyThreads + static_cast<int>(threadIdx.x);
      const int row = kKMajor ? i / kCopyTileK : i % kCopyTileRows;
      const int k = kKMajor ? i % kCopyTileK : i / kCopyTileRows;
      const bool inside = first_row + row < rows && first_k + k < depth;
      const std::int64_t offset = kKMajor ? (first_row + row) * depth + first_k + k
                                          : (first_k + k) * rows + first_row + row;
      at(row, k) = inside ? from[offset] : T{};
    }
  }
};

// The tile of a block, in a one-dimensional grid; consecutive blocks are adjacent in the contiguous
// direction.
struct CopyGrid {
  std::int64_t row_tiles, k_tiles;

  CopyGrid(std::int64_t rows, std::int64_t depth)
      : row_tiles(ceil_div(rows, kCopyTileRows)), k_tiles(ceil_div(depth, kCopyTileK)) {}
  unsigned blocks() const { return static_cast<unsigned>(row_tiles * k_tiles); }

  template <bool kKMajor>
  __device__ std::int64_t first_row() const {
    return kCopyTileRows *
           std::int64_t{kKMajor ? blockIdx.x / short_k() : blockIdx.x % short_rows()};
  }
  template <bool kKMajor>
  __device__ std::int64_t first_k() const {
    return kCopyTileK * std::int64_t{kKMajor ? blockIdx.x % short_k() : blockIdx.x / short_rows()};
  }

 private:
  // A grid has fewer than 2^31 blocks: a 32-bit division suffices and is much faster.
  __device__ unsigned short_rows() const { return static_cast<unsigned>(row_tiles); }
  __device__ unsigned short_k() const { return static_cast<unsigned>(k_tiles); }
};

// to[row * pitch + k] = element (row, k) of `from`, with zeros up to the pitch, which ends in the
// last tile.
template <typename T, bool kKMajor>
__global__ void __launch_bounds__(kCopyThreads)
    copy_k_major(CopyGrid grid, const T* __restrict__ from, std::int64_t rows, std::int64_t depth,
                 T* __restrict__ to, std::int64_t pitch) {
  // One word of padding: a column is then in different banks.
  __shared__ CopyTile<T, kKMajor, sizeof(float) / sizeof(T)> tile;
  const std::int64_t first_row = grid.first_row<kKMajor>(), first_k = grid.first_k<kKMajor>();
  tile.load(from, rows, depth, first_row, first_k);
  __syncthreads();
#pragma unroll
  for (int round = 0; round < kCopyTileRows * kCopyTileK / kCopyThreads; ++round) {
    const int i = round * kCopyThreads + static_cast<int>(threadIdx.x);
    const int row = i / kCopyTileK, k = i % kCopyTileK;
    if (first_row + row < rows && first_k + k < pitch)
      to[(first_row + row) * pitch + first_k + k] = tile.at(row, k);
  }
}

}  // namespace gemm::tensor
