// The tile of C of a block that uses mma.sync, in four steps: copy K tiles of A and B to shared
// memory, load fragments, multiply, store. The MmaSync rungs differ in when they do each.
//
// A line is a row of A or a column of B. A K tile is 64 bytes of each line of the block, those of A
// first, in chunks of 16 bytes. `ldmatrix` reads the same chunk of eight lines at once, which would
// be in the same two groups of banks. So chunks are swizzled: chunk c of line l is at c ^ (l / 2 %
// 4). Copies and loads of fragments are then free of bank conflicts, without padding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/parts/async_copy.cuh"
#include "kernels/parts/mma.cuh"

namespace gemm::tensor {

// Tiles of C of a block and of a warp, and stages of shared memory.
template <typename Arithmetic_, int kBM_, int kBN_, int kWM, int kWN, int kStages_>
class MmaSyncTile {
 public:
  using Arithmetic = Arithmetic_;
  using Element = typename Arithmetic::Element;
  using Output = typename Arithmetic::Output;
  static constexpr int kBM = kBM_, kBN = kBN_, kStages = kStages_;
  static constexpr int kThreads = 32 * (kBM / kWM) * (kBN / kWN);
  static constexpr int kLine = 64, kChunk = 16;  // bytes
  static constexpr int kDepth = kLine / static_cast<int>(sizeof(Element));
  static constexpr int kStageBytes = (kBM + kBN) * kLine, kSharedBytes = kStages * kStageBytes;
  static constexpr int kCopies = kStageBytes / kChunk / kThreads;  // of a thread, of a K tile
  static constexpr int kSteps = kLine / kStepBytes;                // of MMAs along k
  static constexpr int kDown = kWM / 16, kAcross = kWN / 8;        // MMAs of a warp
  // Of shared memory per K tile: the copies, and the fragments that each warp loads.
  static constexpr double kMovedBytes = kStageBytes + kThreads / 32.0 * (kWM + kWN) * kLine;

  struct Fragments {  // of one step
    Fragment a[kWM / kFragmentLines], b[kWN / kFragmentLines];
  };

