// The tile of C of a block that multiplies FP64 on tensor cores: K tiles of A and B in shared
// memory, fragments, accumulators and epilogue. Shared by the MmaF64 rungs, which differ in when K
// tiles and fragments are loaded.
//
// A line is a row of A or a column of B. A K tile is stored as in the matrix, row by row, in
// 16-byte chunks of two elements. Chunk c of row r is at c ^ f(r), with f = 0, 4, 2, 6 for r / 2 %
// 4 = 0, 1, 2, 3. The 8 lanes of a wavefront load either four chunks of rows r and r + 2 (k
// contiguous), or two chunks of rows r, r + 2, r + 4 and r + 6 (lines contiguous), and in both
// cases from all banks once. Copies write whole rows.
//
// C^T is computed: the MMA's first operand is B, so that in layout nn, where B has contiguous lines
// and A contiguous k, 16-byte loads fill the registers of both operands in the order of the MMA. If
// B has contiguous k they would not, so lanes then have other k, loaded singly. A with contiguous
// lines always needs moves.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm.hpp"
#include "kernels/parts/async_copy.cuh"
#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/mma_f64.cuh"
#include "kernels/parts/ring.cuh"

namespace gemm::tensor {

constexpr int kF64Chunk = 16;  // bytes

__host__ __device__ constexpr int f64_swizzle(int row) { return (row & 2) << 1 | (row & 4) >> 1; }

// The K tile of an operand: kLines rows of A, or columns of B (lines), by kDepth steps of k. Its
// rows are lines if kKMajor, else steps of k. A lane has k = 2 t and 2 t + 1 of a step if kPairs,
// else t and t + 4, loaded singly where k is contiguous. Copies are of kWidth elements: 2, if rows
// of the matrix begin at multiples of 16 bytes, or 1. kThreads threads copy, from kFirst on.
template <int kLines, int kDepth, bool kKMajor, bool kPairs, int kWidth, int kThreads,
          int kFirst = 0>
class F64OperandTile {
 public:
  static constexpr int kBytes = kLines * kDepth * static_cast<int>(sizeof(double));
  static constexpr int kCopies = kBytes / 8 / kWidth / kThreads;  // of a thread

  // `warp_line` is the first line of this warp's tile.
  __device__ F64OperandTile(int pitch, int warp_line) : step_(std::int64_t{pitch} * kRowsAtOnce) {
    const int row = copied_row(), at = copied_column();
    k_ = kKMajor ? at : row;
    to_ = row * kPitch + ((at / 2) ^ swizzle(row)) * kF64Chunk + at % 2 * 8;
    const int g = static_cast<int>(threadIdx.x) % 32 / 4, t = static_cast<int>(threadIdx.x) % 4;
    if constexpr (kKMajor)
      lane_ = (warp_line + 2 * g) * kPitch + ((kPairs ? t : t / 2) ^ swizzle(2 * g)) * kF64Chunk +
              (kPairs ? 0 : t % 2 * 8);
    else
      lane_ = kLaneRows * t * kPitch + ((warp_line / 2 + g) ^ swizzle(kLaneRows * t)) * kF64Chunk;
  }

