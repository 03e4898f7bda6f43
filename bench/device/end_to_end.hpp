// A kernel with its copies: A and B from the host to the GPU, the product, and C back to the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bench/device/backend.hpp"

namespace gemm::bench {

// Rows of A and C that are copied and computed together.
struct Panel {
  std::int64_t first, rows;
  bool operator==(const Panel&) const = default;
};

// At most 8, of whole multiples of 256 rows but for the last: few enough to fill a GPU each, and
// as well aligned as the whole.
inline std::vector<Panel> row_panels(std::int64_t m) {
  constexpr std::int64_t kMost = 8, kMultiple = 256;
  const std::int64_t rows = (m - 1) / (kMost * kMultiple) * kMultiple + kMultiple;
  std::vector<Panel> panels;
  for (std::int64_t first = 0; first < m; first += rows)
    panels.push_back({first, std::min(rows, m - first)});
  return panels;
}

// The problem of a panel: its rows, which are contiguous in layout nn only, with all of B.
constexpr Problem panel_problem(const Problem& p, const Panel& panel) {
  return {panel.rows, p.n, p.k, p.precision};
}

// For the device that make_cuda_backend made current. Throws OutOfMemory, of the GPU or of the
// host.
std::unique_ptr<EndToEnd> make_cuda_end_to_end(Backend& backend, const Transferred& what,
                                               std::span<const Operands> sets);

}  // namespace gemm::bench
