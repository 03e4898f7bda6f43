// The tile of C of a block that multiplies FP64 on tensor cores: K tiles of A and B in shared
// memory, fragments, accumulators and epilogue. Shared by the MmaF64 rungs, which differ in when K
// tiles and fragments are loaded.
//
// A K tile is stored as in the matrix, row by row, in 16-byte chunks of two elements. Chunk c of
// row r is at c ^ f(r), where f takes the bits of r / 2 % 4 to 4 and 2. The 8 lanes of a wavefront
// load either four chunks of rows r and r + 2 (k contiguous), or two chunks of rows r, r + 2, r + 4
// and r + 6 (lines contiguous): both are then all 128 bytes of the banks. Copies write whole rows.
//
// C^T is computed: the MMA's first operand is B, so that in layout nn, where B has contiguous lines
// and A contiguous k, 16-byte loads fill the registers of both operands in the order of the MMA. If
// B has contiguous k they would not, so lanes then have other k, loaded singly. A with contiguous
// lines always needs moves.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/async_copy.cuh"
#include "kernels/common/asynchronous.cuh"
#include "kernels/gemm.hpp"
#include "kernels/tensor/mma_f64/mma_f64.cuh"

namespace gemm::tensor {

constexpr int kF64Chunk = 16;  // bytes

__host__ __device__ constexpr int f64_swizzle(int row) { return (row & 2) << 1 | (row & 4) >> 1; }

// The K tile of an operand: kLines rows of A, or columns of B (lines), by kDepth steps of k. Its
// rows are lines if kKMajor, else steps of k. A lane has k = 2 t and 2 t + 1 of a step if kPairs,
// else t and t + 4, loaded singly where k is contiguous. Copies are of kWidth elements: 2, if rows
// of the matrix begin at multiples of 16 bytes, or 1.
template <int kLines, int kDepth, bool kKMajor, bool kPairs, int kWidth, int kThreads>
class F64OperandTile {
 public:
  static constexpr int kBytes = kLines * kDepth * static_cast<int>(sizeof(double));
  static constexpr int kCopies = kBytes / 8 / kWidth / kThreads;  // of a thread

  // The block's lines begin at `first`; `warp_line` is the first line of this warp's tile.
  __device__ F64OperandTile(const double* from, int pitch, int first, int lines, int first_k,
                            int warp_line)
      : step_(std::int64_t{pitch} * kRowsAtOnce) {
    const int t = static_cast<int>(threadIdx.x);
    const int row = t / kPieces, at = t % kPieces * kWidth;
    const int lines_left = min(lines - first, kLines);
    if constexpr (kKMajor) {
      from_ = from + (std::int64_t{first} + row) * pitch + first_k + at;
      k_ = at;
      rows_ = lines_left - row;
    } else {
      from_ = from + (std::int64_t{first_k} + row) * pitch + first + at;
      k_ = row;
      rows_ = at < lines_left ? kRows : 0;
    }
    to_ = row * kPitch + ((at / 2) ^ swizzle(row)) * kF64Chunk + at % 2 * 8;
    const int g = t % 32 / 4, lane_t = t % 4;
    if constexpr (kKMajor)
      lane_ = (warp_line + 2 * g) * kPitch +
              ((kPairs ? lane_t : lane_t / 2) ^ swizzle(2 * g)) * kF64Chunk +
              (kPairs ? 0 : lane_t % 2 * 8);
    else
      lane_ = kLaneRows * lane_t * kPitch +
              ((warp_line / 2 + g) ^ swizzle(kLaneRows * lane_t)) * kF64Chunk;
  }

