// The energy that a GPU takes while it runs one kernel without a pause.
//
// NVML's energy counter and its power readings change every 20 to 100 ms, and a reading of the
// power may be the mean of the last second. So only a stretch of at least half a second counts, in
// which nothing else ran, and from one change of the counter to another.
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
  std::int64_t readings = 0;           // in it, that differ from the one before
  std::string source;                  // "energy counter" or "power readings"
  std::string why_not = "no warm-up";  // it was not measured; empty if it was
};

// Of the readings of a stretch that lasts as long as they do. The counter if it changed often
// enough, else the power readings if they did.
Energy energy_over(std::span<const GpuReading> stretch);

// The shortest stretch, in seconds.
constexpr double kShortestStretch = 0.5;

}  // namespace gemm::bench
