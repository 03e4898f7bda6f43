// The tile of C of a block that uses `mma.sync`: K tiles of A and B in shared memory, fragments,
// accumulators and epilogue. Shared by the MmaSync rungs, which differ in how K tiles are loaded
// and when fragments are.
//
// A K tile is stored as in the matrix, row by row, in 16-byte chunks. `ldmatrix` reads the same
// chunk of 8 consecutive rows at once, which would be in the same banks. So chunks are swizzled
// within a line of 128 bytes: chunk c of row r is at c ^ (r % 8), or if a row is half a line at c ^
// (r / 2 % 4). Both copies of rows and loads of fragments are then free of bank conflicts, without
// padding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm.hpp"
#include "kernels/parts/async_copy.cuh"
#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/mma.cuh"

namespace gemm::tensor {

constexpr int kChunkBytes = 16, kBankBytes = 128;

// The swizzled position of a chunk in a row of `pitch` bytes.
__host__ __device__ constexpr int swizzled(int pitch, int row, int chunk) {
  return chunk ^ (pitch < kBankBytes ? row / 2 % 4 : row % 8);
}

// A stored matrix whose rows begin at multiples of 16 bytes, `pitch` bytes apart.
struct Rows {
  const std::byte* first;
  std::int64_t pitch;
};

// The K tile of an operand: kLines rows of A, or columns of B (lines), by kDepth bytes along k. Its
// rows are lines if kKMajor, else steps of k.
template <typename Element, bool kOfA, int kLines, int kDepth, bool kKMajor, int kThreads>
class OperandTile {
 public:
  static constexpr int kBytes = kLines * kDepth;
  static constexpr int kPitch =
      kKMajor ? kDepth : kLines * static_cast<int>(sizeof(Element));  // of a row, bytes
  static constexpr int kCopies = kBytes / kChunkBytes / kThreads;     // of a thread
  static_assert(kKMajor || sizeof(Element) == 2, "ldmatrix transposes only 16-bit elements");
  static_assert(kPitch == kBankBytes / 2 || kPitch % kBankBytes == 0,
                "the swizzle needs such rows");

  // The block's lines begin at `first`; `warp_line` is the first line of this warp's tile.
  __device__ OperandTile(const Rows& from, std::int64_t first, std::int64_t lines, int warp_line)
      : pitch_(from.pitch) {
    const int row = static_cast<int>(threadIdx.x) / kChunks;
    const int chunk = static_cast<int>(threadIdx.x) % kChunks;
    const int lines_left = static_cast<int>(min(lines - first, std::int64_t{kLines}));
    if constexpr (kKMajor) {
      from_ = from.first + (first + row) * pitch_ + chunk * kChunkBytes;
      at_ = chunk * kChunkElements;
      rows_ = lines_left - row;
    } else {
      from_ = from.first + row * pitch_ + first * static_cast<int>(sizeof(Element)) +
              chunk * kChunkBytes;
      at_ = row;
      rows_ = chunk * kChunkElements < lines_left ? kRows : 0;
    }
    to_ = row * kPitch + swizzled(kPitch, row, chunk) * kChunkBytes;
    // The part of a fragment that this lane addresses for ldmatrix.
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int lines8 = kOfA ? lane / 8 % 2 : lane / 16, bytes16 = kOfA ? lane / 16 : lane / 8 % 2;
    if constexpr (kKMajor) {
      const int line = lines8 * 8 + lane % 8;
      lane_ = (warp_line + line) * kPitch + swizzled(kPitch, line, bytes16) * kChunkBytes;
    } else {
      const int step = bytes16 * kChunkElements + lane % 8;
      lane_ =
          step * kPitch + swizzled(kPitch, step, warp_line / kChunkElements + lines8) * kChunkBytes;
    }
  }

  // Called before the chunks of a K tile are copied; `left` is what remains of k, capped.
  __device__ void begin(int left) {
    inside_ = kKMajor ? (at_ < left ? rows_ : 0) : min(left - at_, rows_);
  }
  // Calls f(from, to, inside) for this thread's i-th chunk: its address in the matrix, its offset
  // in the K tile, whether it is inside the matrix.
  template <typename F>
  __device__ void chunk(int i, F&& f) const {
    f(from_ + i * kRowsAtOnce * pitch_, to_ + i * kRowsAtOnce * kPitch, i * kRowsAtOnce < inside_);
  }
  // Advances to the next K tile.
  __device__ void end() { from_ += kKMajor ? kDepth : kRows * pitch_; }

