// How many factors the blocks of A and B have (Precision::e4m3block), as they are stored. Of a
// batch the rows of A's go through all products, as those of A do; those of each B are one after
// another.
#pragma once

#include <cstdint>

#include "kernels/gemm.hpp"

namespace gemm {

// 0 where the problem has none. Rows of B's may end with some that no element has.
constexpr std::int64_t scales_of_a(const Problem& p) {
  return has_scales(p.precision) ? ceil_div(p.k, kScaleBlock) * p.batch * p.m : 0;
}
constexpr std::int64_t scales_of_each_b(const Problem& p) {
  return has_scales(p.precision) ? ceil_div(p.n, kScaleBlock) * scales_of_b_stride(p.k) : 0;
}
constexpr std::int64_t scales_of_b(const Problem& p) { return p.batch * scales_of_each_b(p); }
constexpr double bytes_of_scales(const Problem& p) {
  return sizeof(float) * p.batch *
         (static_cast<double>(scales_of_a(one_of(p))) + static_cast<double>(scales_of_each_b(p)));
}

}  // namespace gemm
