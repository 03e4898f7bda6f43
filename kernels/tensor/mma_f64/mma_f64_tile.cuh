// The tile of C of a block that multiplies FP64 on tensor cores: K tiles of A and B in shared
// memory, fragments, accumulators and epilogue. Shared by the MmaF64 rungs, which differ in when K
// tiles and fragments are loaded.
//
// A K tile is stored as in the matrix, row by row, in 16-byte chunks of two elements. Chunk c of row
// r is at c ^ f(r), where f takes the bits of r / 2 % 4 to 4 and 2. The 8 lanes of a wavefront load
// either four chunks of rows r and r + 2 (k contiguous), or two chunks of rows r, r + 2, r + 4 and
// r + 6 (lines contiguous): both are then all 128 bytes of the banks. Copies write whole rows.
//
// C^T is computed: the MMA's first operand is B, so that in layout nn, where B has contiguous lines
// and A contiguous k, 16-byte loads fill the registers of both operands in the order of the MMA.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/common/async_copy.cuh"
#include "kernels/common/asynchronous.cuh"
#include "kernels/gemm.hpp"
#include "kernels/tensor/mma_f64/mma_f64.cuh"

namespace gemm::tensor {

constexpr int kF64Depth = 16;  // of a K tile
constexpr int kF64Chunk = 16;  // bytes

__host__ __device__ constexpr int f64_swizzle(int row) { return (row & 2) << 1 | (row & 4) >> 1; }

// The K tile of an operand: kLines rows of A, or columns of B (lines), by kF64Depth steps of k. Its
// rows are lines if kKMajor, else steps of k. Copies are of kWidth elements: 2, if rows of the
// matrix begin at multiples of 16 bytes, or 1.
template <int kLines, bool kKMajor, int kWidth, int kThreads>
class F64OperandTile {
 public:
  static constexpr int kBytes = kLines * kF64Depth * static_cast<int>(sizeof(double));

  // The block's lines begin at `first`; `warp_line` is the first line of this warp's tile.
  __device__ F64OperandTile(const double* from, std::int64_t pitch, std::int64_t first,
                            std::int64_t lines, std::int64_t first_k, int warp_line)
      : pitch_(pitch) {
    const int t = static_cast<int>(threadIdx.x);
    const int row = t / kPieces, at = t % kPieces * kWidth;
    const int lines_left = static_cast<int>(min(lines - first, std::int64_t{kLines}));
    if constexpr (kKMajor) {
      from_ = from + (first + row) * pitch_ + first_k + at;
      k_ = at;
      rows_ = lines_left - row;
    } else {
      from_ = from + (first_k + row) * pitch_ + first + at;
      k_ = row;
      rows_ = at < lines_left ? kRows : 0;
    }
    to_ = row * kPitch + ((at / 2) ^ f64_swizzle(row)) * kF64Chunk + at % 2 * 8;
    const int g = t % 32 / 4, lane_t = t % 4;
    if constexpr (kKMajor)
      lane_ = (warp_line + 2 * g) * kPitch + (lane_t ^ f64_swizzle(2 * g)) * kF64Chunk;
    else
      lane_ = 2 * lane_t * kPitch + ((warp_line / 2 + g) ^ f64_swizzle(2 * lane_t)) * kF64Chunk;
  }

  // Starts the copy of the next K tile, of which `left` steps of k are inside the matrix.
  __device__ void copy_to(std::uint32_t tile, int left) {
    const int inside = kKMajor ? (k_ < left ? rows_ : 0) : min(left - k_, rows_);
#pragma unroll
    for (int i = 0; i < kCopies; ++i)
      copy_async_bytes<8 * kWidth>(
          ((tile + to_) ^ f64_swizzle(i * kRowsAtOnce) * kF64Chunk) + i * kRowsAtOnce * kPitch,
          from_ + i * kRowsAtOnce * pitch_, i * kRowsAtOnce < inside);
    from_ += kKMajor ? kF64Depth : kF64Depth * pitch_;
  }

