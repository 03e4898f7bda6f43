// The tile of C that a block computes with `mma.sync`: K tiles of A and B in shared memory, of
// which warps load fragments. What the rungs of MmaSync have in common; what each adds is how K
// tiles come in and when fragments are loaded.
//
// A K tile lies in shared memory as it lies in the matrix, rows of it one after another, in chunks
// of 16 bytes. `ldmatrix` wants the same chunk of 8 neighbouring rows at once, which would be in
// the same banks. So chunks change places within a line of 128 bytes: chunk c of row r is at
// c ^ (r % 8), or, where a row is half a line, at c ^ (r / 2 % 4). Copies of whole rows and loads
// of fragments then both meet all banks once, and nothing is spent on padding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/async_copy.cuh"
#include "kernels/gemm.hpp"
#include "kernels/tensor/mma_sync/mma.cuh"

namespace gemm::tensor {

constexpr int kChunkBytes = 16, kBankBytes = 128;

// Where a chunk of a row of so many bytes is, counted from the beginning of the row.
__host__ __device__ constexpr int swizzled(int pitch, int row, int chunk) {
  return chunk ^ (pitch < kBankBytes ? row / 2 % 4 : row % 8);
}

// A stored matrix whose rows begin at multiples of 16 bytes, with `pitch` bytes from one to the
// next.
struct Rows {
  const std::byte* first;
  std::int64_t pitch;
};

__device__ inline std::uint32_t address_in_shared(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// kLines rows of A, or columns of B, and kDepth bytes of each along k: rows of shared memory, as of
// the matrix, are lines if kKMajor, else steps of k.
template <typename Element, bool kOfA, int kLines, int kDepth, bool kKMajor, int kThreads>
class OperandTile {
 public:
  static constexpr int kBytes = kLines * kDepth;
  static constexpr int kPitch =
      kKMajor ? kDepth : kLines * static_cast<int>(sizeof(Element));  // of a row, bytes
  static constexpr int kCopies = kBytes / kChunkBytes / kThreads;     // of a thread
  static_assert(kKMajor || sizeof(Element) == 2, "ldmatrix turns 16 bits");
  static_assert(kPitch == kBankBytes / 2 || kPitch % kBankBytes == 0, "as rows are swizzled");

  // Of `lines` the block has those from `first` on. `warp_line` is the first line of the tile that
  // this warp multiplies.
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
    // Of the four parts of a fragment, which eight lanes each point to.
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

  // Before the chunks of a K tile are copied. Of k so much is left, or more than a K tile has.
  __device__ void begin(int left) {
    inside_ = kKMajor ? (at_ < left ? rows_ : 0) : min(left - at_, rows_);
  }
  // Calls f(from, to, inside) for this thread's i-th chunk: where it is in the matrix, if inside,
  // and in a K tile in shared memory.
  template <typename F>
  __device__ void chunk(int i, F&& f) const {
    f(from_ + i * kRowsAtOnce * pitch_, to_ + i * kRowsAtOnce * kPitch, i * kRowsAtOnce < inside_);
  }
  // On to the next K tile.
  __device__ void end() { from_ += kKMajor ? kDepth : kRows * pitch_; }

  // Of the K tile at this address, 16 lines from 16 * i of the warp's on, in one step along k.
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
  static_assert(kThreads % kChunks == 0 && kRowsAtOnce % 8 == 0, "a thread's rows look alike");
  static_assert(kCopies * kChunkBytes * kThreads == kBytes);

  const std::byte* from_;
  std::int64_t pitch_;
  int at_, rows_, inside_, to_, lane_;  // at_: along k, elements
};

// A block computes kBM x kBN of C, a warp kWM x kWN of it, in K tiles of kDepth bytes along k, of
// which shared memory holds kStages. kBlocks of them shall fit an SM.
template <int kBM_, int kBN_, int kDepth_, int kWM_, int kWN_, int kStages_, int kBlocks_>
struct MmaShape {
  static constexpr int kBM = kBM_, kBN = kBN_, kDepth = kDepth_, kWM = kWM_, kWN = kWN_;
  static constexpr int kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kThreads = 32 * (kBM / kWM) * (kBN / kWN);
  static constexpr int kStageBytes = (kBM + kBN) * kDepth;
  static constexpr int kSharedBytes = kStages * kStageBytes;
  static constexpr int kSteps = kDepth / kStepBytes;
  // Of a K tile, each of 128 bytes: it arrives, and each warp loads its fragments.
  static constexpr double kWavefronts = 1.0 * (kBM + kBN) * kDepth / kBankBytes +
                                        1.0 * kThreads / 32 * (kWM + kWN) * kDepth / kBankBytes;

  static_assert(kBM % kWM == 0 && kBN % kWN == 0, "warps divide the block's tile");
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

  // Of one step along k.
  struct Fragments {
    Fragment a[Shape::kWM / kFragmentLines], b[Shape::kWN / kFragmentLines];
  };

  // Shared memory begins at a multiple of 128 bytes.
  __device__ MmaTile(const Problem& p, std::int64_t first_row, std::int64_t first_column,
                     const Rows& a, const Rows& b, const std::byte* shared)
      : m_(p.m),
        n_(p.n),
        row0_(first_row),
        column0_(first_column),
        left_(p.k),
        shared_(address_in_shared(shared)),
        a_(a, first_row, p.m, warp_row()),
        b_(b, first_column, p.n, warp_column()) {}

  static __device__ int k_tiles(const Problem& p) {
    return static_cast<int>((p.k + kDepth - 1) / kDepth);
  }
  __device__ std::uint32_t stage(int i) const { return shared_ + i * Shape::kStageBytes; }

  // One of kParts parts of the next K tile, past the registers. Zeros take the place of what lies
  // beyond the edges.
  template <int kParts>
  __device__ void copy_part_to(std::uint32_t stage, int part) {
    const auto copy = [](std::uint32_t to, const std::byte* from, bool inside) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                   "r"(inside ? kChunkBytes : 0)
                   : "memory");
#endif
    };
    constexpr int kOfA = ATile::kCopies, kAll = kOfA + BTile::kCopies;
    if (part == 0) begin_k_tile();
#pragma unroll
    for (int i = 0; i < kAll; ++i) {
      if (i < part * kAll / kParts || i >= (part + 1) * kAll / kParts) continue;
      if (i < kOfA)
        a_.chunk(
            i, [&](const std::byte* from, int to, bool inside) { copy(stage + to, from, inside); });
      else
        b_.chunk(i - kOfA, [&](const std::byte* from, int to, bool inside) {
          copy(stage + ATile::kBytes + to, from, inside);
        });
    }
    if (part == kParts - 1) end_k_tile_copies();
  }
  __device__ void copy_to(std::uint32_t stage) { copy_part_to<1>(stage, 0); }

