// How the matrices of an end-to-end case get to the GPU and back, and how long each part of that
// takes by itself.
#pragma once

#include <functional>
#include <string_view>

#include "kernels/gemm.hpp"

namespace gemm::bench {

enum class Transfer {
  pageable,    // memory as any program has it: the driver copies it piece by piece
  pinned,      // memory that the GPU reads and writes itself
  overlapped,  // pinned, and panels of rows: some travel while others are computed
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

constexpr double to_device_bytes(const Problem& p) {
  return traits_of(p.precision).input_bytes * (1.0 * p.m * p.k + 1.0 * p.k * p.n);
}
constexpr double from_device_bytes(const Problem& p) {
  return bytes_minimum(p) - to_device_bytes(p);
}

// Each part by itself, between the same memories.
struct PartTimes {
  double to_device_seconds, kernel_seconds, from_device_seconds;

  // Of the copies' time, as much as the whole does not show. Panels of rows cannot hide the way of
  // B: at most two thirds of square matrices. Negative if the whole takes longer than its parts.
  constexpr double hidden_share(double whole_seconds) const {
    const double copies = to_device_seconds + from_device_seconds;
    return (copies + kernel_seconds - whole_seconds) / copies;
  }
};

}  // namespace gemm::bench
