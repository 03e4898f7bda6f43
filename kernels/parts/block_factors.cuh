// The factors by which a consumer's FP8 sums of a K tile are multiplied (Precision::e4m3block). A
// thread's accumulators have two rows of every 64, and all columns of the tile are of one block of
// B: two factors of A, times one of B. They go from global memory straight to registers, a K tile
// ahead of their use, so that they need no room in a stage and no barrier.
#pragma once

#include <cstdint>

#include "kernels/precision.hpp"

namespace gemm::tensor {

// Not moved by the compiler, which would load it when it is needed.
__device__ inline float load_factor(const float* from) {
  float factor;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(factor) : "l"(from));
  return factor;
}
// Keeps the factor where `there` is false.
__device__ inline void load_factor(float& factor, const float* from, bool there) {
  asm volatile(
      "{\n.reg .pred there;\n"
      "setp.ne.s32 there, %2, 0;\n"
      "@there ld.global.nc.f32 %0, [%1];\n}"
      : "+f"(factor)
      : "l"(from), "r"(static_cast<int>(there)));
}

// Brings so many factors into the L2, but for parts of 16 bytes at both ends. A producer calls it
// when it loads what they belong to: from DRAM a load takes longer than a K tile.
__device__ inline void prefetch_factors(const float* from, int count) {
  const auto first = (reinterpret_cast<std::uintptr_t>(from) + 15) / 16 * 16,
             end = reinterpret_cast<std::uintptr_t>(from + count) / 16 * 16;
  if (first >= end) return;
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(first),
               "r"(static_cast<std::uint32_t>(end - first))
               : "memory");
}
// Those of a K tile of A, and, in the first K tile of a tile of C, those of its columns of B.
__device__ inline void prefetch_factors(const float* a_scales, const float* b_scales,
                                        std::int64_t m, int k_tiles, int row, int rows, int column,
                                        int k_tile, bool first) {
  prefetch_factors(a_scales + k_tile * m + row, min(rows, static_cast<int>(m) - row));
  const int stride = (k_tiles + 3) / 4 * 4;
  if (first)
    prefetch_factors(b_scales + static_cast<std::int64_t>(column / kScaleBlock) * stride + k_tile,
                     k_tiles - k_tile);
}

template <int kParts>
class BlockFactors {
 public:
  // For 64 kParts rows of A from `row` on, columns of B from `column` on, and K tiles from `k_tile`
  // on, of k_tiles in a row of B's scales. Loads those of the first one.
  __device__ BlockFactors(const float* a_scales, const float* b_scales, std::int64_t m, int k_tiles,
                          int row, int column, int k_tile)
      : m_(m) {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int first = row + thread / 32 * 16 + lane / 4;
    const int stride = (k_tiles + 3) / 4 * 4;
    inside_ = static_cast<int>(m) - first;
    a_ = a_scales + k_tile * m + first;
    b_ = b_scales + static_cast<std::int64_t>(column / kScaleBlock) * stride + k_tile;
    load(true);
  }

  // factors[part][half] = those of this K tile. Loads those of the next one, if there is one, into
  // the same registers: what comes between a load and its use is all but a K tile.
  __device__ void next(float (&factors)[kParts][2], bool more) {
    use_here(next_b_);
#pragma unroll
    for (int part = 0; part < kParts; ++part)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        use_here(next_[part][half]);
        factors[part][half] = next_[part][half] * next_b_;
      }
    load(more);
  }

 private:
  // Else the compiler copies what was loaded, and waits for it, right after the load.
  __device__ static void use_here(float& factor) { asm volatile("" : "+f"(factor)); }

  __device__ void load(bool there) {
#pragma unroll
    for (int part = 0; part < kParts; ++part)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int further = 64 * part + 8 * half;
        load_factor(next_[part][half], a_ + further, there && further < inside_);
      }
    load_factor(next_b_, b_, there);
    a_ += m_;
    ++b_;
  }

  const float *a_, *b_;  // of the K tile that is loaded next
  std::int64_t m_;
  int inside_;  // rows of A from the thread's first one on
  float next_[kParts][2] = {}, next_b_ = 0;
};

// acc += partial times the factor of its row.
template <int kAccumulators>
__device__ void add_scaled(float (&acc)[kAccumulators], const float (&partial)[kAccumulators],
                           const float (&factors)[2]) {
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i) acc[i] = fmaf(partial[i], factors[i / 2 % 2], acc[i]);
}

}  // namespace gemm::tensor
