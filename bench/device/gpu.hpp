// The state of the GPU while it is timed: clocks, power, temperature, and reasons for throttling.
// Read through NVML, which is loaded at run time; nothing is set, and no root is needed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/device/device.hpp"

namespace gemm::bench {

// The state at one moment; a value that the GPU does not report is empty.
struct GpuReading {
  double when = 0;  // now_seconds() halfway through the reading
  // Power of the moment where the driver has it, else what nvmlDeviceGetPowerUsage gives: the mean
  // of the last second on most GPUs since Ampere.
  std::optional<double> sm_hz, memory_hz, power_w, temperature_c;
  std::optional<double> joules;          // since the driver was loaded; counted every 0.1 s or so
  std::optional<std::uint64_t> reasons;  // bits of nvmlClocksEventReasons
  std::optional<double> duration;        // of the reading itself, in seconds; by GpuMonitor
};

// What does not change during a run.
struct GpuFacts {
  std::optional<std::string> driver;  // "580.95.05"
  std::optional<double> power_limit_w, sm_hz_max;
  // Application clocks were set below the default ones; false too where NVML no longer reports them
  // (from version 14 on).
  bool application_clocks_set = false;
};

// What tells a GPU that is going bad: a reading, and counters that NVML keeps.
struct GpuHealth {
  std::optional<double> sm_hz, memory_hz, power_w, temperature_c;
  std::vector<std::string> reasons;                             // that lower the clocks now
  std::optional<std::uint64_t> ecc_corrected, ecc_uncorrected;  // since the driver was loaded
  std::optional<std::uint64_t> rows_remapped;                   // of the memory, for good
  std::optional<bool> remapping_pending, remapping_failed;      // pending: until a reset
  std::vector<std::uint64_t> xids;                              // since the GPU was opened
  std::optional<std::uint64_t> other_processes;                 // that compute on it, without ours
};

// No function throws: a GPU that stops answering leaves values empty.
class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual GpuFacts facts() = 0;
  virtual GpuReading read() = 0;
  virtual GpuHealth health() { return {}; }
};

// The GPU with this PCI bus id ("0000:3b:00.0"), never by index: CUDA_VISIBLE_DEVICES renumbers
// them. Null where NVML or the GPU is not to be had, with why in `why_not`: "NVML is not installed
// (libnvidia-ml.so.1)", "NVML: no permission", "NVML does not know the GPU 0000:3b:00.0".
std::unique_ptr<Gpu> open_nvml(const std::string& pci_bus_id, std::string& why_not,
                               const char* library = "libnvidia-ml.so.1");

// Reasons that lower the clocks: power cap, thermal and hardware slowdown.
constexpr std::uint64_t kThrottled = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;

// Application or locked clocks.
constexpr std::uint64_t kClocksSet = 0x2;

struct Range {
  double min, median, max;
};
std::optional<Range> range_of(std::vector<double> values);  // none without values
inline std::optional<double> median_of(const std::optional<Range>& range) {
  return range ? std::optional(range->median) : std::nullopt;
}

// A summary of the readings of an interval.
struct GpuState {
  std::int64_t readings = 0;
  std::optional<Range> sm_hz, memory_hz, power_w, temperature_c;
  std::optional<double> throttled_share;  // of the readings that say
  // "power cap" with its share of the readings that say, largest first; without idle. Shares add up
  // to more than 1 where reasons come together.
  std::vector<std::pair<std::string, double>> reasons;
};
GpuState summarize(std::span<const GpuReading> readings);

// Reads the GPU at an interval in a thread of its own, for as long as it lives. Keeps the last
// half million readings or more: about three hours at 20 ms.
class GpuMonitor {
 public:
  // Throws std::invalid_argument for an interval below a microsecond.
  GpuMonitor(std::unique_ptr<Gpu> gpu, double interval_seconds);
  ~GpuMonitor();

  const GpuFacts& facts() const { return facts_; }
  double interval_seconds() const { return interval_seconds_; }
  // Readings with from <= when <= to.
  std::vector<GpuReading> between(double from, double to) const;
  // How long one reading takes: the median of the last thousand.
  std::optional<double> read_seconds() const;
  // Between two readings.
  GpuHealth health();
  // Stops and resumes reading, to see what reading costs. No reading is under way once
  // pause(true) returns.
  void pause(bool paused);

 private:
  void run();

  std::unique_ptr<Gpu> gpu_;
  GpuFacts facts_;
  double interval_seconds_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false, paused_ = false, reading_ = false;
  std::vector<GpuReading> readings_;  // in the order of time
  std::thread thread_;
};

// A monitor of the device; null where there can be none, with why. Either way `device` gets the
// version of its driver if NVML reports it, since measured peaks are stored by it.
std::unique_ptr<GpuMonitor> monitor_gpu(DeviceInfo& device, double interval_seconds,
                                        std::string& why_not);

}  // namespace gemm::bench
