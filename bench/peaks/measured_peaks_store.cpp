#include "bench/peaks/measured_peaks_store.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/base/durable.hpp"
#include "bench/base/json.hpp"
#include "bench/base/terminal.hpp"
#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

using json = nlohmann::ordered_json;

// Changes when a probe does, so that no result is compared with the figures of an older one.
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
                                            const DeviceInfo& device, bool again) {
  const std::filesystem::path file = peaks_file(device);
  std::vector<MeasuredPeak> all;
  if (!again) all = load_peaks(file, device);

  bool first = true, kept = true;
  const auto say = [](const std::string& line) {
    const AboveStatus above;
    std::cerr << line << "\n";
  };
  measure_others(backend, monitor, std::vector(all),
                 {.begins =
                      [&](const std::string& label) {
                        if (std::exchange(first, false))
                          say("Measuring the peaks of this device, once for all runs ...");
                        show_status([label](std::size_t width) { return label.substr(0, width); });
                      },
                  .measured =
                      [&](const MeasuredPeak& one) {
                        all.push_back(one);
                        kept = save_peaks(file, device, {one}) && kept;
                      },
                  .failed =
                      [&](const std::string& label, const std::string& why) {
                        say(label + " could not be measured: " + one_line(why));
                      }});
  end_status();
  if (!kept)
    std::cerr << "The measured peaks could not be written to '" << file.string()
              << "': the next run measures them again\n";
  return all;
}

}  // namespace gemm::bench
