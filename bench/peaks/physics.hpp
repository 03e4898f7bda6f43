// Physical limits. A faster time is a fault of the kernel or of the measurement,
// never a record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/device/backend.hpp"
#include "bench/device/host.hpp"
#include "bench/peaks/peaks.hpp"

namespace gemm::bench {

// The limits of a device.
struct Limits {
  std::vector<Peak> peaks;
  std::int64_t last_level_cache_bytes = 0;
  std::optional<double> dram_bytes_per_second;  // the best that was measured; else the peak's
  std::optional<Overheads> overheads;
};

// What was seen of a row.
struct Evidence {
  Problem problem;
  double seconds;                       // of one launch
  std::int64_t operand_sets;            // that the launches rotate through
  std::optional<double> highest_sm_hz;  // while it was timed
};

// Says by how much a row exceeds its compute peak at the highest clock seen, or the time that DRAM
// needs for the bytes that cannot have stayed in the cache, and what the likeliest cause is.
// Nothing if the row is possible, or if the limit is not known.
std::optional<std::string> beats_physics(const Limits& limits, const Evidence& evidence);

// The same of a CPU, whose compute peak is what a probe reaches: the probe is repeated beside a row
// that is above it, and the larger figure is the peak from then on.
std::optional<std::string> beats_cpu(Backend& backend, Peak& peak, double flop_per_second);

// FLOP/s that no row exceeds beside which a probe on all cores reached so many, and one core in its
// own CPU time. Others slow the probe down, but not the core's own time; a core alone may run at a
// higher clock than all of them.
double cpu_limit(double of_all_cores, double of_one_core, int cores,
                 const std::optional<OthersLoad>& others);

}  // namespace gemm::bench
