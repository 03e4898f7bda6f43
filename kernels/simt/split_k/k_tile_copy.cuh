// Copies of K tiles of an operand into shared memory, in any layout: by cp.async from compute
// capability 8.0 on, else through registers.
#pragma once

#include <cstdint>

#include "kernels/common/async_copy.cuh"
#include "kernels/gemm.hpp"

namespace gemm::simt {

// A strided matrix: element (i, j) is first[i * down + j * right]; one of the two strides is 1.
struct Strided {
  const float* first;
  std::int64_t down, right;

  constexpr Strided transposed() const { return {first, right, down}; }
  __device__ Strided from(std::int64_t row, std::int64_t column) const {
    return {first + row * down + column * right, down, right};
  }
  // Whether rows are contiguous and begin at multiples of 16 bytes, as the matrix itself does.
  bool in_16_bytes() const { return right == 1 && down % 4 == 0; }
};

// Copies kLines x kLength elements, kWidth per copy (4 if in_16_bytes, else 1), to rows of kPitch
// floats in shared memory, by kThreads consecutive threads.
template <int kLines, int kLength, int kPitch, int kThreads, int kWidth>
class KTileCopy {
 public:
  __device__ explicit KTileCopy(const Strided& from) : from_(from) {
    const int t = threadIdx.x % kThreads;
    if (kEven && (kWidth == 4 || from.right == 1))
      from_.first += t / kChunks * from.down + t % kChunks * kWidth;
  }

  // Elements beyond `lines` or `length` become zero.
  __device__ void copy(float* to, int lines, int length) const {
    int t = threadIdx.x % kThreads;
    asm volatile("" : "+r"(t));  // keeps the compiler from holding all addresses in registers
    if (kWidth == 4 || from_.right == 1)
      copy_along(t, to, lines, length);
    else
      copy_across(t, to, lines, length);
  }
  __device__ void advance_right(std::int64_t by) { from_.first += by * from_.right; }
  __device__ void advance_down(std::int64_t by) { from_.first += by * from_.down; }

 private:
  static constexpr int kChunks = kLength / kWidth;  // per line
  static constexpr int kLinesAtOnce = kThreads > kChunks ? kThreads / kChunks : 1;
  static constexpr int kParts = kChunks > kThreads ? kChunks / kThreads : 1;
  static constexpr bool kEven = kThreads % kChunks == 0 || kChunks % kThreads == 0;

  // Lines are contiguous: consecutive threads copy consecutive elements of a line.
  __device__ void copy_along(int t, float* to, int lines, int length) const {
    if constexpr (!kEven) {
      for (int i = t; i < kLines * kChunks; i += kThreads) {
        const int line = i / kChunks, at = i % kChunks * kWidth;
        copy_async<kWidth>(to + line * kPitch + at, from_.first + line * from_.down + at,
                           line < lines && at < length);
      }
      return;
    }
    const int line = t / kChunks, at = t % kChunks * kWidth;
    const float* source = from_.first;
    to += line * kPitch + at;
#pragma unroll(kWidth == 4 ? 8 : 4)
    for (int i = 0; i < kLines; i += kLinesAtOnce) {
      if (kLines % kLinesAtOnce == 0 || line + i < kLines)
#pragma unroll
        for (int part = 0; part < kParts; ++part)
          copy_async<kWidth>(to + i * kPitch + part * kThreads * kWidth,
                             source + part * kThreads * kWidth,
                             line + i < lines && at + part * kThreads * kWidth < length);
      source += kLinesAtOnce * from_.down;
    }
  }
  // Lines are interleaved in memory: a warp copies 16 of them, contiguous, from each of 2
  // positions. With a pitch of an odd multiple of 4 these are in 16 banks. (8 lines from 4
  // positions would be in 32 banks, but touch twice as many cache lines, and are slower.)
  __device__ void copy_across(int t, float* to, int lines, int length) const {
    constexpr int kShort = kThreads > 16 * kLength ? kThreads / kLength : 16;
    constexpr int kAcross = kLines < kShort ? kLines : kShort, kPositions = kThreads / kAcross;
    static_assert(kLines % kAcross == 0 && kThreads % kAcross == 0);
    const int line = t % kAcross, at = t / kAcross;
    const float* source = from_.first + line + at * from_.right;
    to += line * kPitch + at;
#pragma unroll
    for (int i = 0; i < kLength; i += kPositions) {
      if (kLength % kPositions == 0 || at + i < kLength)
#pragma unroll
        for (int j = 0; j < kLines; j += kAcross)
          copy_async<kWidth>(to + j * kPitch + i, source + j, line + j < lines && at + i < length);
      source += kPositions * from_.right;
    }
  }

  Strided from_;
};

// A ring of stages in shared memory. Copies through registers are synchronous, so two stages
// suffice for them.
template <int kStages>
struct CopyRing {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  static constexpr int kDepth = kStages;
#else
  static constexpr int kDepth = 2;
#endif

  // Waits for the oldest stage.
  static __device__ void wait() { wait_for_copies<kDepth - 2>(); }
  static __device__ int next(int stage) { return stage + 1 == kDepth ? 0 : stage + 1; }
  static __device__ int previous(int stage) { return stage == 0 ? kDepth - 1 : stage - 1; }
};

// Number of stages on a device.
inline int stages_on(const Device& device, int stages) {
  return device.compute_capability >= 80 ? stages : 2;
}

}  // namespace gemm::simt
