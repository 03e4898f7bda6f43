// A matrix brought into rows along k, for kernels that can read no other: a copy that turns it if k
// is not contiguous, and begins each row at a multiple of 16 bytes if it does not.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/gemm.hpp"

namespace gemm::tensor {

// A piece of a matrix on its way through shared memory, where it is turned if its rows, not its
// columns, are to be contiguous. Elements outside the matrix are zero.
constexpr int kPieceRows = 32, kPieceK = 64, kPieceThreads = 256;

// kPad elements keep apart what would be in one bank.
template <typename T, bool kAlongK, int kPad>
struct Piece {
  static constexpr int kPitch = (kAlongK ? kPieceK : kPieceRows) + kPad;
  T elements[(kAlongK ? kPieceRows : kPieceK) * kPitch];

  __device__ T& at(int row, int k) {
    return elements[kAlongK ? row * kPitch + k : k * kPitch + row];
  }

  // From (first_row, first_k) on of rows x depth elements, of which those along k are contiguous,
  // or those along the rows.
  __device__ void load(const T* from, std::int64_t rows, std::int64_t depth, std::int64_t first_row,
                       std::int64_t first_k) {
#pragma unroll
    for (int round = 0; round < kPieceRows * kPieceK / kPieceThreads; ++round) {
      const int i = round * kPieceThreads + static_cast<int>(threadIdx.x);
      const int row = kAlongK ? i / kPieceK : i % kPieceRows;
      const int k = kAlongK ? i % kPieceK : i / kPieceRows;
      const bool inside = first_row + row < rows && first_k + k < depth;
      const std::int64_t offset = kAlongK ? (first_row + row) * depth + first_k + k
                                          : (first_k + k) * rows + first_row + row;
      at(row, k) = inside ? from[offset] : T{};
    }
  }
};

// One-dimensional: which piece a block takes, neighbours in the direction that is contiguous.
struct PieceGrid {
  std::int64_t along_rows, along_k;

  PieceGrid(std::int64_t rows, std::int64_t depth)
      : along_rows((rows + kPieceRows - 1) / kPieceRows),
        along_k((depth + kPieceK - 1) / kPieceK) {}
  unsigned blocks() const { return static_cast<unsigned>(along_rows * along_k); }

  template <bool kAlongK>
  __device__ std::int64_t first_row() const {
    return kPieceRows * std::int64_t{kAlongK ? blockIdx.x / short_k() : blockIdx.x % short_rows()};
  }
  template <bool kAlongK>
  __device__ std::int64_t first_k() const {
    return kPieceK * std::int64_t{kAlongK ? blockIdx.x % short_k() : blockIdx.x / short_rows()};
  }

 private:
  // A grid has fewer than 2^31 blocks, so that a division of 32 bits does, which is much shorter.
  __device__ unsigned short_rows() const { return static_cast<unsigned>(along_rows); }
  __device__ unsigned short_k() const { return static_cast<unsigned>(along_k); }
};

// to[row * pitch + k] = the element (row, k) of `from`, and zeros up to the pitch, which ends in
// the last piece.
template <typename T, bool kAlongK>
__global__ void __launch_bounds__(kPieceThreads)
    copy_along_k(PieceGrid grid, const T* __restrict__ from, std::int64_t rows, std::int64_t depth,
                 T* __restrict__ to, std::int64_t pitch) {
  // One word more than a line of banks, which turns a column into a diagonal.
  __shared__ Piece<T, kAlongK, sizeof(float) / sizeof(T)> piece;
  const std::int64_t first_row = grid.first_row<kAlongK>(), first_k = grid.first_k<kAlongK>();
  piece.load(from, rows, depth, first_row, first_k);
  __syncthreads();
#pragma unroll
  for (int round = 0; round < kPieceRows * kPieceK / kPieceThreads; ++round) {
    const int i = round * kPieceThreads + static_cast<int>(threadIdx.x);
    const int row = i / kPieceK, k = i % kPieceK;
    if (first_row + row < rows && first_k + k < pitch)
      to[(first_row + row) * pitch + first_k + k] = piece.at(row, k);
  }
}

}  // namespace gemm::tensor