  // The next copies are of the block's lines from `first` and steps of k from `first_k` on.
  __device__ void move_to(const double* from, int pitch, int first, int lines, int first_k) {
    const int row = copied_row(), at = copied_column(), lines_left = min(lines - first, kLines);
    from_ = from + (kKMajor ? (std::int64_t{first} + row) * pitch + first_k + at
                            : (std::int64_t{first_k} + row) * pitch + first + at);
    rows_ = kKMajor ? lines_left - row : at < lines_left ? kRows : 0;
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

  // The first copy of this thread in a K tile.
  static __device__ int copied_row() { return (static_cast<int>(threadIdx.x) - kFirst) / kPieces; }
  static __device__ int copied_column() { return static_cast<int>(threadIdx.x) % kPieces * kWidth; }

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
// memory, kBlocks blocks per SM. kApart: a warpgroup of its own copies (F64ApartPipeline).
template <int kBM_, int kBN_, int kDepth_, int kWM_, int kWN_, int kStages_, int kBlocks_,
          F64Mma kMma_ = F64Mma::m16n8k8, bool kApart_ = false>
struct F64Shape {
  static constexpr int kBM = kBM_, kBN = kBN_, kDepth = kDepth_, kWM = kWM_, kWN = kWN_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr F64Mma kMma = kMma_;
  static constexpr bool kApart = kApart_;
  static constexpr int kThreads = 32 * (kBM / kWM) * (kBN / kWN);  // that multiply
  static constexpr int kCopyThreads = kApart ? 128 : kThreads;
  static constexpr int kBlockThreads = kApart ? kThreads + kCopyThreads : kThreads;
  static constexpr int kStageBytes = (kBM + kBN) * kDepth * static_cast<int>(sizeof(double));
  static constexpr int kSharedBytes = kStages * kStageBytes + (kApart ? kSwizzleAlignment : 0);
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

  // `shared` is aligned to 128 bytes.
  __device__ F64Tile(const F64Problem& p, const std::byte* shared)
      : shared_(shared_address(shared)),
        a_(kAKMajor ? p.k : p.m, warp_row()),
        b_(kBKMajor ? p.k : p.n, warp_column()) {}

  // The tile at this row and column of C, so far zero.
  __device__ void begin(int row, int column) {
    row_ = row;
    column_ = column;
    for_each_accumulator([](double& sum, int) { sum = 0; });
  }
  // The next copies are for a tile at this row and column, from K tile `first` to `end`.
  __device__ void copy_from(const F64Problem& p, int row, int column, int first, int end) {
    left_ = static_cast<int>(min(std::int64_t{p.k}, std::int64_t{end} * kDepth) -
                             std::int64_t{first} * kDepth);
    a_.move_to(p.a, kAKMajor ? p.k : p.m, row, p.m, first * kDepth);
    b_.move_to(p.b, kBKMajor ? p.k : p.n, column, p.n, first * kDepth);
  }
  __device__ int k_tiles_to_copy() const { return max(left_ + kDepth - 1, 0) / kDepth; }

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
    if constexpr (!Shape::kApart) commit_copies();
  }
  __device__ void copy_to(std::uint32_t stage) { copy_part_to<1>(stage, 0); }

  __device__ void load(AFragments& to, std::uint32_t stage, int step) const {
#pragma unroll
    for (int i = 0; i < Shape::kWM / 16; ++i) a_.load(to.rows[i], stage, i, step);
  }
  // One of kParts parts of them.
  template <int kParts>
  __device__ void load_part(AFragments& to, std::uint32_t stage, int step, int part) const {
    constexpr int kAll = Shape::kWM / 16;
#pragma unroll
    for (int i = part * kAll / kParts; i < (part + 1) * kAll / kParts; ++i)
      a_.load(to.rows[i], stage, i, step);
  }
  // Of 16 columns of B.
  __device__ void load(F64Fragment& to, std::uint32_t stage, int step, int j) const {
    b_.load(to, stage + ATile::kBytes, j, step);
  }
  // The MMAs of a step with 16 columns of B.
  __device__ void multiply(const AFragments& a, const F64Fragment& b, int j, int first = 0,
                           int end = kAcross) {
#pragma unroll
    for (int i = 0; i < kAcross; ++i)
      if (i >= first && i < end) multiply_f64<Shape::kMma>(acc_[j][i], b, a.rows[i / 2], i % 2);
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
  using ATile = F64OperandTile<Shape::kBM, kDepth, kAKMajor, !kBKMajor, kWidth, Shape::kCopyThreads,
                               Shape::kBlockThreads - Shape::kCopyThreads>;
  using BTile = F64OperandTile<Shape::kBN, kDepth, kBKMajor, !kBKMajor, kWidth, Shape::kCopyThreads,
                               Shape::kBlockThreads - Shape::kCopyThreads>;

  static __device__ int warp_row() {
    return static_cast<int>(threadIdx.x) / 32 / (Shape::kBN / Shape::kWN) * Shape::kWM;
  }
  static __device__ int warp_column() {
    return static_cast<int>(threadIdx.x) / 32 % (Shape::kBN / Shape::kWN) * Shape::kWN;
  }

  int row_ = 0, column_ = 0, left_ = 0;  // of the block; left_: what remains of k to copy
  std::uint32_t shared_;
  ATile a_;
  BTile b_;
  double acc_[kDown][kAcross][4];
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

// A pipeline of kStages - 1 K tiles in flight, which runs on from one piece of a tile to the next:
// the first K tiles of a piece are copied while the piece before is multiplied and stored.
// Fragments are loaded ahead of their MMAs into a second set of registers: of B during the MMAs of
// the 16 columns before, of A during the step before. Copies are spread among the MMAs.
//
// Tile::copy_next_piece() calls copy_from() for the next piece, if there is one.
template <typename Tile>
class F64Pipeline {
 public:
  __device__ explicit F64Pipeline(Tile& tile) {
#pragma unroll 1
    for (int stage = 0; stage < kStages - 1; ++stage) {
      if (tile.k_tiles_to_copy() == 0) tile.copy_next_piece();
      tile.copy_to(tile.stage(stage));
    }
    begin_stage(tile);
  }

  // Adds the product over the next K tiles.
  __device__ void multiply(Tile& tile, int k_tiles) {
    while (k_tiles > 0) {
      if (tile.k_tiles_to_copy() == 0) tile.copy_next_piece();
      const int to_copy = tile.k_tiles_to_copy();  // none after the last piece
      const int count = to_copy == 0 ? k_tiles : min(k_tiles, to_copy);
      multiply_k_tiles(tile, count);
      k_tiles -= count;
    }
  }

 private:
  static constexpr int kStages = Tile::Shape::kStages, kSteps = Tile::Shape::kSteps,
                       kDown = Tile::kDown;
  static_assert(kSteps % 2 == 0, "a K tile must end with the second set");

  // Copies as many K tiles.
  __device__ void multiply_k_tiles(Tile& tile, int k_tiles) {
#pragma unroll 1
    for (; k_tiles > 0; --k_tiles) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
#pragma unroll
        for (int j = 0; j < kDown; ++j) {
          const int set = (step * kDown + j) % 2;
          // The stage was read before the last barrier.
          tile.template copy_part_to<kSteps * kDown>(tile.stage(writes_), step * kDown + j);
          if (step + 1 == kSteps && j + 1 == kDown) {
            reads_ = reads_ + 1 == kStages ? 0 : reads_ + 1;
            begin_stage(tile);
          } else {
            if (step + 1 < kSteps && j == 0)
              tile.load(a_[(step + 1) % 2], tile.stage(reads_), step + 1);
            if (j + 1 < kDown)
              tile.load(b_[1 - set], tile.stage(reads_), step, j + 1);
            else
              tile.load(b_[1 - set], tile.stage(reads_), step + 1, 0);
          }
          tile.multiply(a_[step % 2], b_[set], j);
        }
      writes_ = writes_ + 1 == kStages ? 0 : writes_ + 1;
    }
  }
  // The next K tile has arrived, and all fragments of the one before are loaded.
  __device__ void begin_stage(const Tile& tile) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    tile.load(a_[0], tile.stage(reads_), 0);
    tile.load(b_[0], tile.stage(reads_), 0, 0);
  }

  typename Tile::AFragments a_[2];
  F64Fragment b_[2];
  int reads_ = 0, writes_ = kStages - 1;
};

#if __CUDA_ARCH__ >= 900
// The producer of F64ApartPipeline, a warpgroup: the copies of all pieces, and a last stage without
// any, because the consumers read one stage ahead.
template <typename Tile>
__device__ void copy_apart(Tile& tile, Ring<Tile::Shape::kStageBytes> ring) {
  for (bool copies = true; copies; ring.next()) {
    if (tile.k_tiles_to_copy() == 0) tile.copy_next_piece();
    copies = tile.k_tiles_to_copy() > 0;
    wait(ring.empty(), ring.parity ^ 1);
    if (copies) tile.copy_to(ring.data());
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(ring.full())
                 : "memory");
  }
  commit_copies();
  wait_for_copies<0>();
}

// The main loop if another warpgroup copies. A warp waits for copies only, not for other warps. It
// loads fragments of the next 16 columns of B after the first MMA with the current ones: before it,
// they would overwrite registers that the last MMA may not have read yet.
template <typename Tile>
class F64ApartPipeline {
 public:
  __device__ F64ApartPipeline(Tile& tile, const Ring<Tile::Shape::kStageBytes>& ring)
      : ring_(ring) {
    ring_.wait_for_stage();
    tile.load(a_[0], ring_.data(), 0);
    tile.load(b_[0], ring_.data(), 0, 0);
  }