  __device__ MmaSyncTile(const Problem& p, Tiles::Place place, const Element* a, const Element* b,
                         const std::byte* shared)
      : m_(p.m),
        n_(p.n),
        row0_(std::int64_t{place.row} * kBM),
        column0_(std::int64_t{place.column} * kBN),
        pitch_(p.k * static_cast<int>(sizeof(Element))),
        shared_(static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))) {
    const int line = static_cast<int>(threadIdx.x) / kChunks,
              chunk = static_cast<int>(threadIdx.x) % kChunks;
    a_ = reinterpret_cast<const std::byte*>(a) + (row0_ + line) * pitch_ + chunk * kChunk;
    b_ = reinterpret_cast<const std::byte*>(b) + (column0_ + line) * pitch_ + chunk * kChunk;
    to_ = place_of(line, chunk);
    rows_ = static_cast<int>(min(m_ - row0_, std::int64_t{kBM})) - line;
    columns_ = static_cast<int>(min(n_ - column0_, std::int64_t{kBN})) - line;
    left_ = pitch_ - chunk * kChunk;
    if (left_ <= 0) rows_ = columns_ = 0;
    // ldmatrix takes an address of each lane: of eight lines by 16 bytes for each eight lanes.
    const int lane = static_cast<int>(threadIdx.x) % 32;
    lane_a_ = place_of(warp_row() + lane / 8 % 2 * 8 + lane % 8, lane / 16);
    lane_b_ = place_of(kBM + warp_column() + lane / 16 * 8 + lane % 8, lane / 8 % 2);
  }

  static __device__ int k_tiles(const Problem& p) {
    return static_cast<int>((p.k + kDepth - 1) / kDepth);
  }
  __device__ std::uint32_t stage(int i) const { return shared_ + i * kStageBytes; }

  // --- Copy: f(from, to, inside) for this thread's chunk i of the next K tile: its address, its
  // offset in the stage, whether it is inside the matrix. Then next_k_tile().
  template <typename F>
  __device__ void chunk(int i, F&& f) const {
    const int line = i * (kThreads / kChunks);
    if (line < kBM)
      f(a_ + line * pitch_, to_ + line * kLine, line < rows_);
    else
      f(b_ + (line - kBM) * pitch_, to_ + line * kLine, line - kBM < columns_);
  }
  __device__ void next_k_tile() {
    a_ += kLine;
    b_ += kLine;
    left_ -= kLine;
    if (left_ <= 0) rows_ = columns_ = 0;  // beyond the end of k
  }
  // One of kParts parts of the copies of the next K tile, by cp.async.
  template <int kParts>
  __device__ void copy_part_to(std::uint32_t stage, int part) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i)
      if (i >= part * kCopies / kParts && i < (part + 1) * kCopies / kParts)
        chunk(i, [&](const std::byte* from, int to, bool inside) {
          copy_async_bytes<kChunk>(stage + to, from, inside);
        });
    if (part == kParts - 1) next_k_tile();
  }
  __device__ void copy_to(std::uint32_t stage) { copy_part_to<1>(stage, 0); }

  // --- Load: the fragments of one step.
  __device__ void load(Fragments& to, std::uint32_t stage, int step) const {
#pragma unroll
    for (int i = 0; i < kWM / kFragmentLines; ++i)
      load_fragment<false>(to.a[i],
                           ((stage + lane_a_) ^ (step * kStepBytes)) + i * kFragmentLines * kLine);
#pragma unroll
    for (int j = 0; j < kWN / kFragmentLines; ++j)
      load_fragment<false>(to.b[j],
                           ((stage + lane_b_) ^ (step * kStepBytes)) + j * kFragmentLines * kLine);
  }

  // --- Multiply: the MMAs of a step, in serpentine order, so that consecutive ones share an
  // operand. Calls between(i) before each of kDown rows of MMAs.
  template <typename F>
  __device__ void multiply(Fragments& of, F&& between) {
#pragma unroll
    for (Fragment& a : of.a) round_fragment<Arithmetic>(a);
#pragma unroll
    for (Fragment& b : of.b) round_fragment<Arithmetic>(b);
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
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

  // --- Store: a thread has two columns of every eight, of two rows of every 16.
  __device__ void store(Output* c) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, part = lane % 4;
    const std::int64_t column = column0_ + warp_column();
#pragma unroll
    for (int i = 0; i < kDown; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t row = row0_ + warp_row() + 16 * i + 8 * half + lane / 4;
        Output* const to = c + row * n_ + column;
        const auto pair = [&](int j) {
          return Pair{static_cast<Output>(acc_[i][j][2 * half]),
                      static_cast<Output>(acc_[i][j][2 * half + 1])};
        };
        if (sizeof(Output) == 2 && n_ % 8 == 0) {  // 16 bytes at a time
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
  static constexpr int kChunks = kLine / kChunk;  // of a line
  static_assert(kBM % (kThreads / kChunks) == 0 && kThreads / kChunks % 8 == 0,
                "the lines of a thread are all of A or of B, and all swizzled alike");
  static_assert(kWM % 16 == 0 && kWN % 32 == 0 && kCopies * kChunk * kThreads == kStageBytes);
  struct alignas(2 * sizeof(Output)) Pair {
    Output x, y;
  };

  static __device__ int place_of(int line, int chunk) {
    return line * kLine + (chunk ^ line / 2 % kChunks) * kChunk;
  }
  static __device__ int warp_row() {
    return static_cast<int>(threadIdx.x) / 32 / (kBN / kWN) * kWM;
  }
  static __device__ int warp_column() {
    return static_cast<int>(threadIdx.x) / 32 % (kBN / kWN) * kWN;
  }
  // Transposes among four lanes, so that each has eight consecutive elements of one row.
  static __device__ uint4 of_four_lanes(Pair p0, Pair p1, Pair p2, Pair p3) {
    const auto bits = [](const Pair& pair) {
      return *reinterpret_cast<const std::uint32_t*>(&pair);
    };
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

  std::int64_t m_, n_, row0_, column0_, pitch_, left_;  // pitch_, left_ (of k): bytes
  std::uint32_t shared_;
  const std::byte *a_, *b_;  // of this thread's first chunk
  int to_, rows_, columns_, lane_a_, lane_b_;
  typename Arithmetic::Accumulator acc_[kDown][kAcross][4] = {};
};

// A launch of a kernel with a block for each tile.
template <typename Tile, typename Element = typename Tile::Element>
Launch launched_tiles(void (*kernel)(Problem, Tiles, const Element*, const Element*,
                                     typename Tile::Output*),
                      const Problem& p, const Operands& o, int group = 1) {
  const Tiles tiles(p, Tile::kBM, Tile::kBN, group);
  return launched(kernel, {tiles.count(), Tile::kThreads, Tile::kSharedBytes}, p, tiles,
                  static_cast<const Element*>(o.a), static_cast<const Element*>(o.b),
                  static_cast<typename Tile::Output*>(o.c));
}

}  // namespace gemm::tensor