  // Loads the fragment of 16 lines, from 16 * i of the warp tile on, in one step of 8 along k.
  __device__ void load(F64Fragment& to, std::uint32_t tile, int i, int step) const {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      double x, y;
      const std::uint32_t from =
          kKMajor ? ((tile + lane_) ^ step * 4 * kF64Chunk) + (16 * i + part) * kPitch
                  : tile + lane_ + i * 8 * kF64Chunk + (8 * step + part) * kPitch;
      asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x), "=d"(y) : "r"(from) : "memory");
      (kKMajor ? to.parts[0][part] : to.parts[part][0]) = x;
      (kKMajor ? to.parts[1][part] : to.parts[part][1]) = y;
    }
  }

 private:
  static constexpr int kPitch = (kKMajor ? kF64Depth : kLines) * static_cast<int>(sizeof(double));
  static constexpr int kRows = kKMajor ? kLines : kF64Depth;
  static constexpr int kPieces = kPitch / 8 / kWidth;     // copies of a row
  static constexpr int kRowsAtOnce = kThreads / kPieces;  // copied by all threads
  static constexpr int kCopies = kRows / kRowsAtOnce;     // of a thread
  static_assert(kPitch % 128 == 0, "the swizzle needs whole lines of the banks");
  static_assert(kThreads % kPieces == 0 && kRowsAtOnce * kCopies == kRows);
  static_assert((kRowsAtOnce & (kRowsAtOnce - 1)) == 0, "so that swizzles of rows are XORed");

  const double* from_;
  std::int64_t pitch_;
  int k_, rows_, to_, lane_;  // k_: position of the first copy along k
};

// Block tile kBM x kBN, warp tile kWM x kWN, kStages stages in shared memory, kBlocks blocks per SM.
template <int kBM_, int kBN_, int kWM_, int kWN_, int kStages_, int kBlocks_,
          F64Mma kMma_ = F64Mma::m16n8k8>
struct F64Shape {
  static constexpr int kBM = kBM_, kBN = kBN_, kWM = kWM_, kWN = kWN_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr F64Mma kMma = kMma_;
  static constexpr int kThreads = 32 * (kBM / kWM) * (kBN / kWN);
  static constexpr int kStageBytes = (kBM + kBN) * kF64Depth * static_cast<int>(sizeof(double));
  static constexpr int kSharedBytes = kStages * kStageBytes;
  // Steps of 8 along k whose fragments are loaded together.
  static constexpr int kTogether = kMma == F64Mma::m16n8k16 ? 2 : 1;
  static constexpr int kSteps = kF64Depth / 8 / kTogether;
  // Shared-memory wavefronts per K tile: the copies, and the fragment loads of each warp.
  static constexpr double kWavefronts =
      (kBM + kBN + kThreads / 32 * (kWM + kWN)) * kF64Depth * sizeof(double) / 128.0;

  static_assert(kBM % kWM == 0 && kBN % kWN == 0, "warp tiles must divide the block tile");
  static_assert(kWM % 16 == 0 && kWN % 16 == 0 && kThreads <= 1024);
};

template <typename Shape_, bool kAKMajor, bool kBKMajor, int kWidth>
class F64Tile {
 public:
  using Shape = Shape_;
  static constexpr int kThreads = Shape::kThreads;

  // The fragments of one step.
  struct Fragments {
    F64Fragment a[Shape::kWM / 16][Shape::kTogether], b[Shape::kWN / 16][Shape::kTogether];
  };

  // The tile at this row and column of C, from K tile `first` to `end`. `shared` is aligned to 128
  // bytes.
  __device__ F64Tile(const Problem& p, std::int64_t row, std::int64_t column, int first, int end,
                     const double* a, const double* b, const std::byte* shared)
      : m_(p.m),
        n_(p.n),
        row_(row + warp_row()),
        column_(column + warp_column()),
        left_(min(p.k, std::int64_t{end} * kF64Depth) - std::int64_t{first} * kF64Depth),
        shared_(shared_address(shared)),
        a_(a, kAKMajor ? p.k : p.m, row, p.m, std::int64_t{first} * kF64Depth, warp_row()),
        b_(b, kBKMajor ? p.k : p.n, column, p.n, std::int64_t{first} * kF64Depth, warp_column()) {}

  __device__ std::uint32_t stage(int i) const { return shared_ + i * Shape::kStageBytes; }

  // Starts the copies of the next K tile; zeros beyond the edges and the last K tile.
  __device__ void copy_to(std::uint32_t stage) {
    const int left = static_cast<int>(max(min(left_, std::int64_t{kF64Depth}), std::int64_t{0}));
    a_.copy_to(stage, left);
    b_.copy_to(stage + ATile::kBytes, left);
    left_ -= kF64Depth;
    commit_copies();
  }

  __device__ void load(Fragments& to, std::uint32_t stage, int step) const {
#pragma unroll
    for (int s = 0; s < Shape::kTogether; ++s) {
#pragma unroll
      for (int j = 0; j < Shape::kWN / 16; ++j)
        b_.load(to.b[j][s], stage + ATile::kBytes, j, step * Shape::kTogether + s);
#pragma unroll
      for (int i = 0; i < Shape::kWM / 16; ++i)
        a_.load(to.a[i][s], stage, i, step * Shape::kTogether + s);
    }
  }
  // The MMAs of a step, in serpentine order, so that consecutive ones share an operand.
  __device__ void multiply(const Fragments& of) {
#pragma unroll
    for (int j = 0; j < kDown; ++j)
#pragma unroll
      for (int i = 0; i < kAcross; ++i) {
        const int serpentine = j % 2 == 0 ? i : kAcross - 1 - i;
        multiply_f64<Shape::kMma>(acc_[j][serpentine], of.b[j], of.a[serpentine / 2],
                                  serpentine % 2);
      }
  }

