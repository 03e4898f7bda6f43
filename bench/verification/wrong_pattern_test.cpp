// Each wrong matrix is named for what it is.
#include "bench/verification/wrong_pattern.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace gemm::bench {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Value = std::function<double(std::int64_t i, std::int64_t j)>;

// No two of them are close to each other.
double right(std::int64_t i, std::int64_t j) {
  return std::sin(static_cast<double>(1 + 7 * i * i + 3 * j + i * j)) * 100;
}

Compared matrix(std::int64_t m, std::int64_t n, const Value& value) {
  Compared made{.m = m, .n = n, .unwritten = std::vector<bool>(static_cast<std::size_t>(m * n))};
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      made.c.push_back(value(i, j));
      made.expected.push_back(right(i, j));
      made.bound.push_back(1e-9);
    }
  return made;
}

// `value` where `where` holds, and what is right elsewhere.
Compared spoilt(
    std::int64_t m, std::int64_t n, const std::function<bool(std::int64_t, std::int64_t)>& where,
    const Value& value = [](auto i, auto j) { return right(i, j) + 1 + i; }) {
  return matrix(m, n, [&](auto i, auto j) { return where(i, j) ? value(i, j) : right(i, j); });
}

void expect(const Compared& which, const std::string& text) {
  EXPECT_EQ(wrong_pattern(which), text.empty() ? "" : "the wrong elements " + text);
}

TEST(WrongPattern, KnowsValues) {
  expect(matrix(20, 30, right), "");
  Compared which = spoilt(
      64, 64, [](auto i, auto) { return i >= 32; }, [](auto, auto) { return kNaN; });
  expect(which, "are NaN, in all of rows 32 to 63");
  for (std::size_t i = 32 * 64; i < 64 * 64; ++i) which.unwritten[i] = true;
  expect(which, "were never written, in all of rows 32 to 63");
  which.unwritten[40 * 64] = false;
  expect(which, "are NaN, in all of rows 32 to 63");
  expect(matrix(40, 40, [](auto i, auto j) { return right(j, i); }),
         "hold the transpose, everywhere");
  expect(matrix(9, 9, [](auto i, auto j) { return 2 * right(i, j); }),
         "are 2 times what they should be, everywhere");
  expect(matrix(9, 9, [](auto, auto) { return 0.0; }), "are 0, everywhere");
}

TEST(WrongPattern, KnowsPlaces) {
  const auto expect_where = [](std::int64_t m, std::int64_t n, auto&& where,
                               const std::string& text) { expect(spoilt(m, n, where), text); };
  expect_where(
      70, 100, [](auto i, auto j) { return i >= 64 || j >= 96; },
      "are only after the last whole tile of 32");
  expect_where(
      128, 128, [](auto i, auto j) { return (i / 32 + j / 32) % 2 == 1; },
      "are in 8 whole tiles of 32 x 32");
  expect_where(
      128, 128, [](auto i, auto j) { return i / 32 == 1 && j / 32 == 2; },
      "are in rows 32 to 63 of columns 64 to 95");
  expect_where(
      64, 64, [](auto i, auto) { return i == 63; }, "are in all of row 63");
  expect_where(
      64, 64, [](auto, auto j) { return j == 5; }, "are in all of column 5");
  expect_where(
      64, 64, [](auto i, auto j) { return i == 7 && j == 9; }, "");
  expect_where(
      64, 64, [](auto i, auto j) { return (i * 37 + j * 11) % 13 == 0; }, "are scattered");
  expect_where(
      64, 64, [](auto i, auto j) { return i != 3 || j != 3; }, "are everywhere");
}

}  // namespace
}  // namespace gemm::bench
