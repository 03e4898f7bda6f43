#include "bench/device/end_to_end.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gemm::bench {

std::vector<Panel> row_panels(std::int64_t m) {
  constexpr std::int64_t kMost = 8, kMultiple = 256;
  const std::int64_t rows = (m - 1) / (kMost * kMultiple) * kMultiple + kMultiple;
  std::vector<Panel> panels;
  for (std::int64_t first = 0; first < m; first += rows)
    panels.push_back({first, std::min(rows, m - first)});
  return panels;
}

}  // namespace gemm::bench
