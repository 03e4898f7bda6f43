#include "bench/timing/timing.hpp"

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "bench/base/clock.hpp"
#include "bench/base/device_errors.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/terminal.hpp"
#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

constexpr std::int64_t kMostLaunches = 1000;  // in a batch; the driver queues about as many

constexpr double kChunkSeconds = 0.02;  // of a warm-up
// In which clock and power must be flat, and which the energy is measured in.
constexpr double kWindowSeconds = 1.2 * kShortestStretch;
// In which clock and power of an H200 swing when it meets its power cap.
constexpr double kSwingSeconds = 1.0;
// A throttled GPU's clock is below its maximum by more than this: readings of the reason are late,
// and may be of what ran before.
constexpr double kFallen = 0.99;
constexpr double kBlindWarmupSeconds = 0.25;
constexpr std::int64_t kFewestSamples = 6, kFewestOfLong = 3;
constexpr double kNormalQuantile = 1.96;  // kConfidence of a normal distribution is within

// A value and when it was seen.
struct Seen {
  double when, value;
};

// Whether a clock is as high as it gets; false where either is not known.
bool at_maximum(std::optional<double> sm_hz, const GpuMonitor& monitor) {
  const auto highest = monitor.facts().sm_hz_max;
  return sm_hz && highest && *sm_hz >= kFallen * *highest;
}

// Do the means of the halves of the last window agree? Nothing if one of them is empty.
std::optional<bool> flat(const std::vector<Seen>& seen, double now, double window,
                         double tolerance) {
  double sum[2] = {};
  int count[2] = {};
  for (const Seen& one : seen) {
    if (one.when <= now - window) continue;
    const int half = one.when > now - window / 2 ? 1 : 0;
    sum[half] += one.value;
    ++count[half];
  }
  if (count[0] == 0 || count[1] == 0) return std::nullopt;
  const double before = sum[0] / count[0], after = sum[1] / count[1];
  return std::fabs(after - before) <= tolerance * before;
}

