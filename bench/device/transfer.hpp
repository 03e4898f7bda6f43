// How the matrices of an end-to-end case are copied to the GPU and back, and the time of each part
// alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "kernels/gemm.hpp"

namespace gemm::bench {

enum class Transfer {
  pageable,    // ordinary memory: the driver stages it piece by piece
  pinned,      // page-locked memory that the GPU reads and writes directly
  overlapped,  // pinned, in panels of rows: copies of some overlap with the product of others
};
inline constexpr Transfer kTransfers[] = {Transfer::pageable, Transfer::pinned,
                                          Transfer::overlapped};

constexpr std::string_view name_of(Transfer transfer) {
  constexpr std::string_view kNames[] = {"pageable", "pinned", "overlapped"};
  return kNames[static_cast<int>(transfer)];
}

// A problem that is computed end to end, and how its kernel is prepared for a panel of its rows.
struct Transferred {
  Problem problem;
  Transfer transfer;
  std::function<Launch(const Problem& panel, const Operands&)> prepare;
  bool one_at_a_time;  // launches share a workspace, as those of a library do
};

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

constexpr double to_device_bytes(const Problem& p) {
  return traits_of(p.precision).input_bytes * (1.0 * p.m * p.k + 1.0 * p.k * p.n);
}
constexpr double from_device_bytes(const Problem& p) {
  return bytes_minimum(p) - to_device_bytes(p);
}

// Each part by itself, between the same memories.
struct PartTimes {
  double to_device_seconds, kernel_seconds, from_device_seconds;

  // Transfer time hidden by overlap, over all transfer time. Panels of rows cannot hide the copy of
  // B: at most two thirds of square matrices. Negative if the whole takes longer than its parts.
  constexpr double hidden_share(double whole_seconds) const {
    const double copies = to_device_seconds + from_device_seconds;
    return (copies + kernel_seconds - whole_seconds) / copies;
  }
};

}  // namespace gemm::bench
