// How a row was measured, in a line, and in which points that deviates from NVIDIA's GEMM
// Performance Measurement Methodology Guidelines (CUTLASS documentation).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/base/text.hpp"
#include "bench/record/record.hpp"

namespace gemm::bench {
namespace {

// Clocks that float do not stand still at one value below their maximum.
constexpr double kBelowMaximum = 0.99, kStandsStill = 0.002;

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

double megabytes(const Row& row) {
  return static_cast<double>(row.rotation_sets) * bytes_minimum(row.which.problem) * 1e-6;
}

std::string text_of_sets(const Row& row) {
  const double size = megabytes(row);
  return count(row.rotation_sets, "operand set") +
         formatted(size < 10 ? " (%.2g MB)" : " (%.0f MB)", size);
}

bool has_reason(const Row& row, std::string_view name) {
  return std::ranges::any_of(row.timing.gpu.reasons,
                             [&](const auto& reason) { return reason.first == name; });
}

// Least and most of what a row has, over those that have it.
template <typename F>
std::optional<Range> over(const std::vector<const Row*>& rows, F&& value) {
  std::vector<double> values;
  for (const Row* row : rows)
    if (const std::optional<double> one = value(*row)) values.push_back(*one);
  return range_of(std::move(values));
}

std::optional<double> watts(const Row& row) {
  const auto& power = row.timing.gpu.power_w;
  return power ? std::optional(power->median) : std::nullopt;
}

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
  std::vector<Deviation> found;
  const auto add = [&](const char* code, std::optional<double> value, std::string text) {
    found.push_back({code, value, std::move(text)});
  };
  if (options.fill == Fill::zeros || options.fill == Fill::integers)
    add("low-power-operands", {},
        std::string(name_of(options.fill)) + " draw less power than real data");
  const double cache = 2 * static_cast<double>(run_.device.last_level_cache_bytes);
  if (row.rotation_sets < 2)
    add("one-operand-set", {}, "one operand set, which the cache may hold");
  else if (1e6 * megabytes(row) <= cache)
    add("cached-operands", 1e6 * megabytes(row),
        formatted("operand sets of %.0f MB do not exceed twice the cache (%.0f MB)", megabytes(row),
                  cache * 1e-6));
  if (options.timing.state == State::burst)
    add("burst", {}, "burst: the card was not settled");
  else if (timing.warmup.watched.empty())
    add("not-watched", {}, "clock and power not watched");
  else if (!timing.warmup.settled)
    add("not-settled", timing.warmup.seconds,
        formatted("clock and power not flat after %.2g s", timing.warmup.seconds));
  else if (timing.gpu.readings == 0)
    add("power-not-watched", {}, "power not watched");
  const double interval = timing.median_interval();
  if (!timing.converged && std::isfinite(interval))
    add("median-uncertain", interval, formatted("median known to %.2g %% only", 100 * interval));
  else if (!timing.converged)
    add("too-few-samples", {}, "too few samples to know the median");
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
    line += formatted(", bursts of %lld launches after %.3g s of rest",
                      static_cast<long long>(row.batch), run_.options.timing.cooldown_seconds);
  else
    line += (timing.warmup.settled ? ", settled after" : ", warmed up for") +
            formatted(" %.1f s", timing.warmup.seconds);
  if (const auto clock = timing.median_sm_hz()) line += formatted(" at %.0f MHz", *clock * 1e-6);
  if (const auto power = watts(row)) line += formatted(" %.0f W", *power);
  std::string reasons;
  for (const auto& [name, share] : timing.gpu.reasons)
    reasons += (reasons.empty() ? "" : ", ") + name;
  if (!reasons.empty()) line += " (" + reasons + ")";
  line += ", " + count(static_cast<std::int64_t>(timing.samples_seconds.size()), "sample");
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
    line += formatted(", bursts after %.3g s of rest", run_.options.timing.cooldown_seconds);
  } else {
    const auto warmups =
        over(rows, [](const Row& row) { return std::optional(row.timing.warmup.seconds); });
    const bool settled =
        std::ranges::all_of(rows, [](const Row* row) { return row->timing.warmup.settled; });
    line += (settled ? ", settled after " : ", warmed up for ") +
            span("%.1f", warmups->min, warmups->max, " s");
  }
  if (const auto clock = over(rows, [](const Row& row) { return row.timing.median_sm_hz(); }))
    line += " at " + span("%.0f", clock->min * 1e-6, clock->max * 1e-6, " MHz");
  if (const auto power = over(rows, watts))
    line += " " + span("%.0f", power->min, power->max, " W");
  if (const auto capped = std::ranges::count_if(
          rows, [](const Row* row) { return row->timing.gpu.throttled_share.value_or(0) > 0; }))
    line += " (throttled in " + count(capped, "row") + ")";
  const auto samples = over(rows, [](const Row& row) {
    return std::optional(static_cast<double>(row.timing.samples_seconds.size()));
  });
  line += ", " + thousands(std::llround(samples->min));
  if (samples->max > samples->min) line += " to " + thousands(std::llround(samples->max));
  line += " samples a row";
  if (const auto deviating =
          std::ranges::count_if(rows, [&](const Row* row) { return !deviations(*row).empty(); }))
    line += "; " + count(deviating, "row") + " of " + thousands(std::ssize(rows)) +
            (deviating == 1 ? " departs" : " depart") + " from the guideline";
  return line;
}

}  // namespace gemm::bench
