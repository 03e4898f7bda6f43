// Names of the layouts, and the index of an element in a stored A or B.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/gemm.hpp"

namespace gemm {

inline constexpr std::array kLayouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt};

// As in benchmark names and on the command line.
constexpr std::string_view name_of(Layout layout) {
  constexpr std::string_view kNames[] = {"nn", "nt", "tn", "tt"};
  return kNames[static_cast<int>(layout)];
}

constexpr std::optional<Layout> layout_named(std::string_view name) {
  for (const Layout layout : kLayouts)
    if (name_of(layout) == name) return layout;
  return std::nullopt;
}

// Leading dimensions as in BLAS: elements from one stored row to the next.
constexpr std::int64_t lda(const Problem& p) { return transposes_a(p.layout) ? p.m : p.k; }
constexpr std::int64_t ldb(const Problem& p) { return transposes_b(p.layout) ? p.k : p.n; }

// Indices of A(row, l) and B(l, column).
constexpr std::int64_t index_in_a(const Problem& p, std::int64_t row, std::int64_t l) {
  return transposes_a(p.layout) ? l * lda(p) + row : row * lda(p) + l;
}
constexpr std::int64_t index_in_b(const Problem& p, std::int64_t l, std::int64_t column) {
  return transposes_b(p.layout) ? column * ldb(p) + l : l * ldb(p) + column;
}

// Calls use.operator()<transposes_a, transposes_b>() for a layout.
template <typename Use>
auto with_transposes(Layout layout, Use use) {
  if (transposes_a(layout))
    return transposes_b(layout) ? use.template operator()<true, true>()
                                : use.template operator()<true, false>();
  return transposes_b(layout) ? use.template operator()<false, true>()
                              : use.template operator()<false, false>();
}

}  // namespace gemm
