// Is C = A * B without the FP64 product of the whole? Freivalds (Probabilistic machines can use
// less running time, 1977): C x = A (B x) for two vectors x of +1 and -1, in FP64, row by row; in
// addition some elements anywhere in C are computed exactly. Vectors and places follow from a
// secret that is drawn after C was written.
//
// It takes m k + k n + m n operations instead of 2 m n k. A wrong element shows if it is off by
// more than what rounding may do to its whole row; a smaller error shows only where an element is
// computed exactly.
//
// The functions are constexpr, so that the CPU and the GPU compute by the same lines. `lane` of
// `lanes` threads takes every lanes-th element of a row; the sums of all lanes are added up.
//
// What an epilogue adds to C is subtracted from it first. GELU is not linear: it needs the product.
//
// In a batch the rows of A, of B and of C are numbered through all products.
#pragma once

#include <cmath>
#include <cstdint>

#include "bench/verification/epilogue.hpp"
#include "bench/verification/fill.hpp"
#include "bench/verification/scales.hpp"
#include "bench/verification/verdict.hpp"
#include "kernels/layout.hpp"
#include "kernels/tokens.hpp"

namespace gemm::bench {

inline constexpr int kVectors = 2;
inline constexpr std::int64_t kExactSamples = 4096;

// Rows of all A or C, and of all B.
constexpr std::int64_t rows_of_c(const Problem& p) { return p.batch * p.m; }
constexpr std::int64_t rows_of_b(const Problem& p) { return p.batch * p.k; }

// Of a row of B: B x, and the row's length. Of a row of C: A (B x), and how far C x may be from it.
struct RowCheck {
  double sums[kVectors] = {};
  double size = 0;
};

// Element `column` of vector 0 or 1.
constexpr double sign_of(std::uint64_t secret, std::int64_t column, int vector) {
  return (random_bits(secret, static_cast<std::uint64_t>(column)) >> (62 + vector) & 1) != 0 ? -1
                                                                                             : 1;
}

// Of row l of B; size is the sum of squares. `x(column, vector)` are the vectors.
template <typename In, typename X, typename Value>
constexpr RowCheck project_b(const Problem& p, const In* b, const Scales& all, std::int64_t l,
                             int lane, int lanes, X&& x, Value&& value_of) {
  RowCheck row;
  const Scales scales = all.of_product(p, l / p.k, 0);
  b += l / p.k * p.k * p.n;
  l %= p.k;
  for (std::int64_t j = lane; j < p.n; j += lanes) {
    const double value = value_of(b[index_in_b(p, l, j)]) * scales.of_b(p, l, j);
    for (int v = 0; v < kVectors; ++v) row.sums[v] += x(j, v) * value;
    row.size += value * value;
  }
  return row;
}

// Of row i of A times B; size is at least the length of row i of |A| |B|: the sum over l of |a_il|
// times the length of row l of B (the triangle inequality).
template <typename In, typename Value>
constexpr RowCheck project_a(const Products& p, const In* a, const Scales& scales,
                             const RowCheck* b_rows, std::int64_t i, int lane, int lanes,
                             Value&& value_of) {
  RowCheck row;
  const std::int64_t which = p.product_of(i);
  const Problem one = p.product(which);
  a += p.before_a(which);
  b_rows += which * p.k;
  i -= p.first_row(which);
  for (std::int64_t l = lane; l < p.k; l += lanes) {
    const double value =
        value_of(a[index_in_a(one, i, l)]) * scales.of_a(p.first_row(which) + i, l);
    for (int v = 0; v < kVectors; ++v) row.sums[v] += value * b_rows[l].sums[v];
    row.size += (value < 0 ? -value : value) * b_rows[l].size;
  }
  return row;
}

// What a row of C may be off, over that size. An element of C is a sum of k products and has k + 2
// errors, each of at most a round-off of its sum |a b|, and those of its operands and of its
// output; x adds up those of a row, where they stay below 8 deviations by the argument of
// bound_for. What that grants to FP8's sums already is some.
inline double share_of_size(const Problem& p) {
  const PrecisionTraits& traits = traits_of(p.precision);
  const Bound bound = bound_for(p);
  const double coarse = traits.coarse_error > 0 ? bound.of_magnitude + bound.of_expected : 0;
  return 8 * (std::sqrt(static_cast<double>(p.k) + 2) * traits.accumulate_error +
              traits.input_error + traits.output_error) +
         coarse;
}

// C x of row i, without what the epilogue added; size is the sum of its squares.
template <typename Out, typename X, typename Value>
constexpr RowCheck project_c(const Problem& p, const Written<Out>& c, std::int64_t i, int lane,
                             int lanes, X&& x, Value&& value_of) {
  RowCheck row;
  for (std::int64_t j = lane; j < p.n; j += lanes) {
    const double added = c.added(p, i * p.n + j, value_of),
                 value = value_of(c.c[i * p.n + j]) - added;
    for (int v = 0; v < kVectors; ++v) row.sums[v] += x(j, v) * value;
    row.size += added * added;
  }
  return row;
}

// What rounding a row of C may do to what was added, over its length.
inline double share_of_added(const Problem& p) {
  const PrecisionTraits& traits = traits_of(p.precision);
  return 8 * (traits.accumulate_error + traits.output_error);
}

// Whether C x is as near to A (B x) as it must be; NaN is not. The sizes are what they may be off.
constexpr bool row_is_right(const RowCheck& cx, const RowCheck& abx) {
  for (int v = 0; v < kVectors; ++v) {
    const double error =
        cx.sums[v] < abx.sums[v] ? abx.sums[v] - cx.sums[v] : cx.sums[v] - abx.sums[v];
    if (!(error <= abx.size + cx.size)) return false;
  }
  return true;
}

// An element of C: its row and column in product `which`.
struct Place {
  std::int64_t which, row, column;
};
constexpr Place place_in_c(const Products& p, std::int64_t index) {
  const std::int64_t row = index / p.n, which = p.product_of(row);
  return {which, row - p.first_row(which), index % p.n};
}

// A product of the element of C at this place.
template <typename In, typename Value>
constexpr double product_at(const Problem& p, const In* a, const In* b, const Scales& scales,
                            std::int64_t row, std::int64_t column, std::int64_t l,
                            Value&& value_of) {
  const double product = value_of(a[index_in_a(p, row, l)]) * value_of(b[index_in_b(p, l, column)]);
  return product * scales.of_a(row, l) * scales.of_b(p, l, column);
}

// Judges the element of C with this row-major index by its exact value.
template <typename In, typename Out, typename Value>
constexpr void add_exactly(Verdict& verdict, const Products& p, const In* a, const In* b,
                           const Scales& all, const Written<Out>& c, const Bound& bound,
                           std::int64_t index, Value&& value_of) {
  const Place at = place_in_c(p, index);
  const Problem one = p.product(at.which);
  const Scales scales = all.of_product(p, at.which, p.first_row(at.which));
  a += p.before_a(at.which);
  b += p.before_b(at.which);
  double expected = 0, magnitude = 0;
  for (std::int64_t l = 0; l < p.k; ++l) {
    const double product = product_at(one, a, b, scales, at.row, at.column, l, value_of);
    expected += product;
    magnitude += product < 0 ? -product : product;
  }
  add_element(verdict, p, index, c, expected, magnitude, bound, value_of);
}

// The elements that are computed exactly: samples from all of C, or all of it where that is less,
// then those of a row that is wrong.
constexpr std::int64_t sample_count(const Problem& p) {
  return elements_of_c(p) < kExactSamples ? elements_of_c(p) : kExactSamples;
}
constexpr std::int64_t exact_index(const Problem& p, std::uint64_t secret, std::int64_t which,
                                   std::int64_t wrong_row) {
  const std::int64_t samples = sample_count(p);
  if (which >= samples) return wrong_row * p.n + which - samples;
  if (samples < kExactSamples) return which;
  return static_cast<std::int64_t>(random_bits(~secret, static_cast<std::uint64_t>(which)) %
                                   static_cast<std::uint64_t>(elements_of_c(p)));
}
constexpr std::int64_t exact_count(const Problem& p, std::int64_t wrong_row) {
  return sample_count(p) + (wrong_row >= 0 ? p.n : 0);
}

}  // namespace gemm::bench