  // Loads a fragment from the K tile at this address: 16 lines from 16 * i of the warp tile on, in
  // one step along k.
  __device__ void load(Fragment& to, std::uint32_t k_tile, int i, int step) const {
    constexpr int kPair = 2 * kChunkBytes;
    if constexpr (kKMajor)
      load_fragment<false>(to, ((k_tile + lane_) ^ (step * kPair)) + i * kFragmentLines * kPitch);
    else
      load_fragment<true>(to, ((k_tile + lane_) ^ (i % 4 * kPair)) + i / 4 * kBankBytes +
                                  step * kFragmentLines * kPitch);
  }

 private:
  static constexpr int kChunks = kPitch / kChunkBytes;  // of a row
  static constexpr int kChunkElements = kChunkBytes / static_cast<int>(sizeof(Element));
  static constexpr int kRows = kBytes / kPitch;
  static constexpr int kRowsAtOnce = kThreads / kChunks;  // of a copy of all threads
  static_assert(kThreads % kChunks == 0 && kRowsAtOnce % 8 == 0,
                "all rows of a thread must have the same swizzle");
  static_assert(kCopies * kChunkBytes * kThreads == kBytes);

  const std::byte* from_;
  std::int64_t pitch_;
  int at_, rows_, inside_, to_, lane_;  // at_: position along k, in elements
};

// Block tile kBM x kBN with K tiles of kDepth bytes, warp tile kWM x kWN, kStages stages in shared
// memory, kBlocks blocks per SM.
template <int kBM_, int kBN_, int kDepth_, int kWM_, int kWN_, int kStages_, int kBlocks_>
struct MmaShape {
  static constexpr int kBM = kBM_, kBN = kBN_, kDepth = kDepth_, kWM = kWM_, kWN = kWN_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kThreads = 32 * (kBM / kWM) * (kBN / kWN);
  static constexpr int kStageBytes = (kBM + kBN) * kDepth;
  static constexpr int kSharedBytes = kStages * kStageBytes;
  static constexpr int kSteps = kDepth / kStepBytes;
  // Wavefronts per K tile: the copies, and the fragment loads of each warp.
  static constexpr double kWavefronts = 1.0 * (kBM + kBN) * kDepth / kBankBytes +
                                        1.0 * kThreads / 32 * (kWM + kWN) * kDepth / kBankBytes;

  static_assert(kBM % kWM == 0 && kBN % kWN == 0, "warp tiles must divide the block tile");
  static_assert(kWM % 16 == 0 && kWN % 32 == 0 && kDepth % kStepBytes == 0);
  static_assert(kThreads <= 1024);
};

template <typename Arithmetic_, typename Shape_, bool kAKMajor, bool kBKMajor>
class MmaTile {
 public:
  using Arithmetic = Arithmetic_;
  using Shape = Shape_;
  using Element = typename Arithmetic::Element;
  using Accumulator = typename Arithmetic::Accumulator;
  using Output = typename Arithmetic::Output;
  using ATile = OperandTile<Element, true, Shape::kBM, Shape::kDepth, kAKMajor, Shape::kThreads>;
  using BTile = OperandTile<Element, false, Shape::kBN, Shape::kDepth, kBKMajor, Shape::kThreads>;

  // The fragments of one step along k.
  struct Fragments {
    Fragment a[Shape::kWM / kFragmentLines], b[Shape::kWN / kFragmentLines];
  };

  // `shared` is aligned to 128 bytes.
  __device__ MmaTile(const Problem& p, std::int64_t first_row, std::int64_t first_column,
                     const Rows& a, const Rows& b, const std::byte* shared)
      : m_(p.m),
        n_(p.n),
        row0_(first_row),
        column0_(first_column),
        left_(p.k),
        shared_(shared_address(shared)),
        a_(a, first_row, p.m, warp_row()),
        b_(b, first_column, p.n, warp_column()) {}

  static __device__ int k_tiles(const Problem& p) {
    return static_cast<int>((p.k + kDepth - 1) / kDepth);
  }
  __device__ std::uint32_t stage(int i) const { return shared_ + i * Shape::kStageBytes; }

  // Starts the asynchronous copies of one of kParts parts of the next K tile; zeros beyond the
  // edges.
  template <int kParts>
  __device__ void copy_part_to(std::uint32_t stage, int part) {
    constexpr int kOfA = ATile::kCopies, kAll = kOfA + BTile::kCopies;
    if (part == 0) begin_k_tile();
#pragma unroll
    for (int i = 0; i < kAll; ++i) {
      if (i < part * kAll / kParts || i >= (part + 1) * kAll / kParts) continue;
      if (i < kOfA)
        a_.chunk(i, [&](const std::byte* from, int to, bool inside) {
          copy_async_bytes<kChunkBytes>(stage + to, from, inside);
        });
      else
        b_.chunk(i - kOfA, [&](const std::byte* from, int to, bool inside) {
          copy_async_bytes<kChunkBytes>(stage + ATile::kBytes + to, from, inside);
        });
    }
    if (part == kParts - 1) end_k_tile_copies();
  }
  __device__ void copy_to(std::uint32_t stage) { copy_part_to<1>(stage, 0); }

