#include "bench/peaks/ceilings_store.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
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

std::string text_at(const json& object, const char* key) {
  return object.at(key).is_null() ? "" : object.at(key).get<std::string>();
}

double positive_at(const json& object, const char* key) {
  const double value = object.at(key).get<double>();
  if (!std::isfinite(value) || !(value > 0)) throw std::runtime_error("no figure");
  return value;
}

std::optional<double> optional_at(const json& object, const char* key) {
  return object.at(key).is_null() ? std::nullopt : std::optional(object.at(key).get<double>());
}

MeasuredCeiling from_json(const json& object) {
  MeasuredCeiling one;
  one.name = object.at("name").get<std::string>();
  one.arithmetic = text_at(object, "arithmetic");
  one.fill = text_at(object, "fill");
  one.what = object.at("what").get<std::string>();
  one.utc = object.at("utc").get<std::string>();
  one.unit = object.at("bytes_per_second").is_null() ? Probe::Unit::flop : Probe::Unit::bytes;
  one.per_second =
      positive_at(object, one.unit == Probe::Unit::flop ? "flop_per_second" : "bytes_per_second");
  one.per_clock_per_sm = optional_at(object, "per_clock_per_sm");
  one.of_nominal = optional_at(object, "of_nominal");
  const json& seconds = object.at("seconds");
  one.median = positive_at(seconds, "median");
  one.q1 = positive_at(seconds, "q1");
  one.q3 = positive_at(seconds, "q3");
  one.min = positive_at(seconds, "min");
  one.samples = object.at("samples").get<std::int64_t>();
  one.settled = object.at("settled").get<bool>();
  one.sm_hz = optional_at(object, "sm_hz");
  one.memory_hz = optional_at(object, "memory_hz");
  one.power_w = optional_at(object, "power_w");
  one.temperature_c = optional_at(object, "temperature_c");
  one.throttled_share = optional_at(object, "throttled_share");
  return one;
}

// The driver's version belongs to the figures as much as the card.
json identity(const DeviceInfo& device) {
  return {{"probes", kProbesVersion},
          {"device", device.name},
          {"uuid_hash", or_null(device.uuid_hash)},
          {"cores", device.cores},
          {"driver", or_null(device.driver)}};
}

}  // namespace

std::filesystem::path ceilings_file(const DeviceInfo& device) {
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

std::vector<MeasuredCeiling> load_ceilings(const std::filesystem::path& file,
                                           const DeviceInfo& device) {
  std::vector<MeasuredCeiling> ceilings;
  try {
    std::ifstream in(file);
    if (!in) return {};
    const json kept = json::parse(in);
    if (kept.at("of") != identity(device)) return {};
    for (const json& one : kept.at("ceilings")) ceilings.push_back(from_json(one));
  } catch (const std::exception&) {
    return {};
  }
  return ceilings;
}

bool save_ceilings(const std::filesystem::path& file, const DeviceInfo& device,
                   const std::vector<MeasuredCeiling>& ceilings) {
  if (file.empty()) return false;
  std::vector<MeasuredCeiling> all = load_ceilings(file, device);
  for (const MeasuredCeiling& one : ceilings) {
    const auto old = std::ranges::find(all, one.label(), &MeasuredCeiling::label);
    if (old == all.end())
      all.push_back(one);
    else
      *old = one;
  }
  json kept = {{"of", identity(device)}, {"ceilings", json::array()}};
  for (const MeasuredCeiling& one : all) kept["ceilings"].push_back(to_json(one));
  try {
    write_atomically(file, kept.dump(1) + "\n");
  } catch (const std::runtime_error&) {
    return false;
  }
  return true;
}

std::vector<MeasuredCeiling> kept_and_measured(Backend& backend, const CardWatch* watch,
                                               const DeviceInfo& device, bool anew) {
  const std::filesystem::path file = ceilings_file(device);
  std::vector<MeasuredCeiling> all;
  if (!anew) all = load_ceilings(file, device);

  const char* clear = isatty(STDERR_FILENO) != 0 ? "\r\033[K" : nullptr;
  bool first = true, kept = true;
  measure_others(backend, watch, std::vector(all),
                 {.begins =
                      [&](const std::string& label) {
                        if (first) std::cerr << "Measuring the ceilings of this device, once ...\n";
                        first = false;
                        if (clear != nullptr) std::cerr << clear << label << " ..." << std::flush;
                      },
                  .measured =
                      [&](const MeasuredCeiling& one) {
                        all.push_back(one);
                        kept = save_ceilings(file, device, {one}) && kept;
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

json to_json(const MeasuredCeiling& one) {
  const bool flops = one.unit == Probe::Unit::flop;
  return {{"name", one.name},
          {"arithmetic", text_or_null(one.arithmetic)},
          {"fill", text_or_null(one.fill)},
          {"what", one.what},
          {"utc", one.utc},
          {"flop_per_second", flops ? json(one.per_second) : json(nullptr)},
          {"bytes_per_second", flops ? json(nullptr) : json(one.per_second)},
          {"per_clock_per_sm", or_null(one.per_clock_per_sm)},
          {"of_nominal", or_null(one.of_nominal)},
          {"seconds", {{"median", one.median}, {"q1", one.q1}, {"q3", one.q3}, {"min", one.min}}},
          {"samples", one.samples},
          {"settled", one.settled},
          {"sm_hz", or_null(one.sm_hz)},
          {"memory_hz", or_null(one.memory_hz)},
          {"power_w", or_null(one.power_w)},
          {"temperature_c", or_null(one.temperature_c)},
          {"throttled_share", or_null(one.throttled_share)}};
}

}  // namespace gemm::bench
