// Each wrong matrix is named for what it is.
#include "bench/verification/wrong_pattern.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

void expect(const Compared& which, const std::string& text) {
  EXPECT_EQ(wrong_pattern(which), text.empty() ? "" : "the wrong elements " + text);
}

// Of 64 x 64 and other sizes, what is wrong where, and what is said of it.
TEST(WrongPattern, KnowsValuesAndPlaces) {
  using Where = std::function<bool(std::int64_t i, std::int64_t j)>;
  const Where below = [](auto i, auto) { return i >= 32; };
  const Where everywhere = [](auto, auto) { return true; };
  const Value off = [](auto i, auto j) { return right(i, j) + 1 + static_cast<double>(i); };
  const Value nan = [](auto, auto) { return kNaN; }, zero = [](auto, auto) { return 0.0; };
  const struct {
    std::int64_t m, n;
    Where where;
    Value value;
    std::string text;
  } cases[] = {
      {20, 30, [](auto, auto) { return false; }, off, ""},
      {64, 64, [](auto i, auto j) { return i == 7 && j == 9; }, off, ""},
      {64, 64, below, nan, "are NaN, in all of rows 32 to 63"},
      {9, 9, everywhere, zero, "are 0, everywhere"},
      {9, 9, everywhere, [](auto i, auto j) { return 2 * right(i, j); },
       "are 2 times what they should be, everywhere"},
      {40, 40, everywhere, [](auto i, auto j) { return right(j, i); },
       "hold the transpose, everywhere"},
      {64, 64, [](auto i, auto j) { return i != 3 || j != 3; }, off, "are everywhere"},
      {64, 64, [](auto i, auto) { return i == 63; }, off, "are in all of row 63"},
      {64, 64, [](auto, auto j) { return j == 5; }, off, "are in all of column 5"},
      {128, 128, [](auto i, auto j) { return i / 32 == 1 && j / 32 == 2; }, off,
       "are in rows 32 to 63 of columns 64 to 95"},
      {70, 100, [](auto i, auto j) { return i >= 64 || j >= 96; }, off,
       "are only after the last whole tile of 32"},
      {64, 64, [](auto i, auto j) { return (i * 37 + j * 11) % 13 == 0; }, off, "are scattered"},
  };
  for (const auto& [m, n, where, value, text] : cases)
    expect(matrix(m, n, [&](auto i, auto j) { return where(i, j) ? value(i, j) : right(i, j); }),
           text);
  Compared unwritten = matrix(64, 64, [&](auto i, auto j) { return i >= 32 ? kNaN : right(i, j); });
  std::fill(unwritten.unwritten.begin() + 32 * 64, unwritten.unwritten.end(), true);
  expect(unwritten, "were never written, in all of rows 32 to 63");
  unwritten.unwritten[40 * 64] = false;
  expect(unwritten, "are NaN, in all of rows 32 to 63");
}

}  // namespace
}  // namespace gemm::bench
