// Measured peaks are kept for the next run on the same device and driver.
#pragma once

#include <filesystem>
#include <vector>

#include "bench/peaks/measured_peaks.hpp"

namespace gemm::bench {

// What was measured last for a device and its driver: <cache>/gemm_bench/<device>.json, where the
// cache is $XDG_CACHE_HOME or ~/.cache; an empty path without either. Nothing to be found, or a
// file that makes no sense, is empty; saving replaces those of the same label, keeps the others,
// and returns false if it cannot.
std::filesystem::path peaks_file(const DeviceInfo& device);
std::vector<MeasuredPeak> load_peaks(const std::filesystem::path& file, const DeviceInfo& device);
bool save_peaks(const std::filesystem::path& file, const DeviceInfo& device,
                const std::vector<MeasuredPeak>& peaks);

// Stored peaks, unless all are to be measured `again`, and the others measured now, which takes as
// long as a dozen rows: each is stored at once. Throws Interrupted,
// DeviceLost.
std::vector<MeasuredPeak> kept_and_measured(Backend& backend, const GpuMonitor* monitor,
                                            const DeviceInfo& device, bool again);

}  // namespace gemm::bench
