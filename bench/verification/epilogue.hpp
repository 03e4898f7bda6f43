// What an epilogue makes of an element of the product, and how far a kernel's may be from it.
//
// What is added counts as one more product. Sums may be rounded to the type of C before each step:
// so they are where a library stores them in between. GELU is at most 1.13 times as steep as the
// identity, so that errors of its argument grow by as much. Its own error is that of a tanh: of the
// one in the GPU's special function units where C has 16 bits; cuBLASLt's in FP32 is off by 2^-18.
//
// The functions are constexpr, so that the CPU and the GPU compute by the same lines.
#pragma once

#include <cmath>
#include <cstdint>

#include "bench/verification/verdict.hpp"
#include "kernels/gemm.hpp"

namespace gemm::bench {

// C of a set, and what is added to it: null where the problem has none.
template <typename T>
struct Written {
  const T* c;
  const T* bias = nullptr;
  const T* residual = nullptr;

  // To the element with this row-major index.
  template <typename Value>
  constexpr double added(const Problem& p, std::int64_t index, Value&& value_of) const {
    if (bias != nullptr) return value_of(bias[index % p.n]);
    return residual != nullptr ? value_of(residual[index]) : 0;
  }
};

template <typename T>
Written<T> written(const Operands& o) {
  return {static_cast<const T*>(o.c), static_cast<const T*>(o.bias),
          static_cast<const T*>(o.residual)};
}

// The form with tanh: x times the logistic function of 2 sqrt(2 / pi) (x + 0.044715 x^3).
template <typename Real>
constexpr Real gelu(Real x) {
  return x / (1 + std::exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
}

// Judges an element of C, given the sum of its products and that of their magnitudes.
template <typename T, typename Value>
constexpr void add_element(Verdict& verdict, const Problem& p, std::int64_t index,
                           const Written<T>& c, double sum, double magnitude, const Bound& bound,
                           Value&& value_of) {
  const double value = value_of(c.c[index]);
  if (p.activation == Activation::none) return verdict.add(index, value, sum, magnitude, bound);
  // As magnitudes, which the bound multiplies.
  const auto size = [](double x) { return x < 0 ? -x : x; };
  const double of_rounding = bound.of_expected / bound.of_magnitude,
               of_tanh = (sizeof(T) == 2 ? 0x1p-11 : 0x1p-15) / bound.of_magnitude;
  const double added = c.added(p, index, value_of);
  magnitude += size(added) + of_rounding * size(sum);
  sum += added;
  if (p.activation == Activation::bias_gelu) {
    constexpr double kSteepest = 1.13;
    magnitude = kSteepest * (magnitude + of_rounding * size(sum)) + of_tanh * size(sum);
    sum = gelu(sum);
  }
  verdict.add(index, value, sum, magnitude, bound);
}

}  // namespace gemm::bench
