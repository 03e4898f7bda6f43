// Groups: how the rows of all A and C are shared out to the products of a batch (Problem::tokens),
// and where those of each product begin.
//
// Products of groups have the same n and k; their rows differ, and some have none. The matrices are
// packed like those of any batch: the A of a product begins where that of the one before ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/gemm.hpp"
#include "kernels/scales.hpp"

namespace gemm {

inline constexpr int kMostGroups = 512;
inline constexpr std::int64_t kMostGroupedRows = 0x7fffffff;  // of all groups

constexpr bool is_grouped(const Problem& p) { return p.tokens != Tokens::equal; }

// The distributions of groups by name.
inline constexpr std::string_view kTokensNames = "band, zipf, real";
std::optional<Tokens> tokens_named(std::string_view name);
// "zipf", with a seed other than 0 "zipf:3"; empty for a plain batch.
std::string name_of_tokens(const Problem& p);

// The first row of each product among those of all A or C, and at last the number of all rows:
// batch + 1 numbers. The same for the same problem on every machine. Throws std::invalid_argument
// for more groups than kMostGroups or more rows than kMostGroupedRows.
std::vector<std::int64_t> row_starts(const Problem& p);

// Each input that is needed read once, the output written once: as bytes_minimum, without the B of
// products that have no rows, and with scales.
double compulsory_bytes(const Problem& p);

// A problem with the rows of its products. A kernel takes it as a __grid_constant__ parameter.
class Products : public Problem {
 public:
  explicit Products(const Problem& p);

  constexpr std::int64_t first_row(std::int64_t which) const {
    return tokens == Tokens::equal ? which * m : starts_[which];
  }
  constexpr std::int64_t rows(std::int64_t which) const {
    return first_row(which + 1) - first_row(which);
  }
  // Of which product this row of all A or C is.
  constexpr std::int64_t product_of(std::int64_t row) const {
    if (tokens == Tokens::equal) return row / m;
    std::int64_t from = 0, end = batch;  // starts_[from] <= row < starts_[end]
    while (end - from > 1) {
      const std::int64_t middle = (from + end) / 2;
      (starts_[middle] <= row ? from : end) = middle;
    }
    return from;
  }
  // A product, alone; m is 0 where it has no rows.
  constexpr Problem product(std::int64_t which) const {
    Problem one = one_of(*this);
    one.m = rows(which);
    one.tokens = Tokens::equal;
    one.tokens_seed = 0;
    return one;
  }
  // Elements before the matrices of a product.
  constexpr std::int64_t before_a(std::int64_t which) const { return first_row(which) * k; }
  constexpr std::int64_t before_b(std::int64_t which) const { return which * k * n; }
  constexpr std::int64_t before_c(std::int64_t which) const { return first_row(which) * n; }

  // Its operands. Rows of A's scales are as long as those of all products.
  Operands operands(const Operands& all, std::int64_t which) const {
    const PrecisionTraits& traits = traits_of(precision);
    Operands one = all;
    one.a = static_cast<const std::byte*>(all.a) + before_a(which) * traits.input_bytes;
    one.b = static_cast<const std::byte*>(all.b) + before_b(which) * traits.input_bytes;
    one.c = static_cast<std::byte*>(all.c) + before_c(which) * traits.output_bytes;
    if (has_scales(precision)) {
      one.a_scales += first_row(which);
      one.b_scales += which * scales_of_each_b(*this);
    }
    return one;
  }

 private:
  std::int32_t starts_[kMostGroups + 1] = {};  // of groups
};

}  // namespace gemm
