// Is a result right? Every element of C is compared with an FP64 product of the same inputs, under
// an error bound that grows with k and with the magnitude of the sum it belongs to.
//
// The functions are constexpr so that the CPU and the GPU judge by the same lines.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/gemm.hpp"

// cmake/exact_math.cmake comes after the user's flags; others may come after it.
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0
#error \
    "verification would take NaN for a number: compile without -ffast-math and -ffinite-math-only"
#endif

namespace gemm::bench {

// For an element with exact value `expected` = sum of a*b and `magnitude` = sum of |a*b|.
struct Bound {
  double of_magnitude, of_expected, absolute;
  // Of the root mean square of the errors of many elements; both zero where it has no limit.
  double rms_of_magnitude = 0, rms_of_expected = 0;

  constexpr double operator()(double expected, double magnitude) const {
    return of_magnitude * magnitude + of_expected * (expected < 0 ? -expected : expected) +
           absolute;
  }
};

// For long sums the bound of an element exceeds the errors of arithmetic with fewer bits, which
// fall with 1 / sqrt(k) of the magnitude. The root mean square over many elements is far from it.
// With random signs, sums in order of k are off by 0.4 round-offs of the magnitude at any k
// (simulated with uniform operands; the partial sums walk). Rounding both operands is off by a
// share of the result that does not depend on k: cutting both to TF32 by 0.71 * 2^-10, rounding
// both to BF16 by 1.05 * 2^-9. `Rms` in verdict_test.cpp holds the limits between these. Tensor
// cores cut off part of each sum of at least 8 products, always towards zero.
inline void limit_rms(const Problem& p, Bound& bound) {
  constexpr std::int64_t kFewestElements = 256, kShortestSum = 64;
  const PrecisionTraits& traits = traits_of(p.precision);
  const bool rounds = traits.accumulate_error > 0 && traits.coarse_error == 0;
  if (!rounds || elements_of_c(p) < kFewestElements || p.k < kShortestSum) return;
  const bool cuts = traits.accumulate_error > 0x1p-24;
  bound.rms_of_magnitude = (cuts ? 16 : 4) * traits.accumulate_error;
  bound.rms_of_expected = 0.475 * traits.input_error + traits.output_error;
  if (cuts) bound.rms_of_expected += static_cast<double>(p.k) / 8 * traits.accumulate_error;
}

// Worst case for small k: k + 2 additions, each off by one round-off of at most `magnitude`. That
// grows linearly and, at k = 8192, would let a kernel drop a whole product unseen. Rounding errors
// are not all of one sign: by Hoeffding's inequality (Higham and Mary, A new approach to
// probabilistic rounding error analysis, 2019) they stay below 8 sqrt(k) round-offs but for a
// chance of 2 exp(-32) an element. The same argument holds for operands rounded inside the kernel
// (TF32), whose truncation adds a bias in proportion to the result.
//
// By that argument FP8's 13 bits would hide a whole tile: at k = 8192 8 sqrt(k) 2^-13 of the
// magnitude is six times a typical result. But a sum never is as large as the magnitude if its
// products have random signs, as those of every fill have: it walks from zero to the result, off
// the straight way by magnitude / sqrt(k) in the mean. What an addition cuts off is at most 2^-13
// of the sum, evenly spread, and of the sign of what is cut: the mean square of one error is
// (0.7 / sqrt(3))^2 of that, and 4 sqrt(k) of them are 10 deviations, which leaves room for the
// bias. Where sums go into FP32 every 128 products, each walk has only so many steps.
inline Bound bound_for(const Problem& p) {
  const PrecisionTraits& traits = traits_of(p.precision);
  const double k = static_cast<double>(p.k);
  const auto coarse = static_cast<double>(std::min(p.k, traits.coarse_length));
  const double sums = std::ceil(k / coarse);
  const double coarse_error = traits.coarse_error * std::fmin(k + 2, 4 * std::sqrt(k)) * coarse / k;
  // Products have random signs, so that partial sums walk: honest sums stay below half of the last
  // terms, which is the argument for FP8 below. FMA units round to the nearest, and are off by 0.4
  // round-offs of the magnitude at any k. Tensor cores cut towards zero each sum of at least 8
  // products; over a walk that stays on one side, that is 0.11 sqrt(k).
  const bool cuts = traits.accumulate_error > 0x1p-24;
  const double walk = cuts ? 16 + std::sqrt(sums) / 2 : 16;
  Bound bound{
      .of_magnitude = traits.accumulate_error * std::min({sums + 2, 8 * std::sqrt(sums), walk}) +
                      coarse_error / std::sqrt(coarse),
      .of_expected = traits.output_error + coarse_error,
      .absolute = traits.output_smallest,
  };
  const double share = 8 / std::sqrt(k);
  if (share < 1) {
    bound.of_magnitude += traits.input_error * share;
    bound.of_expected += traits.input_error;
  } else {
    bound.of_magnitude += traits.input_error;
  }
  limit_rms(p, bound);
  return bound;
}

struct Judgement {
  double error, bound, of_bound;
  bool passed;
};

// A value that is not finite never passes: the comparison is written so that NaN fails it.
constexpr Judgement judge(double value, double expected, double magnitude, const Bound& bound) {
  const double difference = value < expected ? expected - value : value - expected;
  const double limit = bound(expected, magnitude);
  const double of_bound = difference == 0 ? 0 : difference / limit;
  return {difference, limit, of_bound, difference <= limit};
}

// What a whole C looks like.
struct Verdict {
  std::int64_t wrong = 0;                     // elements that do not pass
  std::int64_t first_wrong = -1;              // index of the first of them, row-major; -1 if none
  double value = 0, expected = 0, bound = 0;  // of that element
  double max_error = 0;                       // over all elements; NaN or infinite if one is
  double max_of_bound = 0;                    // largest error / bound, likewise
  double bound_at_max = 0;                    // the bound of that element
  double error_squares = 0, error_squares_limit = 0;  // of all errors, and their limit; 0: no limit
  std::int64_t outside_bytes =
      0;  // where something was written outside C: > 0 past its end, < 0 before it

