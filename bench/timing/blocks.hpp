// Blocks: seconds in which one kernel runs without a pause, at the power limit. There the clock is
// what a kernel's energy leaves over, and swings for seconds, so that a mean over seconds counts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bench/device/gpu.hpp"
#include "bench/timing/energy.hpp"

namespace gemm::bench {

struct Block {
  double seconds = 0;         // from the first launch to the end of the last
  double launch_seconds = 0;  // of one launch, the mean
  std::int64_t launches = 0;
  Energy energy;                                        // by the energy counter
  std::optional<double> power_w, sm_hz, temperature_c;  // means of the readings

  // Of one launch: by the energy counter, or else by the readings of the power.
  std::optional<double> joules() const;
};

// Adds what was read of the GPU in the block. `sm_hz` is by the timers on the GPU, if they have it.
void read_block(Block& block, std::span<const GpuReading> readings, std::optional<double> sm_hz);

// A mean and its 95 % interval.
struct Estimate {
  double value, low, high;
};

// The geometric mean of values above 0, with Student's t interval of their logarithms, whose
// degrees of freedom are one less than the values. None of fewer than two.
std::optional<Estimate> estimate(const std::vector<double>& values);

// Of one launch, in joules. None where a block has none.
std::optional<Estimate> joules_of(const std::vector<Block>& blocks);

// Of all blocks together.
Energy energy_of(const std::vector<Block>& blocks);

}  // namespace gemm::bench
