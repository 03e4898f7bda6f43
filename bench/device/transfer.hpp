// How the matrices of an end-to-end case are copied to the GPU and back, and the time of each part
// alone.
#pragma once

#include <functional>
#include <string_view>

#include "kernels/gemm.hpp"

namespace gemm::bench {

enum class Transfer {
  pageable,  // ordinary memory: the driver stages it piece by piece
  pinned,    // page-locked memory that the GPU reads and writes directly
};
inline constexpr Transfer kTransfers[] = {Transfer::pageable, Transfer::pinned};

constexpr std::string_view name_of(Transfer transfer) {
  constexpr std::string_view kNames[] = {"pageable", "pinned"};
  return kNames[static_cast<int>(transfer)];
}

// A problem that is computed end to end, and how its kernel is prepared.
struct Transferred {
  Problem problem;
  Transfer transfer;
  std::function<Launch(const Operands&)> prepare;
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

  // Transfer time that the whole does not show, over all transfer time. Negative if the whole takes
  // longer than its parts.
  constexpr double hidden_share(double whole_seconds) const {
    const double copies = to_device_seconds + from_device_seconds;
    return (copies + kernel_seconds - whole_seconds) / copies;
  }
};

}  // namespace gemm::bench