  __device__ void store(double* c) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < kAcross; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const std::int64_t row = row_ + 16 * (i / 2) + 4 * (lane % 4) + 2 * e + i % 2;
        if (row >= m_) continue;
        const std::int64_t column = column_ + lane / 4 * 2;
        double* const to = c + row * n_ + column;
#pragma unroll
        for (int j = 0; j < kDown; ++j) {
          if (n_ % 2 == 0) {
            if (column + 16 * j < n_)
              *reinterpret_cast<double2*>(to + 16 * j) = {acc_[j][i][e], acc_[j][i][2 + e]};
          } else {
            if (column + 16 * j < n_) to[16 * j] = acc_[j][i][e];
            if (column + 16 * j + 1 < n_) to[16 * j + 1] = acc_[j][i][2 + e];
          }
        }
      }
  }

  template <typename F>
  __device__ void for_each_accumulator(F f) {
#pragma unroll
    for (int j = 0; j < kDown; ++j)
#pragma unroll
      for (int i = 0; i < kAcross; ++i)
#pragma unroll
        for (int l = 0; l < 4; ++l) f(acc_[j][i][l], (j * kAcross + i) * 4 + l);
  }

 private:
  using ATile = F64OperandTile<Shape::kBM, kAKMajor, kWidth, kThreads>;
  using BTile = F64OperandTile<Shape::kBN, kBKMajor, kWidth, kThreads>;
  static constexpr int kDown = Shape::kWN / 16, kAcross = Shape::kWM / 8;  // MMAs of C^T

  static __device__ int warp_row() {
    return static_cast<int>(threadIdx.x) / 32 / (Shape::kBN / Shape::kWN) * Shape::kWM;
  }
  static __device__ int warp_column() {
    return static_cast<int>(threadIdx.x) / 32 % (Shape::kBN / Shape::kWN) * Shape::kWN;
  }

  std::int64_t m_, n_, row_, column_, left_;  // left_: what remains of k to copy
  std::uint32_t shared_;
  ATile a_;
  BTile b_;
  double acc_[kDown][kAcross][4] = {};
};

// A pipeline of kStages - 1 K tiles in flight. Fragments are loaded before the MMAs of their step.
template <typename Tile>
__device__ void multiply_multistage(Tile& tile, int k_tiles) {
  constexpr int kStages = Tile::Shape::kStages;
  typename Tile::Fragments fragments;
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) tile.copy_to(tile.stage(stage));
  int reads = 0, writes = kStages - 1;
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // the K tile has arrived, and the previous stage is free
    tile.copy_to(tile.stage(writes));
#pragma unroll
    for (int step = 0; step < Tile::Shape::kSteps; ++step) {
      tile.load(fragments, tile.stage(reads), step);
      tile.multiply(fragments);
    }
    reads = reads + 1 == kStages ? 0 : reads + 1;
    writes = writes + 1 == kStages ? 0 : writes + 1;
  }
}

// The same with two sets of fragments: those of the next step are loaded during the MMAs of this
// one, across the barrier of a K tile too.
template <typename Tile>
__device__ void multiply_double_buffered_f64(Tile& tile, int k_tiles) {
  constexpr int kStages = Tile::Shape::kStages, kSteps = Tile::Shape::kSteps;
  static_assert(kSteps % 2 == 0, "a K tile must end with the second set");
  typename Tile::Fragments fragments[2];
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) tile.copy_to(tile.stage(stage));
  int reads = 0, writes = kStages - 1;
  wait_for_copies<kStages - 2>();
  __syncthreads();
  tile.load(fragments[0], tile.stage(reads), 0);
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    // The stage before this one was read before the last barrier.
    tile.copy_to(tile.stage(writes));
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step + 1 == kSteps) {
        wait_for_copies<kStages - 2>();
        __syncthreads();  // the next K tile has arrived, and all fragments of this one are loaded
        reads = reads + 1 == kStages ? 0 : reads + 1;
      }
      tile.load(fragments[(step + 1) % 2], tile.stage(reads), (step + 1) % kSteps);
      tile.multiply(fragments[step % 2]);
    }
    writes = writes + 1 == kStages ? 0 : writes + 1;
  }
}

}  // namespace gemm::tensor
