// How a result was measured, in a line, and in which points that deviates from NVIDIA's GEMM
// Performance Measurement Methodology Guidelines (CUTLASS documentation).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/base/text.hpp"
#include "bench/record/record.hpp"

namespace gemm::bench {
namespace {

// Clocks that are not fixed do not stay at one value below their maximum.
constexpr double kBelowMaximum = 0.99, kStandsStill = 0.002;
// What renewal and checks between the launches may change of it.
constexpr double kSameClock = 0.005;

// NVIDIA's figures: clocks at the power cap settle after about 3 s, and 1,000 launches give stable
// results for 4096 x 4096 x 4096.
constexpr double kWarmupAtCap = 3;
constexpr std::int64_t kFewestLaunches = 1000;

// How far the means of the halves are apart, over the first; 0 of fewer than two values.
double drift_of(const std::vector<double>& values) {
  const auto half = static_cast<std::ptrdiff_t>(values.size() / 2);
  if (half == 0) return 0;
  const double first = std::accumulate(values.begin(), values.begin() + half, 0.0),
               second = std::accumulate(values.end() - half, values.end(), 0.0);
  return std::fabs(second / first - 1);
}

// "1,240"
std::string thousands(std::int64_t count) {
  std::string text = std::to_string(count);
  for (auto place = static_cast<std::ptrdiff_t>(text.size()) - 3; place > 0; place -= 3)
    text.insert(static_cast<std::size_t>(place), ",");
  return text;
}

// "0.5 to 3.1 s", or "0.5 s" where both print alike.
std::string span(const char* format, double least, double most, const char* unit) {
  const std::string from = formatted(format, least), to = formatted(format, most);
  return (from == to ? from : from + " to " + to) + unit;
}

std::string count(std::int64_t number, const char* what) {
  return thousands(number) + " " + what + (number == 1 ? "" : "s");
}

std::string text_of_sets(const Row& row) {
  const double size =
      static_cast<double>(row.rotation_sets) * bytes_minimum(row.which.problem) * 1e-6;
  return count(row.rotation_sets, "operand set") +
         formatted(size < 10 ? " (%.2g MB)" : " (%.0f MB)", size);
}

bool has_reason(const Row& row, std::string_view name) {
  return std::ranges::any_of(row.timing.gpu.reasons,
                             [&](const auto& reason) { return reason.first == name; });
}

// Least, median and most of a value over the rows that have it.
template <typename F>
std::optional<Range> over(const std::vector<const Row*>& rows, F&& value) {
  std::vector<double> values;
  for (const Row* row : rows)
    if (const std::optional<double> one = value(*row)) values.push_back(*one);
  return range_of(std::move(values));
}

std::optional<double> watts(const Row& row) { return row.timing.warmup.energy.watts; }

}  // namespace

std::optional<std::string> Results::test() const {
  if (!run_.gpu) return std::nullopt;
  bool set = run_.gpu->application_clocks_set, seen = false, capped = false;
  double least = 0, most = 0;
  for (const auto& [name, rows] : rows_)
    for (const Row& row : rows) {
      if (!row.timed() || !row.timing.gpu.sm_hz) continue;
      const Range& clock = *row.timing.gpu.sm_hz;
      set = set || has_reason(row, "clocks set by user");
      capped = capped || row.timing.gpu.throttled_share.value_or(0) > 0;
      least = seen ? std::min(least, clock.min) : clock.min;
      most = std::max(most, clock.max);
      seen = true;
    }
  const bool still = seen && most - least <= kStandsStill * most;
  const bool below = run_.gpu->sm_hz_max && most < kBelowMaximum * *run_.gpu->sm_hz_max;
  return set || (still && below && !capped) ? "fixed frequency" : "fixed power";
}

std::vector<Deviation> Results::deviations(const Row& row) const {
  const Options& options = run_.options;
  const Timing& timing = row.timing;
  const Problem& p = row.which.problem;
  const bool fixed_frequency = test() == "fixed frequency",
             burst = options.timing.state == State::burst;
  std::vector<Deviation> found;
  const auto add = [&](const char* code, std::optional<double> value, std::string text) {
    found.push_back({.code = code, .value = value, .text = std::move(text), .limit = {}});
  };
  // At a fixed frequency the guideline recommends zeros.
  if (!fixed_frequency && options.fill == Fill::normal)
    add("other-distribution", {}, "normal input data, not uniform in [-1, 1]");
  else if (!fixed_frequency && options.fill != Fill::uniform)
    add("low-power-operands", {},
        "input data of " + std::string(name_of(options.fill)) + " draws less power than real data");
  const auto sets = static_cast<double>(row.rotation_sets);
  const double cache = 2 * static_cast<double>(run_.device.last_level_cache_bytes);
  if (!row.rated()) add("not-checked", {}, "a single sample, which is not checked: no rate");
  if (const std::int64_t uses = row.checks ? row.checks->uses : 1; uses > 1)
    add("reused-operands", static_cast<double>(uses),
        "each operand set was used " + std::to_string(uses) + " times with the same values");
  if (row.rotation_sets < 2)
    add("one-operand-set", {}, "one operand set, which may stay in the cache");
  else if (const double bytes = sets * std::max(to_device_bytes(p), from_device_bytes(p));
           bytes <= cache)
    add("cached-operands", bytes,
        formatted("operand sets of %.0f MB do not exceed twice the last-level cache (%.0f MB)",
                  bytes * 1e-6, cache * 1e-6));
  // A launch from Python takes up to 100 us.
  const double launch =
      row.which.kernel->python.empty() ? options.timing.graph_below_seconds : 1e-4;
  if (row.launch == "stream" && !row.which.transfer && row.seconds() < 0.9 * launch)
    add("host-bound", row.seconds(),
        "a short kernel without a CUDA graph: the host may limit the launch rate");
  if (constexpr double kPages = 4 << 20; timing.memory_kept_bytes > kPages)
    add("memory-kept", timing.memory_kept_bytes,
        formatted("%.0f MB more of the GPU's memory were in use after the samples than before",
                  timing.memory_kept_bytes * 1e-6));
  if (burst)
    add("burst", {}, "burst: the GPU was not in steady state");
  else if (timing.warmup.watched.empty())
    add("not-watched", {}, "no readings of clock and power");
  else if (!timing.warmup.settled)
    add("not-settled", timing.warmup.seconds,
        formatted("clock or power still changed after %.2g s of warm-up", timing.warmup.seconds));
  else if (timing.gpu.throttled_share.value_or(0) > 0 && timing.warmup.seconds < kWarmupAtCap)
    add("short-warm-up", timing.warmup.seconds,
        formatted("%.2g s of warm-up while throttled: clocks may oscillate for %g s",
                  timing.warmup.seconds, kWarmupAtCap));
  else if (timing.gpu.readings == 0)
    add("power-not-watched", {}, "no readings of power");
  if (const double drift = drift_of(timing.samples_sm_hz);
      !burst && !(drift <= options.timing.flat))
    add("clock-drift", drift,
        formatted("the SM clock changed by %.2g %% during the samples", 100 * drift));
  if (const auto sampled = timing.median_sm_hz(), before = timing.warmup.sm_hz;
      !burst && timing.warmup.settled && sampled && before &&
      std::fabs(*sampled / *before - 1) > kSameClock)
    add("other-clock", *sampled / *before - 1,
        formatted("the SM clock of the samples is %+.2g %% from that of an undisturbed stretch",
                  100 * (*sampled / *before - 1)));
  if (fixed_frequency && timing.gpu.throttled_share.value_or(0) > 0)
    add("clock-not-held", timing.gpu.throttled_share, "fixed frequency, but the GPU was throttled");
  if (const std::int64_t launches = std::ssize(timing.samples_seconds) * row.batch;
      launches < kFewestLaunches)
    add("few-launches", static_cast<double>(launches),
        "timed for " + thousands(launches) + " of at least " + thousands(kFewestLaunches) +
            " launches");
  const double interval = timing.median_interval();
  if (!timing.converged && std::isfinite(interval))
    add("median-uncertain", interval,
        formatted("the 95 %% interval of the median is %.2g %% wide, the target %.2g %%",
                  100 * interval, 100 * options.timing.target));
  else if (!timing.converged)
    add("too-few-samples", {}, "too few samples for a 95 % interval of the median");
  if (!run_.environment.injected.empty())
    add("injected", {}, "injected code, such as a profiler: " + list_of(run_.environment.injected));
  if (run_.device.kind == Device::Kind::cpu && row.host && row.host->disturbs())
    add("busy-host", row.host->missing_cpus() / row.host->cpus,
        formatted("a busy host: others used %.2g of %d CPUs meanwhile", row.host->missing_cpus(),
                  row.host->cpus));
  if (run_.gpu_processes.value_or(0) > 0)
    add("shared-gpu", static_cast<double>(*run_.gpu_processes),
        "other processes on the GPU: " + std::to_string(*run_.gpu_processes));
  if (const auto share = run_.environment.recorded.find("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
      run_.device.kind == Device::Kind::gpu && share != run_.environment.recorded.end())
    add("mps-share", {}, "MPS gives this process " + share->second + " % of the GPU");
  for (const auto& [name, share] : timing.gpu.reasons)
    if (name.find("slowdown") != std::string::npos || name.find("brake") != std::string::npos)
      add("hardware-slowdown", share, name + formatted(" in %.0f %% of the readings", 100 * share));
  return found;
}

std::string Results::conformance(const Row& row) const {
  const Timing& timing = row.timing;
  const auto kind = test();
  std::string line = kind ? *kind + ", " : "";
  line += std::string(name_of(run_.options.fill)) + ", " + text_of_sets(row);
  if (row.which.transfer)
    line += " with their copies (" + std::string(name_of(*row.which.transfer)) + ")";
  if (run_.options.timing.state == State::burst)
    line += formatted(", bursts of %lld launches after %.3g s idle",
                      static_cast<long long>(row.batch), run_.options.timing.cooldown_seconds);
  else
    line += (timing.warmup.settled ? ", steady state after" : ", warmed up for") +
            formatted(" %.1f s", timing.warmup.seconds);
  if (const auto clock = timing.median_sm_hz()) line += formatted(" at %.0f MHz", *clock * 1e-6);
  if (const auto power = watts(row)) line += formatted(" %.0f W", *power);
  std::string reasons;
  for (const auto& [name, share] : timing.gpu.reasons)
    reasons += (reasons.empty() ? "" : ", ") + name;
  if (!reasons.empty()) line += " (" + reasons + ")";
  line += ", " + count(std::ssize(timing.samples_seconds), "sample");
  return line;
}

std::string Results::conformance() const {
  std::vector<const Row*> rows;
  for (const auto& [name, of_name] : rows_)
    if (of_name.back().timed()) rows.push_back(&of_name.back());
  if (rows.empty()) return "";

  const auto kind = test();
  std::string line = kind ? *kind + ", " : "";
  line += name_of(run_.options.fill);
  const auto sets =
      over(rows, [](const Row& row) { return std::optional(1.0 * row.rotation_sets); });
  line +=
      ", " + span("%.0f", sets->min, sets->max, sets->max > 1 ? " operand sets" : " operand set");
  if (run_.options.timing.state == State::burst) {
    line += formatted(", bursts after %.3g s idle", run_.options.timing.cooldown_seconds);
  } else {
    const auto warmups =
        over(rows, [](const Row& row) { return std::optional(row.timing.warmup.seconds); });
    const bool settled =
        std::ranges::all_of(rows, [](const Row* row) { return row->timing.warmup.settled; });
    line += (settled ? ", steady state after " : ", warmed up for ") +
            span("%.1f", warmups->min, warmups->max, " s");
  }
  if (const auto clock = over(rows, [](const Row& row) { return row.timing.median_sm_hz(); }))
    line += " at " + span("%.0f", clock->min * 1e-6, clock->max * 1e-6, " MHz");
  if (const auto power = over(rows, watts))
    line += " " + span("%.0f", power->min, power->max, " W");
  if (const auto capped = std::ranges::count_if(
          rows, [](const Row* row) { return row->timing.gpu.throttled_share.value_or(0) > 0; }))
    line += " (" + count(capped, "result") + " throttled)";
  const auto samples = over(rows, [](const Row& row) {
    return std::optional(static_cast<double>(row.timing.samples_seconds.size()));
  });
  line += ", " + thousands(std::llround(samples->min));
  if (samples->max > samples->min) line += " to " + thousands(std::llround(samples->max));
  line += " samples per result";
  if (run_.options.timing.state == State::settled)
    line += run_.options.timing.cooldown_seconds > 0
                ? formatted(", %.3g s idle before each", run_.options.timing.cooldown_seconds)
                : ", no idle time between them";
  if (const auto deviating =
          std::ranges::count_if(rows, [&](const Row* row) { return !deviations(*row).empty(); }))
    line += "; off-guideline: " + thousands(deviating) + " of " + thousands(std::ssize(rows));
  return line;
}

}  // namespace gemm::bench
