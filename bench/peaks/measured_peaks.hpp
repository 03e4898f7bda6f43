// Measured peaks: what the device really reaches. They are kept for the next run on the same device
// and driver.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device/host.hpp"
#include "bench/peaks/peaks.hpp"
#include "bench/peaks/probe.hpp"
#include "bench/timing/timing.hpp"

namespace gemm::bench {

struct MeasuredPeak {
  std::string name, arithmetic, fill, what;                 // as in Probe
  std::string utc;                                          // when: "20261121T020000Z"
  std::optional<double> flop_per_second, bytes_per_second;  // one of them
  // The figure over SM clock and number of SMs: FLOP or bytes per cycle of one SM.
  std::optional<double> per_clock_per_sm;
  std::optional<double> of_nominal;  // over the queried figure at the clock seen
  Quartiles seconds{};               // of a launch
  std::int64_t samples = 0;
  bool settled = false;
  std::optional<double> sm_hz, memory_hz, power_w, temperature_c, throttled_share;

  std::string label() const { return fill.empty() ? name : name + "/" + fill; }
  bool computes() const { return flop_per_second.has_value(); }
  double per_second() const { return computes() ? *flop_per_second : bytes_per_second.value_or(0); }
};

// What can be probed on the device of this backend, and what cannot, with why.
std::vector<Probe> probes_of(const Backend& backend);

// Short rows, as there are some twenty of them, and the same whatever the options: they are kept.
TimingPlan plan_for_peaks();

// First makes sure that the probe does its work. Throws what the backend does, Interrupted, and
// std::runtime_error for a probe that is wrong or a memory above its queried rate.
MeasuredPeak measure(Backend& backend, const GpuMonitor* monitor, const TimingPlan& plan,
                     const Probe& probe);

// Replaces unknown nominal peaks by measured ones: for a CPU, or a GPU that is not in the table. So
// it does with a peak of the table that a probe contradicts at the probe's clock, being above 1.03
// of it, or below 0.6 with an instruction that has the unit's full rate on this device. Then the
// limit is the larger of the two.
void reconcile(std::vector<Peak>& roofs, const std::vector<MeasuredPeak>& measured,
               const Device& device);

// Of all probes of the arithmetic of this roof, or of its memory, the fastest. Null if there is
// none.
const MeasuredPeak* measured_roof(const std::vector<MeasuredPeak>& measured, const Peak& roof);

// True if the fastest DRAM probe reached less than half of the queried rate: probably another
// program used the GPU.
bool measured_beside_others(const std::vector<MeasuredPeak>& measured);

// The measured peak of a memory ("DRAM", "L2", "Shared"): that of the fastest probe. Null if none
// was measured, if each is too far below the queried rate to serve as a roof, or if
// measured_beside_others.
const MeasuredPeak* memory_roof(const std::vector<MeasuredPeak>& measured, std::string_view memory);

// What was measured last for a device and its driver: <cache>/gemm_bench/<device>.json, where the
// cache is $XDG_CACHE_HOME or ~/.cache; an empty path without either. Nothing to be found, a file
// that makes no sense, or peaks that were measured beside others, are empty; saving replaces those
// of the same label, keeps the others, and returns false if it cannot.
std::filesystem::path peaks_file(const DeviceInfo& device);
std::vector<MeasuredPeak> load_peaks(const std::filesystem::path& file, const DeviceInfo& device);
bool save_peaks(const std::filesystem::path& file, const DeviceInfo& device,
                const std::vector<MeasuredPeak>& peaks);

// Measures those of the probes that are not among `all`, and adds them; each is saved as soon as it
// is measured, but for those of a CPU that others used meanwhile, by `cpu_times`. Stderr says which
// could not be measured, or whether they were not saved. True if all could be measured. Throws
// Interrupted, DeviceLost.
bool measure_missing(Backend& backend, const GpuMonitor* monitor, const DeviceInfo& device,
                     const std::vector<Probe>& probes, std::vector<MeasuredPeak>& all,
                     const std::function<std::optional<CpuTimes>()>& cpu_times = read_cpu_times);

// Returns the stored peaks, and measures the others that can be probed, all if `again`, which takes
// as long as a dozen rows. If they were then measured beside others, stderr says so, and the next
// run measures again. Throws Interrupted, DeviceLost.
std::vector<MeasuredPeak> kept_and_measured(Backend& backend, const GpuMonitor* monitor,
                                            const DeviceInfo& device, bool again);

}  // namespace gemm::bench