  // Adds the product over the next K tiles.
  __device__ void multiply(Tile& tile, int k_tiles) {
#pragma unroll 1
    for (; k_tiles > 0; --k_tiles)
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
#pragma unroll
        for (int j = 0; j < kDown; ++j) {
          const int group = step * kDown + j, ahead = group + 1;
          tile.multiply(a_[step % 2], b_[group % 2], j, 0, 1);
          __syncwarp();
          if (ahead == kSteps * kDown) {
            release(ring_.empty());
            ring_.next();
            ring_.wait_for_stage();
            tile.load(a_[0], ring_.data(), 0);
          } else if (step + 1 < kSteps) {
            tile.template load_part<kDown>(a_[(step + 1) % 2], ring_.data(), step + 1, j);
          }
          tile.load(b_[ahead % 2], ring_.data(), ahead / kDown % kSteps, ahead % kDown);
          __syncwarp();
          tile.multiply(a_[step % 2], b_[group % 2], j, 1);
        }
  }

 private:
  static constexpr int kSteps = Tile::Shape::kSteps, kDown = Tile::kDown;
  static_assert(kSteps % 2 == 0, "a K tile must end with the second set");

  Ring<Tile::Shape::kStageBytes> ring_;
  typename Tile::AFragments a_[2];
  F64Fragment b_[2];
};
#endif

}  // namespace gemm::tensor
