#include "bench/verification/wrong_pattern.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

// Of a wrong area so much is wrong at least: an element may be right by chance.
constexpr double kNearlyAll = 0.95;

std::string element(std::int64_t i, std::int64_t j) {
  return "c[" + std::to_string(i) + "," + std::to_string(j) + "]";
}

class Wrong {
 public:
  explicit Wrong(const Compared& matrix)
      : matrix_(matrix), m_(matrix.m), n_(matrix.n), before_((m_ + 1) * (n_ + 1)) {
    for (std::int64_t i = 0; i < m_; ++i)
      for (std::int64_t j = 0; j < n_; ++j) {
        const bool wrong = !is(i, j, i, j);
        if (wrong) places_.push_back({i, j});
        before_[(i + 1) * (n_ + 1) + j + 1] =
            wrong + before(i, j + 1) + before(i + 1, j) - before(i, j);
      }
  }

  std::size_t count() const { return places_.size(); }

  // What stands there.
  std::string values() const {
    if (all([&](auto p) { return matrix_.unwritten[at(p.i, p.j)]; })) return "were never written";
    if (all([&](auto p) { return std::isnan(c(p.i, p.j)); })) return "are NaN";
    if (all([&](auto p) { return !std::isfinite(c(p.i, p.j)); })) return "are NaN or infinite";
    if (all([&](auto p) { return c(p.i, p.j) == 0; })) return "are 0";
    if (m_ == n_ && nearly_all([&](auto p) { return is(p.i, p.j, p.j, p.i); }))
      return "hold the transpose: " + element(0, 1) + " has what belongs to " + element(1, 0);
    struct Shift {
      std::int64_t rows, columns;
      const char* text;
    };
    for (const Shift s :
         {Shift{1, 0, "the row below"}, Shift{-1, 0, "the row above"},
          Shift{0, 1, "the column to the right"}, Shift{0, -1, "the column to the left"}})
      if (nearly_all([&](auto p) { return is(p.i, p.j, p.i + s.rows, p.j + s.columns); }))
        return std::string("are off by one: they hold what belongs to ") + s.text;
    if (const auto factor = common_factor()) return "are " + *factor + " times what they should be";
    return "";
  }

  // Where they are.
  std::string places() const {
    if (nearly_full(0, 0, m_, n_)) return "everywhere";
    for (const auto& find : {&Wrong::edges, &Wrong::rectangle, &Wrong::tiles})
      if (const auto found = (this->*find)()) return *found;
    if (const std::int64_t rows = wrong_tiles_of(1, n_); rows > 0)
      return "in " + std::to_string(rows) + " whole rows, the first " +
             std::to_string(places_[0].i);
    if (const std::int64_t columns = wrong_tiles_of(m_, 1); columns > 0)
      return "in " + std::to_string(columns) + " whole columns";
    return "scattered";
  }

 private:
  struct Place {
    std::int64_t i, j;
  };

  std::size_t at(std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(i * n_ + j);
  }
  double c(std::int64_t i, std::int64_t j) const { return matrix_.c[at(i, j)]; }

  // Does element i, j hold what belongs to r, s?
  bool is(std::int64_t i, std::int64_t j, std::int64_t r, std::int64_t s) const {
    return r >= 0 && r < m_ && s >= 0 && s < n_ &&
           std::fabs(c(i, j) - matrix_.expected[at(r, s)]) <= matrix_.bound[at(r, s)];
  }
  template <typename F>
  bool all(F&& f) const {
    return std::ranges::all_of(places_, f);
  }
  // Elements at the border have no neighbour: of a row in 8, one.
  template <typename F>
  bool nearly_all(F&& f) const {
    constexpr double kMost = 0.85;
    const auto count = static_cast<double>(places_.size());
    return static_cast<double>(std::ranges::count_if(places_, f)) >= kMost * count && count > 1;
  }

  std::int64_t before(std::int64_t i, std::int64_t j) const { return before_[i * (n_ + 1) + j]; }
  // How many are wrong in so many rows and columns from i, j on.
  std::int64_t box(std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns) const {
    return before(i + rows, j + columns) - before(i, j + columns) - before(i + rows, j) +
           before(i, j);
  }
  bool nearly_full(std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns) const {
    return static_cast<double>(box(i, j, rows, columns)) >=
           kNearlyAll * static_cast<double>(rows * columns);
  }

