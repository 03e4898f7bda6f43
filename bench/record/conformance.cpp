// In which points the measuring of a result deviates from NVIDIA's GEMM Performance Measurement
// Methodology Guidelines (CUTLASS documentation), and what makes its figure uncertain.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/base/text.hpp"
#include "bench/record/record.hpp"
#include "kernels/tokens.hpp"

namespace gemm::bench {
namespace {

// Clocks that are not fixed do not stay at one value below their maximum.
constexpr double kBelowMaximum = 0.99, kStandsStill = 0.002;

constexpr double kMostly = 0.5;  // of the readings

// NVIDIA's figure: 1,000 launches give stable results for 4096 x 4096 x 4096.
constexpr std::int64_t kFewestLaunches = 1000;

// How far the means of the halves are apart, over the first; 0 of fewer than two values.
double drift_of(const std::vector<double>& values) {
  const auto half = static_cast<std::ptrdiff_t>(values.size() / 2);
  if (half == 0) return 0;
  const double first = std::accumulate(values.begin(), values.begin() + half, 0.0),
               second = std::accumulate(values.end() - half, values.end(), 0.0);
  return std::fabs(second / first - 1);
}

// Of the readings that tell.
double share_of(const Row& row, std::string_view reason) {
  for (const auto& [name, share] : row.timing.gpu.reasons)
    if (name == reason) return share;
  return 0;
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
      set = set || share_of(row, "clocks set by user") > 0;
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
             gpu = run_.device.kind == Device::Kind::gpu,
             burst = options.timing.state == State::burst;
  const double throttled = timing.gpu.throttled_share.value_or(0);
  std::vector<Deviation> found;
  const auto off = [&](const char* code, std::optional<double> value = {},
                       std::optional<double> limit = {}) {
    found.push_back({code, value, limit, /*doubt=*/false});
  };
  const auto doubt = [&](const char* code, std::optional<double> value = {},
                         std::optional<double> limit = {}) {
    found.push_back({code, value, limit, /*doubt=*/true});
  };

  // At a fixed frequency the guideline recommends zeros.
  if (!fixed_frequency && options.fill != Fill::uniform)
    off(options.fill == Fill::normal ? "other-distribution" : "low-power-operands");
  const double output = 1.0 * traits_of(p.precision).output_bytes * p.batch * p.m * p.n,
               bytes = static_cast<double>(row.rotation_sets) *
                       std::max(compulsory_bytes(p) - output, output),
               cache = 2 * static_cast<double>(run_.device.last_level_cache_bytes);
  if (!row.rated()) off("not-checked");
  if (row.checks && row.checks->uses > 1)
    off("reused-operands", static_cast<double>(row.checks->uses), 1);
  if (row.rotation_sets < 2)
    off("one-operand-set");
  else if (bytes <= cache)
    off("cached-operands", bytes, cache);
  // A launch from Python takes up to 100 us.
  const double launch =
      0.9 * (row.which.kernel->python.empty() ? options.timing.graph_below_seconds : 1e-4);
  if (row.launch == "stream" && row.seconds() < launch) off("host-bound", row.seconds(), launch);
  if (constexpr double kPages = 4 << 20; timing.memory_kept_bytes > kPages)
    off("memory-kept", timing.memory_kept_bytes, kPages);
  if (burst)
    off("burst");
  else if (gpu && timing.warmup.watched.empty())
    off("not-watched");
  else if (!timing.warmup.settled && !timing.warmup.watched.empty())
    off("not-settled", timing.warmup.seconds);
  else if (throttled > 0 && timing.warmup.seconds < kWarmupAtCap)
    off("short-warm-up", timing.warmup.seconds, kWarmupAtCap);
  else if (gpu && timing.gpu.readings == 0)
    off("power-not-watched");
  if (fixed_frequency && throttled > 0) off("clock-not-held", throttled, 0);
  if (const double capped = share_of(row, "power cap");
      options.timing.state == State::limit && !(capped >= kMostly))
    off("not-at-limit", capped, kMostly);
  const std::int64_t launches = std::ssize(timing.samples_seconds) * row.batch;
  if (launches < kFewestLaunches && !timing.converged)
    off("few-launches", static_cast<double>(launches), static_cast<double>(kFewestLaunches));
  if (!run_.environment.injected.empty()) off("injected");
  if (const std::uint64_t others = run_.gpu_processes.value_or(0); others > 0)
    off("shared-gpu", static_cast<double>(others), 0);
  if (const auto share = run_.environment.recorded.find("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
      gpu && share != run_.environment.recorded.end())
    off("mps-share", number_in<double>(share->second), 100);

  // The time of a launch goes as its clock: a clock that is off by more than the interval may be
  // wide makes the figure less certain than the interval says.
  const double target = options.timing.target;
  if (const double drift = drift_of(timing.samples_sm_hz); !burst && !(drift <= target))
    doubt("clock-drift", drift, target);
  if (const auto sampled = timing.median_sm_hz(), before = timing.warmup.sm_hz;
      !burst && timing.warmup.settled && sampled && before &&
      !(std::fabs(*sampled / *before - 1) <= target))
    doubt("other-clock", *sampled / *before - 1, target);
  const double interval = timing.median_interval();
  if (!timing.converged && std::isfinite(interval))
    doubt("median-uncertain", interval, target);
  else if (!timing.converged)
    doubt("too-few-samples");
  if (!gpu && row.host && row.host->disturbs())
    doubt("busy-host", row.host->missing_cpus() / row.host->cpus,
          row.host->most_missing_cpus() / row.host->cpus);
  double slowed = 0;
  for (const auto& [name, share] : timing.gpu.reasons)
    if (name.find("slowdown") != std::string::npos || name.find("brake") != std::string::npos)
      slowed = std::max(slowed, share);
  if (slowed > 0) doubt("hardware-slowdown", slowed, 0);
  return found;
}

bool Results::in_doubt(const Row& row) const {
  return std::ranges::any_of(deviations(row), &Deviation::doubt);
}

std::string Results::conformance() const {
  std::int64_t timed = 0, off_guideline = 0, doubtful = 0;
  std::map<std::string, std::int64_t> points;
  for (const auto& [name, rows] : rows_) {
    if (!rows.back().timed()) continue;
    const std::vector<Deviation> all = deviations(rows.back());
    ++timed;
    off_guideline += !std::ranges::all_of(all, &Deviation::doubt);
    doubtful += std::ranges::any_of(all, &Deviation::doubt);
    for (const Deviation& one : all)
      if (!one.doubt) ++points[one.code];
  }
  std::vector<std::string> named, parts;
  for (const auto& [code, times] : points) named.push_back(code + " " + std::to_string(times));
  const std::string of = " of " + std::to_string(timed);
  if (off_guideline > 0)
    parts.push_back("off-guideline: " + std::to_string(off_guideline) + of + " (" + list_of(named) +
                    ")");
  if (doubtful > 0) parts.push_back("in doubt: " + std::to_string(doubtful) + of);
  return list_of(parts, "; ");
}

}  // namespace gemm::bench
