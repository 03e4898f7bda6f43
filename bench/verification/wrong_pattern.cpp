#include "bench/verification/wrong_pattern.hpp"

#include <algorithm>
#include <cmath>

#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

// Of a wrong area so much is wrong at least: an element may be right by chance.
constexpr double kNearlyAll = 0.95;

using Places = std::vector<std::int64_t>;  // row-major, in ascending order

// Does `at` hold what belongs to `other`?
bool holds(const Compared& x, std::int64_t at, std::int64_t other) {
  return std::fabs(x.c[at] - x.expected[other]) <= x.bound[other];
}

std::string values_of(const Compared& x, const Places& wrong) {
  const auto all = [&](auto&& is) { return std::ranges::all_of(wrong, is); };
  if (all([&](auto at) { return x.unwritten[at]; })) return "were never written, ";
  if (all([&](auto at) { return std::isnan(x.c[at]); })) return "are NaN, ";
  if (all([&](auto at) { return x.c[at] == 0; })) return "are 0, ";
  if (x.m == x.n && all([&](auto at) { return holds(x, at, at % x.n * x.n + at / x.n); }))
    return "hold the transpose, ";
  const std::int64_t largest = *std::ranges::max_element(
      wrong, {}, [&](std::int64_t at) { return std::fabs(x.expected[at]); });
  // Its own rounding is in the factor, too.
  const double factor = x.c[largest] / x.expected[largest];
  if (std::isfinite(factor) && wrong.size() >= 4 && all([&](auto at) {
        return std::fabs(x.c[at] - factor * x.expected[at]) <=
               4 * (std::fabs(factor) + 1) * x.bound[at];
      }))
    return formatted("are %.4g times what they should be, ", factor);
  return "are ";
}

std::string range_of(const char* what, std::int64_t first, std::int64_t last) {
  return first == last ? formatted("%s %lld", what, static_cast<long long>(first))
                       : formatted("%ss %lld to %lld", what, static_cast<long long>(first),
                                   static_cast<long long>(last));
}

std::string places_of(const Compared& x, const Places& wrong) {
  std::int64_t left = x.n, right = 0;
  for (const std::int64_t at : wrong) {
    left = std::min(left, at % x.n);
    right = std::max(right, at % x.n);
  }
  const std::int64_t top = wrong.front() / x.n, bottom = wrong.back() / x.n;
  const auto area = static_cast<double>((bottom - top + 1) * (right - left + 1));
  const bool all_rows = top == 0 && bottom == x.m - 1, all_columns = left == 0 && right == x.n - 1;
  if (static_cast<double>(wrong.size()) >= kNearlyAll * area) {
    if (all_rows && all_columns) return "everywhere";
    if (all_columns) return "in all of " + range_of("row", top, bottom);
    if (all_rows) return "in all of " + range_of("column", left, right);
    return "in " + range_of("row", top, bottom) + " of " + range_of("column", left, right);
  }
  std::int64_t cut_by = 0, right_area = 0;  // the tile by which most of C is right
  for (std::int64_t tile = 256; tile >= 8; tile /= 2) {
    const std::int64_t rows = x.m - x.m % tile, columns = x.n - x.n % tile;
    if (rows * columns <= right_area || rows * columns == x.m * x.n) continue;
    if (std::ranges::any_of(wrong,
                            [&](std::int64_t at) { return at / x.n < rows && at % x.n < columns; }))
      continue;
    cut_by = tile;
    right_area = rows * columns;
  }
  if (cut_by > 0)
    return formatted("only after the last whole tile of %d", static_cast<int>(cut_by));
  return "scattered";
}

}  // namespace

std::string wrong_pattern(const Compared& x) {
  Places wrong;
  for (std::int64_t at = 0; at < x.m * x.n; ++at)
    if (!holds(x, at, at)) wrong.push_back(at);
  if (wrong.size() < 2) return "";
  return "the wrong elements " + values_of(x, wrong) + places_of(x, wrong);
}

}  // namespace gemm::bench