  // Called before the copies of a K tile of which `left` steps of k are inside the matrix.
  __device__ void begin(int left) {
    inside_ = kKMajor ? (k_ < left ? rows_ : 0) : min(left - k_, rows_);
  }
  // Starts the i-th copy of this thread; i ascends.
  __device__ void copy_to(std::uint32_t tile, int i) {
    copy_async_bytes<8 * kWidth>(
        ((tile + to_) ^ swizzle(i * kRowsAtOnce) * kF64Chunk) + i * kRowsAtOnce * kPitch, from_,
        i * kRowsAtOnce < inside_);
    from_ += step_;
  }
  // Called after the copies of a K tile.
  __device__ void end() {
    if constexpr (kKMajor) from_ += kDepth - kCopies * step_;
  }

  // Loads the fragment of 16 lines, from 16 * i of the warp tile on, in one step of 8 along k.
  __device__ void load(F64Fragment& to, std::uint32_t tile, int i, int step) const {
    const std::uint32_t from =
        kKMajor ? ((tile + lane_) ^ step % 2 * 64) + step / 2 * 128 + 16 * i * kPitch
                : tile + lane_ + i * 128 + 8 * step * kPitch;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      if constexpr (!kKMajor)
        load_two(to.parts[part][0], to.parts[part][1], from + part * kPartRows * kPitch);
      else if constexpr (kPairs)
        load_two(to.parts[0][part], to.parts[1][part], from + part * kPitch);
      else
#pragma unroll
        for (int line = 0; line < 2; ++line)
          load_one(to.parts[part][line], (from ^ part * 2 * kF64Chunk) + line * kPitch);
    }
  }

 private:
  // Rows, where they are steps of k, from one lane to the next and from one k of a lane to the
  // other.
  static constexpr int kLaneRows = kPairs ? 2 : 1, kPartRows = kPairs ? 1 : 4;
  static __host__ __device__ constexpr int swizzle(int row) {
    return f64_swizzle(kKMajor || kPairs ? row : 2 * row);
  }
  static __device__ void load_two(double& x, double& y, std::uint32_t from) {
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x), "=d"(y) : "r"(from) : "memory");
  }
  static __device__ void load_one(double& x, std::uint32_t from) {
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(from) : "memory");
  }

  static constexpr int kPitch = (kKMajor ? kDepth : kLines) * static_cast<int>(sizeof(double));
  static constexpr int kRows = kKMajor ? kLines : kDepth;
  static constexpr int kPieces = kPitch / 8 / kWidth;     // copies of a row
  static constexpr int kRowsAtOnce = kThreads / kPieces;  // copied by all threads
  static_assert(kPitch % 128 == 0, "the swizzle needs whole lines of the banks");
  static_assert(kThreads % kPieces == 0 && kRowsAtOnce * kCopies == kRows);
  static_assert((kRowsAtOnce & (kRowsAtOnce - 1)) == 0, "so that swizzles of rows are XORed");

  const double* from_;
  std::int64_t step_;                  // from one copy of this thread to the next, elements
  int k_, rows_, inside_, to_, lane_;  // k_: position of the first copy along k
};

// m, n and k are below 2^31.
struct F64Problem {
  int m, n, k;
  const double *a, *b;
  double* c;

  F64Problem(const Problem& p, const Operands& o)
      : m(static_cast<int>(p.m)),
        n(static_cast<int>(p.n)),
        k(static_cast<int>(p.k)),
        a(static_cast<const double*>(o.a)),
        b(static_cast<const double*>(o.b)),
        c(static_cast<double*>(o.c)) {}
};

// Block tile kBM x kBN with K tiles of kDepth, warp tile kWM x kWN, kStages stages in shared
// memory, kBlocks blocks per SM.
template <int kBM_, int kBN_, int kDepth_, int kWM_, int kWN_, int kStages_, int kBlocks_,
          F64Mma kMma_ = F64Mma::m16n8k8>
struct F64Shape {
  static constexpr int kBM = kBM_, kBN = kBN_, kDepth = kDepth_, kWM = kWM_, kWN = kWN_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr F64Mma kMma = kMma_;
  static constexpr int kThreads = 32 * (kBM / kWM) * (kBN / kWN);
  static constexpr int kStageBytes = (kBM + kBN) * kDepth * static_cast<int>(sizeof(double));
  static constexpr int kSharedBytes = kStages * kStageBytes;
  static constexpr int kSteps = kDepth / 8;
  // Shared-memory wavefronts per K tile: the copies, and the fragment loads of each warp.
  static constexpr double kWavefronts = (kBM + kBN + kThreads / 32 * (kWM + kWN)) * kDepth / 16.0;

