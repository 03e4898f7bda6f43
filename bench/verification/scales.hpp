// The factors of blocks of A and B (Precision::e4m3block): what their values are, and which of them
// an element has.
//
// The functions are constexpr, so that the CPU and the GPU compute by the same lines.
#pragma once

#include <cstdint>

#include "bench/verification/fill.hpp"
#include "kernels/gemm.hpp"
#include "kernels/scales.hpp"

namespace gemm::bench {

// From 1/4 to 8, so that those of two blocks differ by more than results are off. With integers and
// zeros they are powers of two, which keep products and sums exact.
constexpr float scale_value(Fill fill, std::uint64_t seed, std::int64_t index) {
  constexpr float kPowers[] = {0.25F, 0.5F, 1, 2, 4};
  const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(index));
  const float power = kPowers[bits % 5];
  if (fill == Fill::integers || fill == Fill::zeros) return power;
  return power * (1 + static_cast<float>(static_cast<std::int32_t>(bits >> 41)) * 0x1p-23F);
}

// Null where the problem has none. Of all products, or of one.
struct Scales {
  const float *a = nullptr, *b = nullptr;
  std::int64_t a_rows = 0;  // of A, of all products

  constexpr Scales of_product(const Problem& p, std::int64_t which, std::int64_t first_row) const {
    return a == nullptr ? *this : Scales{a + first_row, b + which * scales_of_each_b(p), a_rows};
  }

  // Of the element of A at (row, l), and of the element of B at (l, column).
  constexpr double of_a(std::int64_t row, std::int64_t l) const {
    return a == nullptr ? 1 : a[l / kScaleBlock * a_rows + row];
  }
  constexpr double of_b(const Problem& p, std::int64_t l, std::int64_t column) const {
    return b == nullptr ? 1 : b[column / kScaleBlock * scales_of_b_stride(p.k) + l / kScaleBlock];
  }
};
constexpr Scales scales_of(const Problem& p, const Operands& o) {
  return {o.a_scales, o.b_scales, p.batch * p.m};
}

}  // namespace gemm::bench