double sorted_quantile(const std::vector<double>& sorted, double place) {
  place = std::clamp(place, 0.0, static_cast<double>(sorted.size() - 1));
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

BatchPlan plan_batch(const TimingPlan& plan, double seconds_per_launch, std::int64_t sets,
                     Device::Kind where) {
  const bool graph = where == Device::Kind::gpu && seconds_per_launch < plan.graph_below_seconds;
  if (plan.state == State::burst) return {plan.burst_launches, graph};
  const double enough = std::ceil(plan.sample_seconds / std::max(seconds_per_launch, 1e-7));
  const auto size =
      static_cast<std::int64_t>(std::clamp(enough, 1.0, static_cast<double>(kMostLaunches)));
  // Whole rounds of the operand sets are one graph.
  return {graph ? (size + sets - 1) / sets * sets : size, graph};
}

double seconds_of_launch(Backend& backend, std::span<const Launch> launches) {
  Batch one(backend, launches, 1, false);
  // The faster of two: one may be held up by whatever else the machine does.
  const double alone = std::min(one.time().seconds, one.time().seconds);
  constexpr double kEnoughSeconds = 2e-3;
  if (alone >= kEnoughSeconds) return alone;
  const auto count = static_cast<std::int64_t>(kEnoughSeconds / std::max(alone, 1e-5));
  return Batch(backend, launches, count, false).time().seconds / static_cast<double>(count);
}

BatchPlan try_out(Backend& backend, const TimingPlan& plan, std::span<const Launch> launches) {
  return plan_batch(plan, seconds_of_launch(backend, launches), std::ssize(launches),
                    backend.device().kind);
}

double Timing::quantile_seconds(double share) const {
  std::vector<double> sorted = samples_seconds;
  std::ranges::sort(sorted);
  return sorted_quantile(sorted, share * static_cast<double>(sorted.size() - 1));
}

Quartiles Timing::quartiles_seconds() const {
  return {quantile_seconds(0.5), quantile_seconds(0.25), quantile_seconds(0.75),
          quantile_seconds(0)};
}

std::optional<double> Timing::highest_sm_hz() const {
  std::optional<double> highest;
  for (const std::optional<Range>& seen : {sm_hz_by_timer(), gpu.sm_hz})
    if (seen) highest = std::max(highest.value_or(0), seen->max);
  return highest;
}

std::optional<double> Timing::median_sm_hz() const {
  const auto by_timer = sm_hz_by_timer();
  return median_of(by_timer ? by_timer : gpu.sm_hz);
}

double Timing::median_interval() const { return bench::median_interval(samples_seconds); }

double effective_count(const std::vector<double>& samples) {
  const auto n = static_cast<double>(samples.size());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / n;
  const auto covariance = [&](std::size_t lag) {
    double sum = 0;
    for (std::size_t i = lag; i < samples.size(); ++i)
      sum += (samples[i] - mean) * (samples[i - lag] - mean);
    return sum;
  };
  const double variance = covariance(0);
  if (!(variance > 1e-20 * n * mean * mean)) return n;  // they differ by rounding at most
  double time = 1;
  constexpr std::size_t kMostLags = 1000;
  for (std::size_t lag = 1; lag < std::min(samples.size() / 2, kMostLags); ++lag) {
    const double correlation = covariance(lag) / variance;
    if (!(correlation > 0)) break;
    time += 2 * correlation;
  }
  return std::max(1.0, n / time);
}

Range median_range(const std::vector<double>& samples) {
  std::vector<double> sorted = samples;
  std::ranges::sort(sorted);
  const auto n = static_cast<double>(sorted.size());
  const double middle = (n - 1) / 2;
  const double independent = effective_count(samples) - 2;
  const double reach = independent < 1 ? n : kNormalQuantile / 2 * n / std::sqrt(independent);
  return {sorted_quantile(sorted, middle - reach), sorted_quantile(sorted, middle),
          sorted_quantile(sorted, middle + reach)};
}

double median_interval(const std::vector<double>& samples) {
  if (std::ssize(samples) < kFewestSamples || effective_count(samples) < 3)
    return std::numeric_limits<double>::infinity();
  const Range range = median_range(samples);
  return (range.max - range.min) / range.median;
}

Warmup warm_up(const TimingPlan& plan, const GpuMonitor* monitor,
               std::span<const std::function<Elapsed()>> batches, double deadline) {
  show_phase("warm-up");
  Warmup warmup;
  const double start = now_seconds();
  const double cap = std::min(plan.warmup_seconds, (deadline - start) / 2);
  std::vector<Seen> clocks;
  double longest_batch = 0;
  for (;;) {
    if (interrupted()) throw Interrupted();
    double chunk_seconds = 0;
    bool timers = false;
    while (chunk_seconds < kChunkSeconds) {
      for (const std::function<Elapsed()>& batch : batches) {
        const Elapsed time = batch();
        chunk_seconds += time.seconds;
        longest_batch = std::max(longest_batch, time.seconds);
        if (time.sm_hz) clocks.push_back({now_seconds(), *time.sm_hz});
        timers = timers || time.sm_hz;
      }
      if (now_seconds() - start >= cap) break;
    }
    const double now = now_seconds();
    warmup.kernel_seconds += chunk_seconds;
    warmup.seconds = now - start;

    std::vector<Seen> power, reported;
    warmup.throttled = false;
    std::optional<double> slowest;  // of the timers in the last window
    for (const Seen& one : clocks)
      if (one.when > now - kWindowSeconds)
        slowest = std::min(slowest.value_or(one.value), one.value);
    if (monitor != nullptr)
      for (const GpuReading& reading :
           monitor->between(std::max(start, now - 3 * kSwingSeconds), now)) {
        if (reading.when > now - kWindowSeconds &&
            (reading.reasons.value_or(0) & kThrottled) != 0 &&
            !at_maximum(slowest ? slowest : reading.sm_hz, *monitor))
          warmup.throttled = true;
        if (reading.power_w) power.push_back({reading.when, *reading.power_w});
        if (!timers && reading.sm_hz) reported.push_back({reading.when, *reading.sm_hz});
      }
    const std::vector<Seen>& clock = clocks.empty() ? reported : clocks;
    const bool watched = !clock.empty() || !power.empty();
    const double longest = watched ? cap : std::min(cap, kBlindWarmupSeconds);
    warmup.watched = !clock.empty() && !power.empty() ? "SM clock and power"
                     : !clock.empty()                 ? "SM clock"
                     : !power.empty()                 ? "power"
                                                      : "";
    // Each half has a batch and a reading in it.
    const double window =
        std::max({warmup.throttled ? 2 * kSwingSeconds : kWindowSeconds, 2.2 * longest_batch,
                  monitor != nullptr ? 2.2 * monitor->interval_seconds() : 0.0});
    const bool clock_flat = clock.empty() || flat(clock, now, window, plan.flat).value_or(false);
    const bool power_flat = power.empty() || flat(power, now, window, plan.flat).value_or(false);
    std::vector<double> last;  // of the timers
    for (const Seen& one : clocks)
      if (one.when > now - window) last.push_back(one.value);
    if (!last.empty())
      warmup.sm_hz = std::accumulate(last.begin(), last.end(), 0.0) / std::ssize(last);
    warmup.settled = warmup.seconds >= window && watched && clock_flat && power_flat;
    const bool enough = warmup.settled && (!warmup.throttled || warmup.seconds >= kWarmupAtCap);
    if (!enough && warmup.seconds < longest) continue;
    if (batches.size() > 1)
      warmup.energy.why_not = "interleaved with another kernel";
    else if (monitor == nullptr)
      warmup.energy.why_not = "no readings of the GPU";
    else if (!warmup.settled)
      warmup.energy.why_not = formatted("not in steady state after %.2g s", warmup.seconds);
    else
      warmup.energy = energy_over(monitor->between(std::max(start, now - window), now));
    return warmup;
  }
}

StopRule::StopRule(const TimingPlan& plan, double start, double deadline, bool throttled)
    : plan_(plan),
      start_(start),
      deadline_(deadline),
      longest_(deadline),
      shortest_(plan.sampling_seconds) {
  if (plan_.state == State::burst) {
    shortest_ = 0;
    return;
  }
  if (plan_.samples) return;
  const double longest = std::max(shortest_, plan_.longest_sampling_seconds);
  if (throttled) shortest_ = std::clamp(2 * kSwingSeconds, shortest_, longest);
  longest_ = std::min(deadline_, start_ + longest);
}

bool StopRule::enough(std::int64_t taken, double now, const std::function<double()>& interval) {
  constexpr double kLookSeconds = 0.05;
  if (plan_.samples && taken >= *plan_.samples) return true;
  // However long they rest: fewer bursts say nothing.
  const std::int64_t fewest = plan_.samples                 ? 1
                              : plan_.state == State::burst ? kFewestSamples
                                                            : kFewestOfLong;
  if (taken >= fewest && now >= longest_) return true;
  if (plan_.samples || taken < kFewestSamples || now - start_ < shortest_ ||
      now - looked_ < kLookSeconds)
    return false;
  looked_ = now;
  return interval() <= plan_.target;
}

Sampling::Sampling(const TimingPlan& plan, const GpuMonitor* monitor, double deadline,
                   bool throttled)
    : target_(plan.target), monitor_(monitor), stop_(plan, now_seconds(), deadline, throttled) {}

bool Sampling::late() const { return stop_.late(now_seconds()); }

bool Sampling::enough() {
  return stop_.enough(taken(), now_seconds(), [this] { return timing_.median_interval(); });
}

void Sampling::add(const Elapsed& time, std::int64_t size, double from) {
  spans_.push_back({from, now_seconds()});
  const double seconds = time.seconds / static_cast<double>(size);
  if (!(seconds > 0))
    throw std::runtime_error("a batch of launches took no time: do they run on the given stream?");
  timing_.kernel_seconds += time.seconds;
  timing_.samples_seconds.push_back(seconds);
  if (time.sm_hz) timing_.samples_sm_hz.push_back(*time.sm_hz);
}

Timing Sampling::finish() const {
  Timing timing = timing_;
  if (timing.samples_sm_hz.size() != spans_.size()) timing.samples_sm_hz.clear();
  timing.converged = timing.median_interval() <= target_;
  if (monitor_ == nullptr || spans_.empty()) return timing;

  // By the timers on the GPU, if they have it.
  const auto fell = [&](std::size_t sample, const GpuReading& reading) {
    return !at_maximum(
        timing.samples_sm_hz.empty() ? reading.sm_hz : std::optional(timing.samples_sm_hz[sample]),
        *monitor_);
  };
  // While a burst waits for the GPU to cool down, nothing is timed.
  std::vector<GpuReading> readings;
  for (std::size_t i = 0; i < spans_.size(); ++i)
    for (GpuReading reading : monitor_->between(spans_[i].from, spans_[i].to)) {
      if (reading.reasons && !fell(i, reading)) *reading.reasons &= ~kThrottled;
      readings.push_back(reading);
    }
  timing.gpu = summarize(readings);

  // Not of what ran before or runs next.
  const std::vector<GpuReading> all = monitor_->between(spans_.front().from, spans_.back().to);
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const Span& span = spans_[i];
    const double middle = (span.from + span.to) / 2;
    const auto nearest = std::ranges::min_element(all, {}, [&](const GpuReading& reading) {
      return reading.reasons ? std::fabs(reading.when - middle)
                             : std::numeric_limits<double>::infinity();
    });
    if (nearest == all.end() || !nearest->reasons) {
      timing.samples_throttled.clear();
      break;
    }
    timing.samples_throttled.push_back((*nearest->reasons & kThrottled) != 0 && fell(i, *nearest));
  }
  return timing;
}

Timing time_launches(Backend& backend, const GpuMonitor* monitor, const TimingPlan& plan,
                     std::span<const Launch> launches) {
  const double deadline = now_seconds() + plan.budget_seconds;
  const BatchPlan batch_plan = try_out(backend, plan, launches);
  auto batch = std::make_unique<Batch>(backend, launches, batch_plan.size, batch_plan.graph);
  try {
    const std::function<Elapsed()> batches[] = {[&] { return batch->time(); }};
    const Warmup warmup = warm_up(plan, monitor, batches, deadline);
    Sampling sampling(plan, monitor, deadline, warmup.throttled);
    while (!sampling.enough()) {
      if (interrupted()) throw Interrupted();
      const double from = now_seconds();
      sampling.add(batch->time(), batch_plan.size, from);
    }
    Timing timing = sampling.finish();
    timing.warmup = warmup;
    timing.kernel_seconds += warmup.kernel_seconds;
    return timing;
  } catch (const DeviceLost&) {
    (void)batch.release();  // to destroy it would be to wait for the GPU
    throw;
  }
}

}  // namespace gemm::bench
