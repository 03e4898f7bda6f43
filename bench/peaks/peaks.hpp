// Nominal peaks of a device: rates per SM and cycle from a table of compute capabilities and one of
// products that differ from it, times what the device reports. An unknown peak has no figure and
// says why: never a guess.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device/device.hpp"
#include "kernels/precision.hpp"

namespace gemm::bench {

struct Peak {
  enum class Origin { queried, table, given, measured, unknown };
  std::string name;                    // "FP32 FMA", "DRAM"
  std::optional<Precision> precision;  // empty for a memory
  std::optional<double> per_second;    // FLOP, or bytes for a memory; empty if unknown
  Origin origin;
  std::string source;              // the arithmetic behind the figure, or why there is none
  std::optional<double> clock_hz;  // it grows with: of the SMs, or of the memory
  // What no result can exceed, at the same clock, where that is more than per_second: the rate of
  // block-scaled FP8, or the larger of the table's and a measured peak that contradict each other.
  std::optional<double> limit_per_second = {};
  std::string contradiction = {};  // between the table and a measured peak; else empty

  // At another clock; as it is where either clock is not known.
  std::optional<double> at(std::optional<double> other_clock_hz) const;
  // The same of the limit, which is per_second where there is no other.
  std::optional<double> limit_at(std::optional<double> other_clock_hz) const;
};

std::string_view name_of(Peak::Origin origin);

// "66.9 TFLOP/s", "1289 TOP/s" of integers.
std::string rate_text(double per_second, Precision precision);

// Peaks given by the user: --gemm_peak_flops, --gemm_peak_bandwidth.
struct GivenPeaks {
  std::optional<double> flop_per_second, bytes_per_second;
};

// One peak for each precision that kernels of this kind of device have, then the memory.
std::vector<Peak> peaks_of(const DeviceInfo& device, const GivenPeaks& given = {});

// Dense FLOP per cycle of one SM; empty where the unit does not exist or its rate is not known.
std::optional<double> flop_per_clock(int compute_capability, Unit unit,
                                     std::string_view device_name);

// The roofline: the lower of the compute peak and intensity times the memory bandwidth.
struct Roof {
  std::string name;
  double flop_per_second;
};

// Clocks at which the roofline is evaluated; an unknown one is the nominal one.
struct Clocks {
  std::optional<double> sm_hz, memory_hz;
};

// Empty if either peak is unknown.
std::optional<Roof> roof_at(const std::vector<Peak>& peaks, Precision precision,
                            double flop_per_byte, const Clocks& clocks = {});

// The compute peak of a precision; null if there is none.
const Peak* compute_peak(const std::vector<Peak>& peaks, Precision precision);
const Peak* memory_peak(const std::vector<Peak>& peaks);

}  // namespace gemm::bench
