// The energy that a GPU takes while it runs one kernel without a pause.
//
// NVML's energy counter changes every 0.1 s on an H200; its power readings are late, and may be
// means of the last second. So only a stretch of at least half a second counts, in which nothing
// else ran, and from one change of the counter to another.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "bench/device/gpu.hpp"

namespace gemm::bench {

struct Energy {
  std::optional<double> watts;         // mean; empty where it was not measured
  double seconds = 0;                  // of the stretch
  std::int64_t changes = 0;            // of the counter in it
  std::string why_not = "no warm-up";  // it was not measured; empty if it was
};

// Of the readings of a stretch that lasts as long as they do.
Energy energy_over(std::span<const GpuReading> stretch);

// The shortest stretch, in seconds.
constexpr double kShortestStretch = 0.5;

}  // namespace gemm::bench