  // A thread's part of a K tile that is loaded through registers.
  struct KTileRegisters {
    uint4 a[ATile::kCopies], b[BTile::kCopies];
    int a_to[ATile::kCopies], b_to[BTile::kCopies];
  };
  __device__ void load_k_tile(KTileRegisters& registers) {
    const auto load = [](const std::byte* from, bool inside) {
      return inside ? *reinterpret_cast<const uint4*>(from) : uint4{};
    };
    begin_k_tile();
#pragma unroll
    for (int i = 0; i < ATile::kCopies; ++i)
      a_.chunk(i, [&](const std::byte* from, int to, bool inside) {
        registers.a[i] = load(from, inside);
        registers.a_to[i] = to;
      });
#pragma unroll
    for (int i = 0; i < BTile::kCopies; ++i)
      b_.chunk(i, [&](const std::byte* from, int to, bool inside) {
        registers.b[i] = load(from, inside);
        registers.b_to[i] = ATile::kBytes + to;
      });
    end_k_tile_copies();
  }
  static __device__ void store_k_tile(const KTileRegisters& registers, std::byte* stage) {
#pragma unroll
    for (int i = 0; i < ATile::kCopies; ++i)
      *reinterpret_cast<uint4*>(stage + registers.a_to[i]) = registers.a[i];
#pragma unroll
    for (int i = 0; i < BTile::kCopies; ++i)
      *reinterpret_cast<uint4*>(stage + registers.b_to[i]) = registers.b[i];
  }

  __device__ void load_fragments(Fragments& to, std::uint32_t stage, int step) const {
#pragma unroll
    for (int i = 0; i < Shape::kWM / kFragmentLines; ++i) a_.load(to.a[i], stage, i, step);
#pragma unroll
    for (int j = 0; j < Shape::kWN / kFragmentLines; ++j)
      b_.load(to.b[j], stage + ATile::kBytes, j, step);
  }
  // The MMAs of a step, in serpentine order, so that consecutive ones share an operand. Calls
  // between(row) before each of kRows rows of MMAs.
  static constexpr int kRows = Shape::kWM / 16;
  template <typename F>
  __device__ void multiply(Fragments& of, F&& between) {
#pragma unroll
    for (Fragment& a : of.a) round_fragment<Arithmetic>(a);
#pragma unroll
    for (Fragment& b : of.b) round_fragment<Arithmetic>(b);
    multiply_rounded(of, between);
  }
  // The same, with fragments that are already rounded to TF32.
  template <typename F>
  __device__ void multiply_rounded(const Fragments& of, F&& between) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      between(i);
#pragma unroll
      for (int j = 0; j < kAcross; ++j) {
        const int serpentine = i % 2 == 0 ? j : kAcross - 1 - j;
        multiply_16x8<Arithmetic>(acc_[i][serpentine], of.a[i], of.b[serpentine / 2],
                                  serpentine % 2);
      }
    }
  }
  __device__ void multiply(Fragments& of) {
    multiply(of, [](int) {});
  }

  // Called after each K tile: promotes accumulators.
  __device__ void end_k_tile() {
    if constexpr (Arithmetic::kPromoted) {
      static_assert(Shape::kDepth == kPromotion, "accumulators are promoted after each K tile");
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kAcross; ++j)
#pragma unroll
          for (int l = 0; l < 4; ++l) {
            totals_[i][j][l] += acc_[i][j][l];
            acc_[i][j][l] = 0;
          }
    }
  }

  // f(accumulator, index) for all of this thread.
  template <typename F>
  __device__ void for_each_accumulator(F f) {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kAcross; ++j)