  static_assert(kBM % kWM == 0 && kBN % kWN == 0, "warp tiles must divide the block tile");
  static_assert(kWM % 16 == 0 && kWN % 16 == 0 && kThreads <= 1024);
};

template <typename Shape_, bool kAKMajor, bool kBKMajor, int kWidth>
class F64Tile {
 public:
  using Shape = Shape_;
  static constexpr int kThreads = Shape::kThreads;

  // The fragments of all rows of A in one step.
  struct AFragments {
    F64Fragment rows[Shape::kWM / 16];
  };
  static constexpr int kDown = Shape::kWN / 16, kAcross = Shape::kWM / 8;  // MMAs of C^T

  // The tile at this row and column of C, from K tile `first` to `end`. `shared` is aligned to 128
  // bytes.
  __device__ F64Tile(const F64Problem& p, int row, int column, int first, int end,
                     const std::byte* shared)
      : row_(row),
        column_(column),
        left_(static_cast<int>(min(std::int64_t{p.k}, std::int64_t{end} * kDepth) -
                               std::int64_t{first} * kDepth)),
        shared_(shared_address(shared)),
        a_(p.a, kAKMajor ? p.k : p.m, row, p.m, first * kDepth, warp_row()),
        b_(p.b, kBKMajor ? p.k : p.n, column, p.n, first * kDepth, warp_column()) {}

  __device__ std::uint32_t stage(int i) const { return shared_ + i * Shape::kStageBytes; }

  // Starts one of kParts parts of the copies of the next K tile; zeros beyond the edges and the
  // last K tile.
  template <int kParts>
  __device__ void copy_part_to(std::uint32_t stage, int part) {
    constexpr int kOfA = ATile::kCopies, kAll = kOfA + BTile::kCopies;
    if (part == 0) {
      const int left = max(min(left_, kDepth), 0);
      a_.begin(left);
      b_.begin(left);
    }
#pragma unroll
    for (int i = 0; i < kAll; ++i) {
      if (i < part * kAll / kParts || i >= (part + 1) * kAll / kParts) continue;
      if (i < kOfA)
        a_.copy_to(stage, i);
      else
        b_.copy_to(stage + ATile::kBytes, i - kOfA);
    }
    if (part < kParts - 1) return;
    a_.end();
    b_.end();
    left_ -= kDepth;
    commit_copies();
  }
  __device__ void copy_to(std::uint32_t stage) { copy_part_to<1>(stage, 0); }

  __device__ void load(AFragments& to, std::uint32_t stage, int step) const {
#pragma unroll
    for (int i = 0; i < Shape::kWM / 16; ++i) a_.load(to.rows[i], stage, i, step);
  }
  // Of 16 columns of B.
  __device__ void load(F64Fragment& to, std::uint32_t stage, int step, int j) const {
    b_.load(to, stage + ATile::kBytes, j, step);
  }
  // The MMAs of a step with 16 columns of B.
  __device__ void multiply(const AFragments& a, const F64Fragment& b, int j) {
#pragma unroll
    for (int i = 0; i < kAcross; ++i)
      multiply_f64<Shape::kMma>(acc_[j][i], b, a.rows[i / 2], i % 2);
  }

