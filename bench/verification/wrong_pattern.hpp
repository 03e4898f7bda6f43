// What wrong elements have in common: where they are, and their values. A hint for the
// developer; it decides nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gemm::bench {

// C and its expected values, row by row.
struct Compared {
  std::int64_t m, n;
  std::vector<double> c, expected, bound;  // wrong where not |c - expected| <= bound
  std::vector<bool> unwritten;             // as it was before the launch
};

// "the wrong elements are NaN, in all of rows 32 to 63"; empty where nothing is wrong, or one
// element, of which there is no more to say.
std::string wrong_pattern(const Compared& matrix);

}  // namespace gemm::bench
