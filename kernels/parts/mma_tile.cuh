// The tile of C of a block that uses `mma.sync`, for K tiles of A and B that are in shared memory:
// fragments, accumulators, and the MMAs of a step.
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
#include "kernels/parts/mma.cuh"
#include "kernels/parts/ring.cuh"

namespace gemm::tensor {

constexpr int kChunkBytes = 16, kBankBytes = 128;

// The swizzled position of a chunk in a row of `pitch` bytes.
__host__ __device__ constexpr int swizzled(int pitch, int row, int chunk) {
  return chunk ^ (pitch < kBankBytes ? row / 2 % 4 : row % 8);
}

// A stored matrix; copies are the kernel's own.
struct Rows {};

// The K tile of an operand: kLines rows of A, or columns of B (lines), by kDepth bytes along k. Its
// rows are lines if kKMajor, else steps of k.
template <typename Element, bool kOfA, int kLines, int kDepth, bool kKMajor>
class OperandTile {
 public:
  static constexpr int kBytes = kLines * kDepth;
  static constexpr int kPitch =
      kKMajor ? kDepth : kLines * static_cast<int>(sizeof(Element));  // of a row, bytes
  static_assert(kKMajor || sizeof(Element) == 2, "ldmatrix transposes only 16-bit elements");
  static_assert(kPitch == kBankBytes / 2 || kPitch % kBankBytes == 0,
                "the swizzle needs such rows");

  // `warp_line` is the first line of this warp's tile.
  __device__ explicit OperandTile(int warp_line) {
    // The part of a fragment that this lane addresses for ldmatrix.
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int lines8 = kOfA ? lane / 8 % 2 : lane / 16, bytes16 = kOfA ? lane / 16 : lane / 8 % 2;
    if constexpr (kKMajor) {
      const int line = lines8 * 8 + lane % 8;
      lane_ = (warp_line + line) * kPitch + swizzled(kPitch, line, bytes16) * kChunkBytes;
    } else {
      constexpr int kChunkElements = kChunkBytes / static_cast<int>(sizeof(Element));
      const int step = bytes16 * kChunkElements + lane % 8;
      lane_ =
          step * kPitch + swizzled(kPitch, step, warp_line / kChunkElements + lines8) * kChunkBytes;
    }
  }

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
  int lane_;
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
  using ATile = OperandTile<Element, true, Shape::kBM, Shape::kDepth, kAKMajor>;
  using BTile = OperandTile<Element, false, Shape::kBN, Shape::kDepth, kBKMajor>;

  // The fragments of one step along k.
  struct Fragments {
    Fragment a[Shape::kWM / kFragmentLines], b[Shape::kWN / kFragmentLines];
  };

  // `shared` is aligned to 128 bytes.
  __device__ MmaTile(const Problem&, std::int64_t, std::int64_t, const Rows&, const Rows&,
                     const std::byte* shared)
      : shared_(shared_address(shared)), a_(warp_row()), b_(warp_column()) {}

  __device__ std::uint32_t stage(int i) const { return shared_ + i * Shape::kStageBytes; }

  __device__ void load_fragments(Fragments& to, std::uint32_t stage, int step) const {
#pragma unroll
    for (int i = 0; i < Shape::kWM / kFragmentLines; ++i) a_.load(to.a[i], stage, i, step);
#pragma unroll
    for (int j = 0; j < Shape::kWN / kFragmentLines; ++j)
      b_.load(to.b[j], stage + ATile::kBytes, j, step);
  }
  // The MMAs of a step, in serpentine order, so that consecutive ones share an operand. Fragments
  // are already rounded to TF32. Calls between(row) before each of kRows rows of MMAs.
  static constexpr int kRows = Shape::kWM / 16;
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

 protected:
  static constexpr int kAcross = Shape::kWN / 8;  // MMAs per row

  static __device__ int warp_row() {
    return static_cast<int>(threadIdx.x) / 32 / (Shape::kBN / Shape::kWN) * Shape::kWM;
  }
  static __device__ int warp_column() {
    return static_cast<int>(threadIdx.x) / 32 % (Shape::kBN / Shape::kWN) * Shape::kWN;
  }

  std::uint32_t shared_;
  ATile a_;
  BTile b_;
  Accumulator acc_[kRows][kAcross][4] = {};
};

}  // namespace gemm::tensor