  // By Freivalds' check (freivalds.hpp); then the above is of the elements that it computes
  // exactly.
  bool by_rows = false;
  std::int64_t wrong_rows = 0, first_wrong_row = -1;

  bool inputs_changed = false;  // A or B is no longer what the kernel was given
  bool changed_later = false;   // C changed after the launches had ended

  constexpr bool imprecise() const {
    return error_squares_limit > 0 && !(error_squares <= error_squares_limit);
  }
  constexpr bool passed() const {
    return wrong == 0 && wrong_rows == 0 && outside_bytes == 0 && !inputs_changed &&
           !changed_later && !imprecise();
  }
  // Root mean square of the errors over its limit.
  std::optional<double> rms_of_limit() const {
    return error_squares_limit > 0 ? std::optional(std::sqrt(error_squares / error_squares_limit))
                                   : std::nullopt;
  }

  constexpr void add(std::int64_t index, double c, double reference, double magnitude,
                     const Bound& limit) {
    const Judgement one = judge(c, reference, magnitude, limit);
    const double size = reference < 0 ? -reference : reference,
                 rms = limit.rms_of_magnitude * magnitude + limit.rms_of_expected * size;
    merge({.wrong = one.passed ? 0 : 1,
           .first_wrong = one.passed ? -1 : index,
           .value = c,
           .expected = reference,
           .bound = one.bound,
           .max_error = one.error,
           .max_of_bound = one.of_bound,
           .bound_at_max = one.bound,
           .error_squares = one.error * one.error,
           .error_squares_limit = rms * rms});
  }

  constexpr void merge(const Verdict& other) {
    if (other.wrong > 0 && (wrong == 0 || other.first_wrong < first_wrong)) {
      first_wrong = other.first_wrong;
      value = other.value;
      expected = other.expected;
      bound = other.bound;
    }
    wrong += other.wrong;
    if (worse(other.max_error, max_error)) max_error = other.max_error;
    if (worse(other.max_of_bound, max_of_bound)) {
      max_of_bound = other.max_of_bound;
      bound_at_max = other.bound_at_max;
    }
    error_squares += other.error_squares;
    error_squares_limit += other.error_squares_limit;
    if (outside_bytes == 0) outside_bytes = other.outside_bytes;
    inputs_changed = inputs_changed || other.inputs_changed;
    changed_later = changed_later || other.changed_later;
    by_rows = by_rows || other.by_rows;
    if (wrong_rows == 0) first_wrong_row = other.first_wrong_row;
    wrong_rows += other.wrong_rows;
  }

 private:
  // NaN is worse than any number, and stays.
  static constexpr bool worse(double candidate, double current) {
    return current == current && !(candidate <= current);
  }
};

// "c[17,3] = nan, expected 4.25 +- 1e-3 (and 12 more of 4096 elements)", of a batch "c[2][17,3]";
// nothing if it passed.
std::optional<std::string> complaint(const Problem& p, const Verdict& verdict);

}  // namespace gemm::bench
