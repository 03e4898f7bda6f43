// Operands that get new values before each sample, and the check of what a launch made of them.
//
// Of every set one row of A and one column of B have eight elements that are not zero, at random
// places. Their elements of C are sums of eight products, whose error bound is so narrow at any k
// that it shows whether the operands were used with all of their bits.
//
// The functions are constexpr, so that the CPU and the GPU compute by the same lines.
#pragma once

#include <cstdint>
#include <type_traits>

#include "bench/verification/fill.hpp"
#include "bench/verification/freivalds.hpp"
#include "bench/verification/verdict.hpp"
#include "kernels/layout.hpp"

namespace gemm::bench {

// Elements that a word of 64 random bits gives.
template <typename T>
inline constexpr int kPerWord = 8 / sizeof(T);

// Element `place` of a word, in the range that fill_element gives it.
template <typename T>
constexpr T element_of_word(Fill fill, std::uint64_t word, int place) {
  constexpr int kBits = 8 * sizeof(T);
  std::uint64_t bits = word >> (place * kBits);
  if constexpr (kBits < 64) bits &= (std::uint64_t{1} << kBits) - 1;
  if (fill == Fill::integers) return static_cast<T>(static_cast<float>(bits % 9) - 4);
  const auto middle = static_cast<std::int64_t>(std::uint64_t{1} << (kBits - 1));
  if constexpr (std::is_same_v<T, double>)
    return static_cast<double>(static_cast<std::int64_t>(bits >> 10) - (std::int64_t{1} << 53)) *
           0x1p-53;
  else if constexpr (std::is_same_v<T, float>)
    return static_cast<float>(static_cast<std::int32_t>(bits >> 8) - (1 << 23)) * 0x1p-23F;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return static_cast<std::int32_t>(bits >> 25) - 64;
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return static_cast<std::int8_t>(static_cast<int>(bits * 255 >> 8) - 127);
  else
    return static_cast<T>(static_cast<float>(static_cast<std::int64_t>(bits) - middle) /
                          static_cast<float>(middle));
}

// Element `index` of a matrix of T, in the order in which it is stored.
template <typename T>
constexpr T renewed_element(Fill fill, std::uint64_t seed, std::int64_t index) {
  if (fill == Fill::zeros || fill == Fill::normal) return fill_element<T>(fill, seed, index);
  return element_of_word<T>(fill,
                            random_bits(seed, static_cast<std::uint64_t>(index / kPerWord<T>)),
                            static_cast<int>(index % kPerWord<T>));
}

// What a set's values follow from.
struct RenewedSet {
  std::uint64_t a, b, sparse, a_scales, b_scales, bias, residual;  // seeds

  constexpr RenewedSet(std::uint64_t seed, std::int64_t set)
      : a(random_bits(seed, 3 * static_cast<std::uint64_t>(set))),
        b(random_bits(seed, 3 * static_cast<std::uint64_t>(set) + 1)),
        sparse(random_bits(seed, 3 * static_cast<std::uint64_t>(set) + 2)),
        a_scales(mixed_bits(~a)),
        b_scales(mixed_bits(~b)),
        bias(mixed_bits(a)),
        residual(mixed_bits(b)) {}
};

// Eight places of k, one in each eighth of it.
struct SparsePlaces {
  static constexpr int kCount = 8;
  std::uint64_t seed;
  std::int64_t k;

  constexpr std::int64_t at(int which) const {
    const std::int64_t step = k / kCount;
    return which * step +
           static_cast<std::int64_t>(random_bits(seed, which) % static_cast<std::uint64_t>(step));
  }
  constexpr bool has(std::int64_t l) const {
    const std::int64_t which = l / (k / kCount);
    return which < kCount && at(static_cast<int>(which)) == l;
  }
};

// The row of A and the column of B, of one product of a batch; -1 where there are so few that they
// would be the problem.
struct SparseLines {
  std::int64_t which = 0, row = -1, column = -1;
  SparsePlaces of_row, of_column;

  constexpr SparseLines(const Products& p, const RenewedSet& set)
      : of_row{random_bits(set.sparse, 2), p.k}, of_column{random_bits(set.sparse, 3), p.k} {
    const auto any = [&](int draw, std::int64_t count) {
      return static_cast<std::int64_t>(random_bits(set.sparse, draw) %
                                       static_cast<std::uint64_t>(count));
    };
    which = p.product_of(any(4, rows_of_c(p)));  // it has rows
    constexpr std::int64_t kFewestLines = 16;
    if (p.k < 2 * SparsePlaces::kCount) return;
    if (p.rows(which) >= kFewestLines) row = any(0, p.rows(which));
    if (p.n >= kFewestLines) column = any(1, p.n);
  }