#pragma unroll
        for (int l = 0; l < 4; ++l) f(acc_[i][j][l], (i * kAcross + j) * 4 + l);
  }

  __device__ void store(Output* c) const {
    const auto& totals = [&]() -> const auto& {
      if constexpr (Arithmetic::kPromoted)
        return totals_;
      else
        return acc_;
    }
    ();
    const int lane = static_cast<int>(threadIdx.x) % 32, part = lane % 4;
    const std::int64_t column = column0_ + warp_column();
    const bool whole = n_ % 8 == 0;
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t row = row0_ + warp_row() + 16 * i + 8 * half + lane / 4;
        Output* const to = c + row * n_ + column;
        const auto pair = [&](int j) {
          return Pair{static_cast<Output>(totals[i][j][2 * half]),
                      static_cast<Output>(totals[i][j][2 * half + 1])};
        };
        if (sizeof(Output) == 2 && whole) {
#pragma unroll
          for (int j = 0; j < kAcross; j += 4) {
            const uint4 eight = of_four_lanes(pair(j), pair(j + 1), pair(j + 2), pair(j + 3));
            if (row < m_ && column + 8 * (j + part) < n_)
              *reinterpret_cast<uint4*>(to + 8 * (j + part)) = eight;
          }
          continue;
        }
        if (row >= m_) continue;
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
          const int at = 8 * j + 2 * part;
          const Pair both = pair(j);
          if (n_ % 2 == 0) {
            if (column + at < n_) *reinterpret_cast<Pair*>(to + at) = both;
          } else {
            if (column + at < n_) to[at] = both.x;
            if (column + at + 1 < n_) to[at + 1] = both.y;
          }
        }
      }
  }

 protected:
  static constexpr int kDepth = Shape::kDepth / static_cast<int>(sizeof(Element));  // elements
  static constexpr int kAcross = Shape::kWN / 8;                                    // MMAs per row
  struct alignas(2 * sizeof(Output)) Pair {
    Output x, y;
  };

  // Transposes among four lanes, so that each has eight consecutive elements of one row.
  static __device__ uint4 of_four_lanes(Pair p0, Pair p1, Pair p2, Pair p3) {
    std::uint32_t x[4] = {bits(p0), bits(p1), bits(p2), bits(p3)};
#pragma unroll
    for (int apart = 1; apart < 4; apart *= 2) {
      const bool upper = threadIdx.x & apart;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i & apart) continue;
        const std::uint32_t other = __shfl_xor_sync(0xffffffff, upper ? x[i] : x[i + apart], apart);
        (upper ? x[i] : x[i + apart]) = other;
      }
    }
    return {x[0], x[1], x[2], x[3]};
  }
  static __device__ std::uint32_t bits(const Pair& pair) {
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  }

  __device__ void begin_k_tile() {
    const int left = static_cast<int>(max(min(left_, std::int64_t{kDepth}), std::int64_t{0}));
    a_.begin(left);
    b_.begin(left);
  }
  __device__ void end_k_tile_copies() {
    a_.end();
    b_.end();
    left_ -= kDepth;
  }
  static __device__ int warp_row() {
    return static_cast<int>(threadIdx.x) / 32 / (Shape::kBN / Shape::kWN) * Shape::kWM;
  }
  static __device__ int warp_column() {
    return static_cast<int>(threadIdx.x) / 32 % (Shape::kBN / Shape::kWN) * Shape::kWN;
  }

  std::int64_t m_, n_, row0_, column0_, left_;  // left_: what remains of k to copy
  std::uint32_t shared_;
  ATile a_;
  BTile b_;
  Accumulator acc_[kRows][kAcross][4] = {};
  Accumulator totals_[Arithmetic::kPromoted ? kRows : 1][kAcross][4] = {};
};

// The main loop of MmaSyncDoubleBuffer and MmaSyncRasterized: a multistage pipeline of K tiles, and
// fragments of the next step that are loaded during the MMAs of this one.
template <typename Tile>
__device__ void multiply_double_buffered(Tile& tile, int k_tiles) {
  constexpr int kStages = Tile::Shape::kStages, kSteps = Tile::Shape::kSteps;
  static_assert(kSteps % 2 == 0, "a K tile must end with the second set");
  typename Tile::Fragments fragments[2];
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    tile.copy_to(tile.stage(stage));
    commit_copies();
  }
  int reads = 0, writes = kStages - 1;
  wait_for_copies<kStages - 2>();
  __syncthreads();
  tile.load_fragments(fragments[0], tile.stage(reads), 0);
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step + 1 == kSteps) {
        // The next K tile has arrived, and all warps have loaded the last fragments of this one.
        wait_for_copies<kStages - 3>();
        __syncthreads();
        reads = reads + 1 == kStages ? 0 : reads + 1;
      }
      tile.load_fragments(fragments[(step + 1) % 2], tile.stage(reads), (step + 1) % kSteps);
      tile.multiply(fragments[step % 2], [&](int row) {
        tile.template copy_part_to<kSteps * Tile::kRows>(tile.stage(writes),
                                                         step * Tile::kRows + row);
      });
    }
    commit_copies();
    writes = writes + 1 == kStages ? 0 : writes + 1;
    tile.end_k_tile();
  }
}

}  // namespace gemm::tensor
