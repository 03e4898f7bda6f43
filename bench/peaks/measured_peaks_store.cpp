#include "bench/peaks/measured_peaks_store.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/base/durable.hpp"
#include "bench/base/json.hpp"
#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

using json = nlohmann::ordered_json;

// Changes when a probe does, so that nobody is held against the figures of an older one.
constexpr int kProbesVersion = 1;

// The driver's version belongs to the figures as much as the GPU.
json identity(const DeviceInfo& device) {
  return {{"probes", kProbesVersion},
          {"device", device.name},
          {"uuid_hash", json_of(device.uuid_hash)},
          {"cores", device.cores},
          {"driver", json_of(device.driver)}};
}

}  // namespace

std::filesystem::path peaks_file(const DeviceInfo& device) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  std::filesystem::path cache = variable("XDG_CACHE_HOME");
  if (!cache.is_absolute()) {  // as its specification asks
    if (variable("HOME").empty()) return {};
    cache = variable("HOME") / ".cache";
  }
  return cache / "gemm_bench" /
         (slug(device.name) + (device.uuid_hash ? "-" + *device.uuid_hash : "") + ".json");
}

std::vector<MeasuredPeak> load_peaks(const std::filesystem::path& file, const DeviceInfo& device) {
  std::vector<MeasuredPeak> peaks;
  try {
    std::ifstream in(file);
    if (!in) return {};
    const json kept = json::parse(in);
    if (kept.at("of") != identity(device)) return {};
    kept.at("ceilings").get_to(peaks);
    for (const MeasuredPeak& one : peaks)
      if (!std::isfinite(one.per_second()) || !(one.per_second() > 0)) return {};
  } catch (const std::exception&) {
    return {};
  }
  return peaks;
}

bool save_peaks(const std::filesystem::path& file, const DeviceInfo& device,
                const std::vector<MeasuredPeak>& peaks) {
  if (file.empty()) return false;
  std::vector<MeasuredPeak> all = load_peaks(file, device);
  for (const MeasuredPeak& one : peaks) {
    const auto old = std::ranges::find(all, one.label(), &MeasuredPeak::label);
    if (old == all.end())
      all.push_back(one);
    else
      *old = one;
  }
  const json kept = {{"of", identity(device)}, {"ceilings", json_of(all)}};
  try {
    write_atomically(file, kept.dump(1) + "\n");
  } catch (const std::runtime_error&) {
    return false;
  }
  return true;
}

std::vector<MeasuredPeak> kept_and_measured(Backend& backend, const GpuMonitor* monitor,
                                            const DeviceInfo& device, bool anew) {
  const std::filesystem::path file = peaks_file(device);
  std::vector<MeasuredPeak> all;
  if (!anew) all = load_peaks(file, device);

  const char* clear = isatty(STDERR_FILENO) != 0 ? "\r\033[K" : nullptr;
  bool first = true, kept = true;
  measure_others(backend, monitor, std::vector(all),
                 {.begins =
                      [&](const std::string& label) {
                        if (first) std::cerr << "Measuring the ceilings of this device, once ...\n";
                        first = false;
                        if (clear != nullptr) std::cerr << clear << label << " ..." << std::flush;
                      },
                  .measured =
                      [&](const MeasuredPeak& one) {
                        all.push_back(one);
                        kept = save_peaks(file, device, {one}) && kept;
                      },
                  .failed =
                      [&](const std::string& label, const std::string& why) {
                        std::cerr << (clear != nullptr ? clear : "") << label
                                  << " could not be measured: " << one_line(why) << "\n";
                      }});
  if (clear != nullptr && !first) std::cerr << clear << std::flush;
  if (!kept)
    std::cerr << "The measured ceilings could not be kept in '" << file.string()
              << "': the next run measures them again\n";
  return all;
}

}  // namespace gemm::bench