  // A factor is reported if it holds for each, as that of the largest of them.
  std::optional<std::string> common_factor() const {
    const Place largest = *std::ranges::max_element(
        places_, {}, [&](Place p) { return std::fabs(matrix_.expected[at(p.i, p.j)]); });
    const double factor = c(largest.i, largest.j) / matrix_.expected[at(largest.i, largest.j)];
    if (!std::isfinite(factor) || std::fabs(factor - 1) < 0.01 || places_.size() < 4)
      return std::nullopt;  // a factor near 1 is no pattern
    const bool holds = all([&](Place p) {
      return std::fabs(c(p.i, p.j) - factor * matrix_.expected[at(p.i, p.j)]) <=
             4 * (std::fabs(factor) + 1) * matrix_.bound[at(p.i, p.j)];
    });
    if (!holds) return std::nullopt;
    return formatted("%.4g", factor);
  }

  // Right as far as whole tiles go, wrong behind them.
  std::optional<std::string> edges() const {
    std::int64_t best = 0, best_area = 0;
    for (std::int64_t tile = 256; tile >= 2; tile /= 2) {
      const std::int64_t rows = m_ - m_ % tile, columns = n_ - n_ % tile;
      if (rows * columns > best_area && rows * columns < m_ * n_ && box(0, 0, rows, columns) == 0) {
        best = tile;
        best_area = rows * columns;
      }
    }
    if (best == 0) return std::nullopt;
    const std::int64_t rows = m_ - m_ % best, columns = n_ - n_ % best;
    std::string where;
    if (box(rows, 0, m_ - rows, n_) > 0) where = "rows from " + std::to_string(rows);
    if (box(0, columns, rows, n_ - columns) > 0)
      where += (where.empty() ? "" : ", ") + std::string("columns from ") + std::to_string(columns);
    return "only at the edges, after the last whole tile of " + std::to_string(best) + " (" +
           where + ")";
  }

  std::optional<std::string> rectangle() const {
    std::int64_t top = m_, left = n_, bottom = 0, right = 0;
    for (const Place p : places_) {
      top = std::min(top, p.i);
      left = std::min(left, p.j);
      bottom = std::max(bottom, p.i);
      right = std::max(right, p.j);
    }
    if (!nearly_full(top, left, bottom - top + 1, right - left + 1)) return std::nullopt;
    const auto range = [](const char* what, std::int64_t first, std::int64_t last) {
      return first == last
                 ? what + std::string(" ") + std::to_string(first)
                 : what + std::string("s ") + std::to_string(first) + " to " + std::to_string(last);
    };
    if (left == 0 && right == n_ - 1) return "in all of " + range("row", top, bottom);
    if (top == 0 && bottom == m_ - 1) return "in all of " + range("column", left, right);
    return "in " + range("row", top, bottom) + " of " + range("column", left, right);
  }

  // The largest tile by which C falls into right and wrong.
  std::optional<std::string> tiles() const {
    std::int64_t best_rows = 0, best_columns = 0, wrong_tiles = 0;
    for (std::int64_t rows = 8; rows <= 256; rows *= 2)
      for (std::int64_t columns = 8; columns <= 256; columns *= 2) {
        if (rows > m_ || columns > n_ || rows * columns < best_rows * best_columns) continue;
        if (const std::int64_t count = wrong_tiles_of(rows, columns); count > 0) {
          best_rows = rows;
          best_columns = columns;
          wrong_tiles = count;
        }
      }
    if (wrong_tiles == 0) return std::nullopt;
    return "in " + std::to_string(wrong_tiles) + " whole tiles of " + std::to_string(best_rows) +
           " x " + std::to_string(best_columns) + ", the first at " +
           element(places_[0].i / best_rows * best_rows,
                   places_[0].j / best_columns * best_columns);
  }
  // 0 where a tile is neither right nor wrong.
  std::int64_t wrong_tiles_of(std::int64_t rows, std::int64_t columns) const {
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < m_; i += rows)
      for (std::int64_t j = 0; j < n_; j += columns) {
        const std::int64_t high = std::min(rows, m_ - i), wide = std::min(columns, n_ - j);
        if (box(i, j, high, wide) == 0) continue;
        if (!nearly_full(i, j, high, wide)) return 0;
        ++wrong;
      }
    return wrong;
  }

  const Compared& matrix_;
  std::int64_t m_, n_;
  std::vector<std::int64_t> before_;  // wrong elements above and left of a corner
  std::vector<Place> places_;         // row by row
};

}  // namespace

std::string wrong_pattern(const Compared& matrix) {
  const Wrong wrong(matrix);
  if (wrong.count() < 2) return "";
  const std::string values = wrong.values();
  return (values.empty() ? "the wrong elements are " : "the wrong elements " + values + ", ") +
         wrong.places();
}

}  // namespace gemm::bench