  // The next K tile, through registers.
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
  // To and fro, so that neighbouring products share an operand. Before each of kRows rows of
  // products between(row) is called.
  static constexpr int kRows = Shape::kWM / 16;
  template <typename F>
  __device__ void multiply(Fragments& of, F&& between) {
#pragma unroll
    for (Fragment& a : of.a) round_fragment<Arithmetic>(a);
#pragma unroll
    for (Fragment& b : of.b) round_fragment<Arithmetic>(b);
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

  // After each K tile.
  __device__ void end_k_tile() {
    if constexpr (Arithmetic::kPromoted) {
      static_assert(Shape::kDepth == kPromotion, "sums of one slice are promoted");
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

 private:
  static constexpr int kDepth = Shape::kDepth / static_cast<int>(sizeof(Element));  // elements
  static constexpr int kAcross = Shape::kWN / 8;  // products of a row
  struct alignas(2 * sizeof(Output)) Pair {
    Output x, y;
  };

  // Four lanes have two neighbours each of four rows of eight; then each has one of these rows.
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

  std::int64_t m_, n_, row0_, column0_, left_;  // left_: of k, not copied yet
  std::uint32_t shared_;
  ATile a_;
  BTile b_;
  Accumulator acc_[kRows][kAcross][4] = {};
  Accumulator totals_[Arithmetic::kPromoted ? kRows : 1][kAcross][4] = {};
};

}  // namespace gemm::tensor
