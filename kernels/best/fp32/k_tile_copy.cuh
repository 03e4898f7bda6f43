// Copies of K tiles of an operand into shared memory, in any layout: by cp.async from compute
// capability 8.0 on, else through registers.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/gemm.hpp"
#include "kernels/parts/async_copy.cuh"

namespace gemm::simt {

// A strided matrix: element (i, j) is first[i * down + j * right]; one of the two strides is 1.
struct Strided {
  const float* first;
  std::int64_t down, right;

  constexpr Strided transposed() const { return {first, right, down}; }
  __device__ Strided from(std::int64_t row, std::int64_t column) const {
    return {first + row * down + column * right, down, right};
  }
};

// Where the lines of a K tile are in shared memory. place() is the offset of an element, and next()
// that of the element `by` lines further, if `by` is a multiple of a power of two above its line.
template <int kLength, int kPadding = kLength % 8 == 0 ? 4 : 0>
struct PaddedLines {
  static constexpr int kPitch = kLength + kPadding;
  static constexpr int place(int line, int at) { return line * kPitch + at; }
  static constexpr int next(int place, int by) { return place + by * kPitch; }
};
// Pieces of 16 bytes are permuted within a line, so that those at one place in eight successive
// lines are in different banks.
template <int kLength>
struct SwizzledLines {
  static_assert(kLength == 16 || kLength == 32);
  static constexpr int kPitch = kLength;
  static constexpr int swizzle(int line) { return line / (32 / kLength) % (kLength / 4) * 4; }
  static constexpr int place(int line, int at) { return line * kPitch + (at ^ swizzle(line)); }
  static constexpr int next(int place, int by) { return (place ^ swizzle(by)) + by * kPitch; }
};

// How the lines of a K tile are in the matrix: `either` is found out at run time.
enum class Lines { contiguous, interleaved, either };

// Copies kLines x kLength elements by kThreads consecutive threads. If lines are contiguous and
// begin at multiples of 16 or 8 bytes it copies so many at a time, else 4.
template <int kLines, int kLength, int kThreads, typename Places, Lines kFrom = Lines::contiguous>
class KTileCopy {
 public:
  __device__ explicit KTileCopy(const Strided& from) : from_(from) {
    const int t = threadIdx.x % kThreads;
    if (is_across()) return;
    from_.first += with_width([&]<int kWidth>() { return Along<kWidth>::first(t, from.down); });
  }

  // Elements beyond `lines` or `length` become zero.
  __device__ void copy(float* to, int lines, int length) const {
    int t = threadIdx.x % kThreads;
    asm volatile("" : "+r"(t));  // keeps the compiler from holding all addresses in registers
    if constexpr (kFrom != Lines::contiguous)
      if (is_across()) return copy_across(t, to, lines, length);
    if constexpr (kFrom != Lines::interleaved)
      with_width([&]<int kWidth>() { Along<kWidth>::copy(t, to, from_, lines, length); });
  }
  __device__ void advance_right(std::int64_t by) { from_.first += by * from_.right; }
  __device__ void advance_down(std::int64_t by) { from_.first += by * from_.down; }

 private:
  __device__ bool is_across() const {
    return kFrom == Lines::interleaved || (kFrom == Lines::either && from_.right != 1);
  }
  // Calls f with the elements per copy.
  template <typename F>
  __device__ auto with_width(F f) const {
    if constexpr (kLength % 4 == 0) {
      if (from_.down % 4 == 0) return f.template operator()<4>();
      if (from_.down % 2 == 0) return f.template operator()<2>();
    }
    return f.template operator()<1>();
  }

  // Lines are contiguous: consecutive threads copy consecutive elements of a line.
  template <int kWidth>
  struct Along {
    // Of a line; some threads have none if that is no power of two.
    static constexpr int kChunks = std::bit_ceil(unsigned{kLength / kWidth});
    static constexpr int kLinesAtOnce = kThreads > kChunks ? kThreads / kChunks : 1;
    static constexpr int kParts = kChunks > kThreads ? kChunks / kThreads : 1;

    // Where a thread's first element is.
    static __device__ std::int64_t first(int t, std::int64_t down) {
      return t / kChunks * down + t % kChunks * kWidth;
    }
    static __device__ void copy(int t, float* to, const Strided& from, int lines, int length) {
      const int line = t / kChunks, at = t % kChunks * kWidth, place = Places::place(line, at);
      const int lines_left = at < length ? lines - line : 0, left = length - at;
      const auto is_there = [&](int i, int right) {
        return (kLines % kLinesAtOnce == 0 || line + i < kLines) &&
               (kChunks * kWidth == kLength || at + right < kLength);
      };
      const float* source = from.first;
#pragma unroll(kWidth == 1 ? 4 : 8)
      for (int i = 0; i < kLines; i += kLinesAtOnce) {
#pragma unroll
        for (int right = 0; right < kParts * kThreads * kWidth; right += kThreads * kWidth)
          if (is_there(i, right))
            copy_async<kWidth>(to + Places::next(place, i) + right, source + right,
                               i < lines_left && (kParts == 1 || right < left));
        source += kLinesAtOnce * from.down;
      }
    }
  };

  // Lines are interleaved in memory: a warp copies 16 of them, contiguous, from each of 2
  // positions. With a pitch of an odd multiple of 4 these are in 16 banks. (8 lines from 4
  // positions would be in 32 banks, but touch twice as many cache lines, and are slower.)
  __device__ void copy_across(int t, float* to, int lines, int length) const {
    constexpr int kShort = kThreads > 16 * kLength ? kThreads / kLength : 16;
    constexpr int kAcross = kLines < kShort ? kLines : kShort, kPositions = kThreads / kAcross;
    static_assert(kLines % kAcross == 0 && kThreads % kAcross == 0);
    const int line = t % kAcross, at = t / kAcross, place = Places::place(line, at);
    const int left = line < lines ? length - at : 0, lines_left = lines - line;
    const float* source = from_.first + line + at * from_.right;
#pragma unroll
    for (int i = 0; i < kLength; i += kPositions) {
      if (kLength % kPositions == 0 || at + i < kLength)
#pragma unroll
        for (int j = 0; j < kLines; j += kAcross)
          copy_async<1>(to + Places::next(place, j) + i, source + j,
                        i < left && (kLines == kAcross || j < lines_left));
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