  __device__ void store(const F64Problem& p) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < kAcross; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const std::int64_t row =
            std::int64_t{row_} + warp_row() + 16 * (i / 2) + 4 * (lane % 4) + 2 * e + i % 2;
        if (row >= p.m) continue;
        const std::int64_t column = std::int64_t{column_} + warp_column() + lane / 4 * 2;
        double* const to = p.c + row * p.n + column;
#pragma unroll
        for (int j = 0; j < kDown; ++j) {
          if (p.n % 2 == 0) {
            if (column + 16 * j < p.n)
              *reinterpret_cast<double2*>(to + 16 * j) = {acc_[j][i][e], acc_[j][i][2 + e]};
          } else {
            if (column + 16 * j < p.n) to[16 * j] = acc_[j][i][e];
            if (column + 16 * j + 1 < p.n) to[16 * j + 1] = acc_[j][i][2 + e];
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
  static constexpr int kDepth = Shape::kDepth;
  using ATile = F64OperandTile<Shape::kBM, kDepth, kAKMajor, !kBKMajor, kWidth, kThreads>;
  using BTile = F64OperandTile<Shape::kBN, kDepth, kBKMajor, !kBKMajor, kWidth, kThreads>;

  static __device__ int warp_row() {
    return static_cast<int>(threadIdx.x) / 32 / (Shape::kBN / Shape::kWN) * Shape::kWM;
  }
  static __device__ int warp_column() {
    return static_cast<int>(threadIdx.x) / 32 % (Shape::kBN / Shape::kWN) * Shape::kWN;
  }

  int row_, column_, left_;  // of the block; left_: what remains of k to copy
  std::uint32_t shared_;
  ATile a_;
  BTile b_;
  double acc_[kDown][kAcross][4] = {};
};

// One step of k without a second set of fragments.
template <typename Tile>
__device__ void multiply_step(Tile& tile, std::uint32_t stage, int step) {
  typename Tile::AFragments a;
  F64Fragment b[Tile::kDown];
  tile.load(a, stage, step);
#pragma unroll
  for (int j = 0; j < Tile::kDown; ++j) tile.load(b[j], stage, step, j);
#pragma unroll
  for (int j = 0; j < Tile::kDown; ++j) tile.multiply(a, b[j], j);
}

// A pipeline of kStages - 1 K tiles in flight. Fragments are loaded ahead of their MMAs into a
// second set of registers: of B during the MMAs of the 16 columns before, of A during the step
// before. Copies are spread among the MMAs.
template <typename Tile>
__device__ void multiply_pipelined(Tile& tile, int k_tiles) {
  constexpr int kStages = Tile::Shape::kStages, kSteps = Tile::Shape::kSteps, kDown = Tile::kDown;
  static_assert(kSteps % 2 == 0, "a K tile must end with the second set");
  typename Tile::AFragments a[2];
  F64Fragment b[2];
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) tile.copy_to(tile.stage(stage));
  int reads = 0, writes = kStages - 1;
  wait_for_copies<kStages - 2>();
  __syncthreads();
  tile.load(a[0], tile.stage(reads), 0);
  tile.load(b[0], tile.stage(reads), 0, 0);
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
      for (int j = 0; j < kDown; ++j) {
        const int set = (step * kDown + j) % 2;
        // The stage was read before the last barrier.
        tile.template copy_part_to<kSteps * kDown>(tile.stage(writes), step * kDown + j);
        if (step + 1 == kSteps && j + 1 == kDown) {
          wait_for_copies<kStages - 2>();
          __syncthreads();  // the next K tile has arrived, and this one's fragments are loaded
          reads = reads + 1 == kStages ? 0 : reads + 1;
          tile.load(a[0], tile.stage(reads), 0);
          tile.load(b[0], tile.stage(reads), 0, 0);
        } else {
          if (step + 1 < kSteps && j == 0)
            tile.load(a[(step + 1) % 2], tile.stage(reads), step + 1);
          if (j + 1 < kDown)
            tile.load(b[1 - set], tile.stage(reads), step, j + 1);
          else
            tile.load(b[1 - set], tile.stage(reads), step + 1, 0);
        }
        tile.multiply(a[step % 2], b[set], j);
      }
    writes = writes + 1 == kStages ? 0 : writes + 1;
  }
}

}  // namespace gemm::tensor
