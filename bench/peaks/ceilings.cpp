#include "bench/peaks/ceilings.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/base/durable.hpp"
#include "bench/base/json.hpp"
#include "bench/record/record.hpp"

namespace gemm::bench {
namespace {

using json = nlohmann::ordered_json;

// Changes when a probe does, so that nobody is held against the figures of an older one.
constexpr int kProbesVersion = 1;

constexpr double kMostOfNominal = 1.02, kLeastOfNominal = 0.8;

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

std::optional<double> middle(const std::optional<Range>& range) {
  return range ? std::optional(range->median) : std::nullopt;
}

// The queried figure of the same thing, at the clock seen; where there is one.
std::optional<double> nominal(const DeviceInfo& device, const Probe& probe, const Clocks& clocks) {
  const std::vector<Ceiling> roofs = ceilings_of(device);
  if (probe.clock == Probe::Clock::memory)
    return memory_ceiling(roofs) != nullptr ? memory_ceiling(roofs)->at(clocks.memory_hz)
                                            : std::nullopt;
  const auto precision = precision_named(probe.arithmetic);
  if (!precision || !clocks.sm_hz) return std::nullopt;
  const Ceiling* roof = compute_ceiling(roofs, *precision);
  return roof != nullptr && roof->clock_hz ? roof->at(clocks.sm_hz) : std::nullopt;
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

std::vector<Probe> probes_of(const Backend& backend) {
  const DeviceInfo& device = backend.device();
  return device.kind == Device::Kind::gpu ? cuda_probes(device) : host_probes(device);
}

TimingPlan plan_for_ceilings() {
  TimingPlan plan;
  plan.warmup_seconds = 2.2;
  plan.sampling_seconds = 0.2;
  plan.longest_sampling_seconds = 1;
  plan.budget_seconds = 5;
  return plan;
}

MeasuredCeiling measure(Backend& backend, const CardWatch* watch, const TimingPlan& plan,
                        const Probe& probe) {
  if (probe.complaint)
    if (const auto wrong = probe.complaint(backend)) throw std::runtime_error(*wrong);
  auto launch = std::make_unique<std::vector<Launch>>();
  Timing timing;
  try {
    launch->push_back(probe.prepare(backend));
    backend.run(launch->front());  // loads the code
    timing = time_launches(backend, watch, plan, *launch);
  } catch (const DeviceLost&) {
    (void)launch.release();  // to free what it has on the card would be to wait for the card
    throw;
  }
  MeasuredCeiling one{.name = probe.name,
                      .arithmetic = probe.arithmetic,
                      .fill = probe.fill,
                      .what = probe.what,
                      .utc = utc_now(),
                      .unit = probe.unit};
  one.median = timing.quantile_seconds(0.5);
  one.q1 = timing.quantile_seconds(0.25);
  one.q3 = timing.quantile_seconds(0.75);
  one.min = timing.quantile_seconds(0);
  one.samples = static_cast<std::int64_t>(timing.samples_seconds.size());
  one.settled = timing.warmup.settled;
  // Whatever else runs on a CPU can only slow it down: the best is the ceiling, as in STREAM.
  const bool cpu = backend.device().kind == Device::Kind::cpu;
  one.per_second = probe.work / (cpu ? one.min : one.median);
  one.sm_hz = timing.median_sm_hz();
  one.memory_hz = middle(timing.card.memory_hz);
  one.power_w = middle(timing.card.power_w);
  one.temperature_c = middle(timing.card.temperature_c);
  one.throttled_share = timing.card.throttled_share;
  const DeviceInfo& device = backend.device();
  if (probe.clock == Probe::Clock::sm && one.sm_hz && device.sm_count > 0)
    one.per_clock_per_sm = one.per_second / *one.sm_hz / device.sm_count;
  if (const auto known = nominal(device, probe, {one.sm_hz, one.memory_hz}))
    one.of_nominal = one.per_second / *known;
  if (one.of_nominal && !(*one.of_nominal <= kMostOfNominal))
    throw std::runtime_error("measured " + std::to_string(*one.of_nominal) +
                             " times what the device can do");
  return one;
}

void measure_others(Backend& backend, const CardWatch* watch,
                    const std::vector<MeasuredCeiling>& kept, const CeilingsListener& listener) {
  for (const Probe& probe : probes_of(backend)) {
    const std::string label = probe.label();
    if (probe.unsupported) continue;
    if (std::ranges::find(kept, label, &MeasuredCeiling::label) != kept.end()) continue;
    listener.begins(label);
    try {
      listener.measured(measure(backend, watch, plan_for_ceilings(), probe));
    } catch (const Interrupted&) {
      throw;
    } catch (const DeviceLost&) {
      throw;
    } catch (const std::exception& error) {  // no memory for it: the others may fit
      listener.failed(label, error.what());
    }
  }
}

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

void fill_in(std::vector<Ceiling>& roofs, const std::vector<MeasuredCeiling>& measured) {
  for (Ceiling& roof : roofs) {
    if (roof.per_second) continue;
    const MeasuredCeiling* best = nullptr;
    for (const MeasuredCeiling& one : measured) {
      const bool same = roof.precision ? one.unit == Probe::Unit::flop &&
                                             one.arithmetic == arithmetic_of(*roof.precision)
                                       : one.name.starts_with("DRAM_");
      if (same && one.fill != "zeros" && (best == nullptr || one.per_second > best->per_second))
        best = &one;
    }
    if (best == nullptr) continue;
    roof.per_second =
        best->per_second / (roof.precision ? traits_of(*roof.precision).unit_products : 1);
    roof.origin = Ceiling::Origin::measured;
    roof.source = best->label() + ": " + best->what;
    roof.clock_hz = roof.precision ? best->sm_hz : best->memory_hz;
  }
}

std::optional<double> dram_bytes_per_second(const std::vector<MeasuredCeiling>& measured) {
  std::optional<double> best;
  for (const MeasuredCeiling& one : measured)
    if (one.name.starts_with("DRAM_") && one.of_nominal.value_or(1) >= kLeastOfNominal)
      best = std::max(best.value_or(0), one.per_second);
  return best;
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
