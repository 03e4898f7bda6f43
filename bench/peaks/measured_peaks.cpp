#include "bench/peaks/measured_peaks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "bench/base/clock.hpp"
#include "bench/base/device_errors.hpp"
#include "bench/base/durable.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/json.hpp"
#include "bench/base/terminal.hpp"
#include "bench/base/text.hpp"
#include "bench/device/batch.hpp"
#include "bench/peaks/measured_peaks_json.hpp"

namespace gemm::bench {
namespace {

using json = nlohmann::ordered_json;

// Of memories, over the queried rate.
constexpr double kMostOfNominal = 1.02, kLeastOfNominal = 0.8, kBesideOthers = 0.5;
// Of arithmetic, over the table's rate: outside of these the two contradict each other.
constexpr double kLeastOfTable = 0.6, kMostOfTable = 1.03;

// The queried figure of the same thing, at the clock seen; where there is one.
std::optional<double> nominal(const DeviceInfo& device, const Probe& probe, const Clocks& clocks) {
  const std::vector<Peak> roofs = peaks_of(device);
  if (probe.clock == Probe::Clock::memory)
    return memory_peak(roofs) != nullptr ? memory_peak(roofs)->at(clocks.memory_hz) : std::nullopt;
  const auto precision = precision_named(probe.arithmetic);
  if (!precision || !clocks.sm_hz) return std::nullopt;
  const Peak* roof = compute_peak(roofs, *precision);
  return roof != nullptr && roof->clock_hz ? roof->at(clocks.sm_hz) : std::nullopt;
}

// Changes when a probe does, or the table that of_nominal refers to, so that no result is compared
// with the figures of an older one.
constexpr int kProbesVersion = 4;

// The driver's version belongs to the figures as much as the GPU.
json identity(const DeviceInfo& device) {
  return {{"probes", kProbesVersion},
          {"device", device.name},
          {"uuid_hash", json_of(device.uuid_hash)},
          {"cores", device.cores},
          {"cpu_id", json_of(device.cpu_id)},
          {"caches",
           {json_of(device.l1_data_bytes), json_of(device.l2_bytes), json_of(device.l3_bytes)}},
          {"driver", json_of(device.driver)}};
}

// Whether the probe's instruction can use the whole rate that the table has of its unit. mma.sync
// reaches two thirds of it on 9.0, and less where there is tcgen05; FP64 outside the tensor cores
// half, where these have it.
bool has_full_rate(const MeasuredPeak& probe, int capability) {
  const bool fp64 = probe.arithmetic == "f64";
  if (probe.name.ends_with("_FMA")) return !fp64 || (capability != 80 && capability != 90);
  return fp64 || !probe.name.ends_with("_mma") || capability < 90 || capability >= 120;
}

bool measures(const MeasuredPeak& one, const Peak& roof) {
  return roof.precision && one.computes() && one.arithmetic == arithmetic_of(*roof.precision);
}

// The probe that contradicts the table, and its share of the table's rate.
std::optional<std::pair<const MeasuredPeak*, double>> contradicting(
    const Peak& roof, const std::vector<MeasuredPeak>& measured, int capability) {
  if (roof.origin != Peak::Origin::table) return std::nullopt;
  std::optional<std::pair<const MeasuredPeak*, double>> best;
  bool full = false;
  for (const MeasuredPeak& one : measured) {
    if (!measures(one, roof) || !one.sm_hz) continue;
    const double share =
        one.per_second() / traits_of(*roof.precision).unit_products / *roof.at(one.sm_hz);
    full = full || has_full_rate(one, capability);
    if (!best || share > best->second) best = {&one, share};
  }
  if (!best || (best->second <= kMostOfTable && (best->second >= kLeastOfTable || !full)))
    return std::nullopt;
  return best;
}

}  // namespace

Launch fastest_of(Backend& backend, const std::vector<Launch>& ways, std::int64_t batch) {
  const Launch* best = nullptr;
  double best_seconds = HUGE_VAL;
  for (const Launch& one : ways) {
    backend.run(one);
    const double seconds = Batch(backend, {&one, 1}, batch, false).time().seconds;
    if (best != nullptr && !(seconds < best_seconds)) continue;
    best_seconds = seconds;
    best = &one;
  }
  return *best;
}

std::vector<Probe> probes_of(const Backend& backend) {
  const DeviceInfo& device = backend.device();
  return device.kind == Device::Kind::gpu ? cuda_probes(device) : host_probes(device);
}

TimingPlan plan_for_peaks() {
  TimingPlan plan;
  plan.warmup_seconds = 2.2;
  plan.sampling_seconds = 0.2;
  plan.longest_sampling_seconds = 1;
  plan.budget_seconds = 5;
  return plan;
}

MeasuredPeak measure(Backend& backend, const GpuMonitor* monitor, const TimingPlan& plan,
                     const Probe& probe) {
  if (probe.complaint)
    if (const auto wrong = probe.complaint(backend)) throw std::runtime_error(*wrong);
  auto launch = std::make_unique<std::vector<Launch>>();
  Timing timing;
  try {
    launch->push_back(probe.prepare(backend));
    backend.run(launch->front());  // loads the code
    timing = time_launches(backend, monitor, plan, *launch);
  } catch (const DeviceLost&) {
    (void)launch.release();  // freeing its memory would wait for the GPU
    throw;
  }
  MeasuredPeak one{.name = probe.name,
                   .arithmetic = probe.arithmetic,
                   .fill = probe.fill,
                   .what = probe.what,
                   .utc = utc_now(),
                   .seconds = timing.quartiles_seconds()};
  one.samples = std::ssize(timing.samples_seconds);
  one.settled = timing.warmup.settled;
  // Whatever else runs on a CPU can only slow it down: the best is the peak, as in STREAM.
  const bool cpu = backend.device().kind == Device::Kind::cpu;
  (probe.unit == Probe::Unit::flop ? one.flop_per_second : one.bytes_per_second) =
      probe.work / (cpu ? one.seconds.min : one.seconds.median);
  one.sm_hz = timing.median_sm_hz();
  one.memory_hz = median_of(timing.gpu.memory_hz);
  one.power_w = timing.warmup.energy.watts;
  one.temperature_c = median_of(timing.gpu.temperature_c);
  one.throttled_share = timing.gpu.throttled_share;
  const DeviceInfo& device = backend.device();
  if (probe.clock == Probe::Clock::sm && one.sm_hz && device.sm_count > 0)
    one.per_clock_per_sm = one.per_second() / *one.sm_hz / device.sm_count;
  if (const auto known = nominal(device, probe, {one.sm_hz, one.memory_hz}))
    one.of_nominal = one.per_second() / *known;
  if (!one.computes() && one.of_nominal && !(*one.of_nominal <= kMostOfNominal))
    throw std::runtime_error("measured " + std::to_string(*one.of_nominal) +
                             " times what the device can do");
  return one;
}

const MeasuredPeak* measured_roof(const std::vector<MeasuredPeak>& measured, const Peak& roof) {
  if (!roof.precision) return memory_roof(measured, roof.name);
  const MeasuredPeak* best = nullptr;
  for (const MeasuredPeak& one : measured)
    if (measures(one, roof) && (best == nullptr || one.per_second() > best->per_second()))
      best = &one;
  return best;
}

void reconcile(std::vector<Peak>& roofs, const std::vector<MeasuredPeak>& measured,
               const Device& device) {
  const bool undisturbed = !measured_beside_others(measured);
  for (Peak& roof : roofs) {
    const MeasuredPeak* best = measured_roof(measured, roof);
    const auto against =
        undisturbed ? contradicting(roof, measured, device.compute_capability) : std::nullopt;
    if (best == nullptr || (roof.per_second && !against)) continue;
    const double per_second =
        best->per_second() / (roof.precision ? traits_of(*roof.precision).unit_products : 1);
    const std::optional<double> clock = roof.precision ? best->sm_hz : best->memory_hz;
    std::string source = best->label() + ": " + best->what;
    if (against) {
      roof.contradiction =
          against->first->label() +
          formatted(" reaches %.3g of the table's rate at its clock", against->second);
      source += "; the table has " + roof.source;
      roof.limit_per_second = std::max(*roof.limit_at(clock), per_second);
    }
    roof.per_second = per_second;
    roof.origin = Peak::Origin::measured;
    roof.source = std::move(source);
    roof.clock_hz = clock;
  }
}

bool measured_beside_others(const std::vector<MeasuredPeak>& measured) {
  double best = 0;
  for (const MeasuredPeak& one : measured)
    if (one.name.starts_with("DRAM_")) best = std::max(best, one.of_nominal.value_or(0));
  return best > 0 && best < kBesideOthers;
}

const MeasuredPeak* memory_roof(const std::vector<MeasuredPeak>& measured,
                                std::string_view memory) {
  if (measured_beside_others(measured)) return nullptr;
  const MeasuredPeak* best = nullptr;
  for (const MeasuredPeak& one : measured)
    if (!one.computes() && one.name.starts_with(std::string(memory) + "_") &&
        one.of_nominal.value_or(1) >= kLeastOfNominal &&
        (best == nullptr || one.per_second() > best->per_second()))
      best = &one;
  return best;
}

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
         (slug(device.name + " " + device.cpu_id.value_or("")) +
          (device.uuid_hash ? "-" + *device.uuid_hash : "") + ".json");
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
    if (measured_beside_others(peaks)) return {};
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

bool measure_missing(Backend& backend, const GpuMonitor* monitor, const DeviceInfo& device,
                     const std::vector<Probe>& probes, std::vector<MeasuredPeak>& all,
                     const std::function<std::optional<CpuTimes>()>& cpu_times) {
  const std::filesystem::path file = peaks_file(device);
  bool first = true, kept = true, measured = true, disturbed = false;
  const auto say = [](const std::string& line) {
    const AboveStatus above;
    std::cerr << line << "\n";
  };
  for (const Probe& probe : probes) {
    const std::string label = probe.label();
    if (probe.unsupported) continue;
    if (std::ranges::find(all, label, &MeasuredPeak::label) != all.end()) continue;
    if (std::exchange(first, false))
      say("Measuring the peaks of this device, once for all runs ...");
    show_status([label](std::size_t width) { return label.substr(0, width); });
    try {
      const std::optional<CpuTimes> before = cpu_times();
      all.push_back(measure(backend, monitor, plan_for_peaks(), probe));
      const std::optional<OthersLoad> others = others_between(before, cpu_times());
      if (device.kind == Device::Kind::cpu && others && others->disturbs())
        disturbed = true;
      else
        kept = save_peaks(file, device, {all.back()}) && kept;
    } catch (const EndsTheRun&) {
      throw;
    } catch (const std::exception& error) {  // no memory for it: the others may fit
      measured = false;
      say(label + " could not be measured: " + one_line(error.what()));
    }
  }
  end_status();
  if (disturbed)
    std::cerr
        << "Other programs used the CPU while its peaks were measured: they are not kept, and "
           "the next run measures them again\n";
  if (!kept)
    std::cerr << "The measured peaks could not be written to '" << file.string()
              << "': the next run measures them again\n";
  return measured;
}

std::vector<MeasuredPeak> kept_and_measured(Backend& backend, const GpuMonitor* monitor,
                                            const DeviceInfo& device, bool again) {
  std::vector<MeasuredPeak> all;
  if (!again) all = load_peaks(peaks_file(device), device);
  std::vector<Probe> probes = probes_of(backend);
  std::erase_if(probes, [](const Probe& probe) { return probe.on_request; });
  measure_missing(backend, monitor, device, probes, all);
  if (measured_beside_others(all))
    std::cerr
        << "DRAM was measured at less than half of its rate: another program may be using this "
           "device. The next run measures the peaks again\n";
  return all;
}

}  // namespace gemm::bench