  // Whether an element of C is a sum of few products, by its row-major index.
  constexpr bool has(const Products& p, std::int64_t index) const {
    const Place at = place_in_c(p, index);
    return at.which == which && (at.row == row || at.column == column);
  }

  // Whether the element of A, or of B, that is stored at this place is zero for being in it.
  constexpr bool zeroes_a(const Products& p, std::int64_t at) const {
    if (at < p.before_a(which) || at >= p.before_a(which + 1)) return false;
    at -= p.before_a(which);
    const std::int64_t pitch = lda(p.product(which)), major = at / pitch, minor = at % pitch;
    const bool transposed = transposes_a(p.layout);
    return (transposed ? minor : major) == row && !of_row.has(transposed ? major : minor);
  }
  constexpr bool zeroes_b(const Problem& p, std::int64_t at) const {
    if (at / (p.k * p.n) != which) return false;
    at %= p.k * p.n;
    const std::int64_t major = at / ldb(p), minor = at % ldb(p);
    const bool transposed = transposes_b(p.layout);
    return (transposed ? major : minor) == column && !of_column.has(transposed ? minor : major);
  }
};

// Judges an element of C of the sparse row, or of the sparse column, by its eight products. The
// row and the column are of product `which`.
template <typename In, typename Out, typename Value>
constexpr void add_sparse(Verdict& verdict, const Products& p, const In* a, const In* b,
                          const Scales& all, const Written<Out>& c, const Bound& bound,
                          const SparsePlaces& places, std::int64_t which, std::int64_t row,
                          std::int64_t column, Value&& value_of) {
  const Problem one = p.product(which);
  const Scales scales = all.of_product(p, which, p.first_row(which));
  a += p.before_a(which);
  b += p.before_b(which);
  double expected = 0, magnitude = 0;
  for (int i = 0; i < SparsePlaces::kCount; ++i) {
    const double product = product_at(one, a, b, scales, row, column, places.at(i), value_of);
    expected += product;
    magnitude += product < 0 ? -product : product;
  }
  const std::int64_t index = p.before_c(which) + row * p.n + column;
  add_element(verdict, p, index, c, expected, magnitude, bound, value_of);
}

// Of an element, and of one that is a sum of eight products. Their number is too small for a limit
// of the root mean square.
inline Bound bound_for_element(const Problem& p) {
  Bound bound = bound_for(p);
  bound.rms_of_magnitude = bound.rms_of_expected = 0;
  return bound;
}
inline Bound bound_for_sparse(Problem p) {
  p.k = SparsePlaces::kCount;
  Bound bound = bound_for_element(p);
  // Products are aligned to the largest of an instruction, whatever the walk of their sums.
  if (traits_of(p.precision).coarse_error > 0) bound.of_magnitude *= 4;
  // The errors are of the largest element of a row or column, which is at most 4 or a normal one.
  if (p.precision == Precision::f64emulated) bound.absolute += 0x1p-44;
  return bound;
}

// Elements of a checked set that are computed exactly, anywhere in C; where there are no more, all,
// and Freivalds' check has nothing to add. After GELU, to which it does not apply, they are more.
constexpr std::int64_t most_checked_elements(const Problem& p) {
  return p.activation == Activation::bias_gelu ? 1024 : 64;
}

constexpr bool all_exactly(const Problem& p) {
  return elements_of_c(p) <= most_checked_elements(p);
}
constexpr bool checks_rows(const Problem& p) {
  return !all_exactly(p) && p.activation != Activation::bias_gelu;
}
constexpr std::int64_t checked_elements(const Problem& p) {
  return all_exactly(p) ? elements_of_c(p) : most_checked_elements(p);
}
constexpr std::int64_t checked_index(const Problem& p, std::uint64_t secret, std::int64_t which) {
  if (all_exactly(p)) return which;
  return static_cast<std::int64_t>(random_bits(~secret, static_cast<std::uint64_t>(which)) %
                                   static_cast<std::uint64_t>(elements_of_c(p)));
}

// A check that is queued behind the launches of a sample.
class PendingVerdict {
 public:
  virtual ~PendingVerdict() = default;
  // Waits until the device has come so far. Of several sets the first that does not pass, or all.
  virtual Verdict read() = 0;
};

}  // namespace gemm::bench
