// What is added to accumulators and applied to them, where they are in registers, before they are
// stored (Activation).
#pragma once

#include <cstdint>

#include "kernels/gemm.hpp"
#include "kernels/parts/wgmma.cuh"

namespace gemm::tensor {

// GELU in its tanh form: x times the logistic function of 2 sqrt(2 / pi) (x + 0.044715 x^3), which
// is half of 1 + tanh.
__device__ inline float gelu(float x) {
  float tanh;
  asm("tanh.approx.f32 %0, %1;" : "=f"(tanh) : "f"(x * fmaf(0.03567740814F * x, x, 0.7978845608F)));
  return fmaf(0.5F * x, tanh, 0.5F * x);
}

// Of 64 kParts rows from (row, column) on of C, m x n, whose n is even. `added`: n elements, or for
// Activation::residual m x n, at a multiple of 4 bytes.
template <typename Output, int kParts, int kAccumulators>
__device__ void activate(Activation activation, const void* added,
                         float (&acc)[kParts][kAccumulators], std::int64_t m, std::int64_t n,
                         int row, int column) {
  using Pair = decltype(pair_of<Output>(0.0F, 0.0F));
  const int thread = static_cast<int>(threadIdx.x) % 128;
  row += thread / 32 * 16 + thread % 32 / 4;
  column += thread % 4 * 2;
#pragma unroll
  for (int part = 0; part < kParts; ++part)
#pragma unroll
    for (int below = 0; below < 2; ++below) {
      const std::int64_t at = min(std::int64_t{row} + 64 * part + 8 * below, m - 1);
      const Output* from = static_cast<const Output*>(added) + column +
                           (activation == Activation::residual ? at * n : 0);
#pragma unroll
      for (int j = 0; j < kAccumulators / 4; ++j) {
        if (column + 8 * j >= n) continue;
        const Pair pair = *reinterpret_cast<const Pair*>(from + 8 * j);
        acc[part][4 * j + 2 * below] += static_cast<float>(pair.x);
        acc[part][4 * j + 2 * below + 1] += static_cast<float>(pair.y);
      }
    }
  if (activation != Activation::bias_gelu) return;
#pragma unroll
  for (int part = 0; part < kParts; ++part)
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i) acc[part][i] = gelu(acc[part][i]);
}

}  // namespace gemm::tensor
