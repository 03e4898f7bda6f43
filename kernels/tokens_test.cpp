#include "kernels/tokens.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace gemm {
namespace {

Problem grouped(std::int32_t groups, std::int64_t rows, Tokens tokens, std::uint16_t seed = 0) {
  Problem p{rows, 40, 24, Precision::bf16, Layout::nt, groups};
  p.tokens = tokens;
  p.tokens_seed = seed;
  return p;
}

std::vector<std::int64_t> rows_of(const Problem& p) {
  const Products products(p);
  std::vector<std::int64_t> rows;
  for (std::int64_t which = 0; which < p.batch; ++which) rows.push_back(products.rows(which));
  return rows;
}

TEST(Tokens, AreSharedOutWithoutALoss) {
  for (const Tokens tokens : {Tokens::equal, Tokens::band, Tokens::zipf, Tokens::real})
    for (const std::int32_t groups : {1, 2, 8, 31, 32, 33, 128, 512})
      for (const std::int64_t rows : {1, 3, 512})
        for (const std::uint16_t seed : {0, 1, 65535}) {
          const Problem p = grouped(groups, rows, tokens, seed);
          const auto starts = row_starts(p);
          ASSERT_EQ(std::ssize(starts), groups + 1);
          EXPECT_EQ(starts.front(), 0);
          EXPECT_EQ(starts.back(), groups * rows);
          EXPECT_TRUE(std::ranges::is_sorted(starts));
          EXPECT_EQ(starts, row_starts(p));
          const Products products(p);
          for (std::int64_t row = 0; row < starts.back(); ++row) {
            const std::int64_t which = products.product_of(row);
            ASSERT_TRUE(starts[which] <= row && row < starts[which + 1]) << row;
          }
        }
}

TEST(Tokens, AreDistributedAsTheirNameSays) {
  auto band = rows_of(grouped(64, 1000, Tokens::band));
  std::ranges::sort(band);
  EXPECT_LT(1.0 * band.back() / band.front(), 1.302 / 0.698);
  EXPECT_GT(1.0 * band.back() / band.front(), 1.2 / 0.8);
  auto zipf = rows_of(grouped(8, 1000, Tokens::zipf));
  EXPECT_FALSE(std::ranges::is_sorted(zipf, std::greater{})) << "the order is the seed's";
  std::ranges::sort(zipf, std::greater{});
  EXPECT_EQ(zipf, (std::vector<std::int64_t>{2943, 1472, 981, 736, 589, 491, 420, 368}));
  const auto real = rows_of(grouped(32, 503, Tokens::real));  // twice the published row
  EXPECT_EQ(real[2], 2 * 1799);
  EXPECT_EQ(std::ranges::count(real, 0), 7);
  EXPECT_EQ(rows_of(grouped(64, 503, Tokens::real))[34], 2 * 1799);
  for (const Tokens tokens : {Tokens::band, Tokens::zipf, Tokens::real})
    EXPECT_NE(rows_of(grouped(32, 503, tokens)), rows_of(grouped(32, 503, tokens, 1)));
  EXPECT_GT(std::ranges::count(rows_of(grouped(128, 1, Tokens::zipf)), 0), 0);
  for (const auto& [tokens, name] : {std::pair{Tokens::band, "band"}, {Tokens::real, "real"}}) {
    EXPECT_EQ(tokens_named(name), tokens);
    EXPECT_EQ(name_of_tokens(grouped(2, 1, tokens)), name);
    EXPECT_EQ(name_of_tokens(grouped(2, 1, tokens, 7)), std::string(name) + ":7");
  }
  EXPECT_FALSE(tokens_named("") || tokens_named("equal") || tokens_named("zip"));
}

TEST(Tokens, TooManyAreRefused) {
  EXPECT_THROW(row_starts(grouped(kMostGroups + 1, 1, Tokens::zipf)), std::invalid_argument);
  EXPECT_THROW(row_starts(grouped(2, std::int64_t{1} << 30, Tokens::zipf)), std::invalid_argument);
}

TEST(Products, OfGroupsArePackedAndKnowTheirOperands) {
  const Problem p = grouped(32, 503, Tokens::real);
  const Products products(p);
  EXPECT_EQ(products.rows(6), 0);
  EXPECT_EQ(products.before_c(7), products.before_c(6));
  const Problem third = products.product(2);
  EXPECT_EQ(third, (Problem{3598, 40, 24, Precision::bf16, Layout::nt}));
  const std::byte a[1]{}, b[1]{};
  std::byte c[1];
  const Operands at = products.operands({a, b, c}, 1);
  EXPECT_EQ(at.a, a + 8 * 24 * 2);
  EXPECT_EQ(at.b, b + 24 * 40 * 2);
  EXPECT_EQ(at.c, c + 8 * 40 * 2);
  EXPECT_EQ(compulsory_bytes(p), bytes_minimum(p) - 7 * 24 * 40 * 2) << "B of empty groups";
  EXPECT_EQ(compulsory_bytes(third), bytes_minimum(third));
  const Problem scaled{3, 130, 700, Precision::e4m3block, Layout::nt};
  EXPECT_EQ(compulsory_bytes(scaled), bytes_minimum(scaled) + 4 * (6 * 3 + 2 * 8));
}

// A row of A's scales goes through all groups; each group has a B with scales of its own.
TEST(Products, OfGroupsKnowTheirScales) {
  Problem p = grouped(32, 503, Tokens::real);
  p.precision = Precision::e4m3block;
  p.n = 130;
  p.k = 700;
  const float scales[1]{};
  const Operands at = Products(p).operands({nullptr, nullptr, nullptr, scales, scales}, 2);
  EXPECT_EQ(at.a_scales, scales + 8 + 2052);
  EXPECT_EQ(at.b_scales, scales + 2 * 2 * 8);
  EXPECT_EQ(compulsory_bytes(p),
            bytes_minimum(p) - 7 * 700 * 130 + 4.0 * (6 * 32 * 503 + 25 * 2 * 8));
}

}  // namespace
}  // namespace gemm
