// The timing plan: when a GPU is in steady state and a median certain enough.
#include "bench/timing/timing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "bench/base/clock.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/verification/fill.hpp"

namespace gemm::bench {
namespace {

// Takes as long as it says, and its clock runs as the test wants.
class FakeBatch {
 public:
  FakeBatch(double seconds, std::function<std::optional<double>()> sm_hz)
      : seconds_(seconds), sm_hz_(std::move(sm_hz)) {}
  virtual ~FakeBatch() = default;
  virtual Elapsed time() {
    ++times;
    const double start = now_seconds();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
    longest = std::max<double>(longest, now_seconds() - start);
    return {seconds_, sm_hz_()};
  }

  std::atomic<int> times = 0;
  std::atomic<double> longest = 0;  // of them, on a host that may be busy

 private:
  double seconds_;
  std::function<std::optional<double>()> sm_hz_;
};

// Draws as much power as the test wants.
class FakeGpu : public Gpu {
 public:
  explicit FakeGpu(std::function<GpuReading()> reading, std::optional<double> sm_hz_max = {})
      : reading_(std::move(reading)), sm_hz_max_(sm_hz_max) {}
  GpuFacts facts() override { return {.sm_hz_max = sm_hz_max_}; }
  GpuReading read() override {
    GpuReading reading = reading_();
    reading.when = now_seconds();
    return reading;
  }

 private:
  std::function<GpuReading()> reading_;
  std::optional<double> sm_hz_max_;
};

Warmup warm_up_one(const TimingPlan& plan, const GpuMonitor* monitor, FakeBatch& batch) {
  const std::function<Elapsed()> batches[] = {[&] { return batch.time(); }};
  return warm_up(plan, monitor, batches, now_seconds() + plan.budget_seconds);
}

Timing sample(const TimingPlan& plan, FakeBatch& batch, const GpuMonitor* monitor = nullptr) {
  Sampling sampling(plan, monitor, now_seconds() + plan.budget_seconds);
  while (!sampling.enough()) {
    if (plan.state == State::burst) idle(plan.cooldown_seconds);
    const double from = now_seconds();
    sampling.add(batch.time(), 1, from);
  }
  return sampling.finish();
}

TEST(MedianInterval, ShrinksWithTheSquareRootOfTheCount) {
  const auto interval = [](std::uint64_t count) {
    std::vector<double> samples;
    for (std::uint64_t i = 0; i < count; ++i)
      samples.push_back(1 + 0.01 * static_cast<double>(fill_value(Fill::normal, 1, i)));
    return median_interval(samples);
  };
  // The standard error of the median of n normal samples is 1.2533/sqrt(n).
  for (const std::uint64_t count : {100U, 400U, 1600U})
    EXPECT_NEAR(interval(count), 2 * 1.96 * 1.2533 * 0.01 / std::sqrt(count),
                0.5 * 0.0491 / std::sqrt(count))
        << count;
  EXPECT_EQ(median_interval({1, 1, 1, 1, 1, 1}), 0);
  EXPECT_TRUE(std::isinf(median_interval({1, 1, 1, 1, 1})));
  EXPECT_TRUE(std::isinf(median_interval({})));
}

// The true median is 1 and the samples are 1 + 0.01 x, where x is an AR(1) process of standard
// deviation 1: of each seed's interval only the width is known, so that its median must be within
// the true one and half of that, which a normal median's interval is symmetric enough for.
double coverage(double correlation, std::uint64_t count) {
  constexpr std::uint64_t kRuns = 2000;
  std::uint64_t covered = 0;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    const auto noise = [&](std::uint64_t i) {
      return static_cast<double>(fill_value(Fill::normal, 10 + run, i));
    };
    std::vector<double> samples;
    double x = noise(0);
    for (std::uint64_t i = 1; i <= count; ++i) {
      x = correlation * x + std::sqrt(1 - correlation * correlation) * noise(i);
      samples.push_back(1 + 0.01 * x);
    }
    Timing timing;
    timing.samples_seconds = samples;
    const double median = timing.quantile_seconds(0.5);
    covered += std::fabs(median - 1) <= median_interval(samples) * median / 2 ? 1U : 0U;
  }
  return static_cast<double>(covered) / static_cast<double>(kRuns);
}

TEST(MedianInterval, CoversTheMedianIn95PercentOfTheRuns) {
  for (const std::uint64_t count : {50U, 400U}) EXPECT_NEAR(coverage(0, count), 0.95, 0.025);
  for (const std::uint64_t count : {100U, 400U}) EXPECT_NEAR(coverage(0.8, count), 0.955, 0.03);
  EXPECT_GE(coverage(0, 6), 0.93) << "of a few samples the whole range counts";
}

// As many samples as when the target was 0.5 % for the quartile interval.
TEST(MedianInterval, TheDefaultTargetIsThatOfTheQuartileIntervalTimesTheRatioOfTheQuantiles) {
  EXPECT_NEAR(TimingPlan().target, 0.005 * 1.96 / 0.6745, 0.001);
}

// What swings slowly is sampled often without being known better.
TEST(MedianInterval, IsNotFooledBySlowSwings) {
  std::vector<double> quick, slow;
  for (int i = 0; i < 400; ++i) {
    quick.push_back(1 + 0.01 * static_cast<double>(fill_value(Fill::uniform, 3, i)));
    slow.push_back(1 + 0.01 * std::sin(i * 2 * 3.14159265 / 200));
  }
  EXPECT_GT(effective_count(quick), 200);
  EXPECT_LT(effective_count(slow), 20);
  EXPECT_GT(median_interval(slow), 3 * median_interval(quick));
  EXPECT_EQ(effective_count({1, 1, 1, 1}), 4);
}

// NVML still gives the reason of what ran before.
TEST(Throttling, IsThatOfSamplesInWhichTheClockFell) {
  TimingPlan plan;
  plan.samples = 20;
  for (const double sm_hz : {1974e6, 1400e6}) {
    const bool fell = sm_hz < 1900e6;
    GpuMonitor monitor(std::make_unique<FakeGpu>(
                           [=] { return GpuReading{.sm_hz = sm_hz, .reasons = 0x4}; }, 1980e6),
                       0.001);
    FakeBatch batch(0.005, [=] { return sm_hz; });
    EXPECT_EQ(warm_up_one(plan, &monitor, batch).throttled, fell);
    const Timing timing = sample(plan, batch, &monitor);
    EXPECT_EQ(timing.gpu.throttled_share, fell ? 1.0 : 0.0);
    EXPECT_EQ(timing.samples_throttled, std::vector<bool>(20, fell));
    EXPECT_EQ(timing.gpu.reasons.empty(), !fell);
  }
}

// Of the settled part of a warm-up that has the GPU for itself.
TEST(WarmUp, MeasuresTheEnergyOfOneKernel) {
  const double start = now_seconds();
  GpuMonitor monitor(std::make_unique<FakeGpu>([=] {
                       const double passed = now_seconds() - start;
                       return GpuReading{.power_w = 500, .joules = 650 * passed};
                     }),
                     0.01);
  FakeBatch batch(0.005, [] { return 1.5e9; });
  const Energy alone = warm_up_one(TimingPlan{}, &monitor, batch).energy;
  ASSERT_TRUE(alone.watts) << alone.why_not;
  EXPECT_NEAR(*alone.watts, 650, 10);
  EXPECT_GE(alone.seconds, kShortestStretch);

  TimingPlan brief;
  brief.warmup_seconds = 0.1;
  const Energy unsettled = warm_up_one(brief, &monitor, batch).energy;
  EXPECT_FALSE(unsettled.watts);
  EXPECT_FALSE(unsettled.why_not.empty());

  const std::function<Elapsed()> one = [&] { return batch.time(); }, both[] = {one, one};
  EXPECT_FALSE(warm_up(TimingPlan{}, &monitor, both, now_seconds() + 10).energy.watts);
}

TEST(WarmUp, EndsOnceClockAndPowerAreFlat) {
  const double start = now_seconds();
  const auto falling_until = [=](double seconds, double from, double to) {
    const double passed = std::min(1.0, (now_seconds() - start) / seconds);
    return from + passed * (to - from);
  };
  GpuMonitor monitor(std::make_unique<FakeGpu>(
                         [=] { return GpuReading{.power_w = falling_until(0.7, 300, 600)}; }),
                     0.01);
  FakeBatch batch(0.005, [=] { return falling_until(0.3, 1.9e9, 1.5e9); });
  const Warmup warmup = warm_up_one({}, &monitor, batch);
  EXPECT_TRUE(warmup.settled);
  EXPECT_EQ(warmup.watched, "SM clock and power");
  EXPECT_GT(warmup.seconds, 0.7);
  EXPECT_LT(warmup.seconds, TimingPlan().warmup_seconds);
  EXPECT_NEAR(warmup.kernel_seconds, 0.005 * batch.times, 1e-9);
}

// A clock that rises by 1 % a batch, is flat, or is not known.
TEST(WarmUp, EndsAtItsLimitOrInSteadyStateAndSaysWhich) {
  double clock = 1e9;
  const auto rising = [&]() -> std::optional<double> { return clock *= 1.01; };
  const auto flat = []() -> std::optional<double> { return 1.5e9; };
  const auto unknown = []() -> std::optional<double> { return std::nullopt; };
  TimingPlan usual, limited, half;
  limited.warmup_seconds = 0.7;
  half.budget_seconds = 0.8;  // half of the time is left to the samples
  const struct {
    const TimingPlan& plan;
    double batch_seconds;
    std::function<std::optional<double>()> sm_hz;
    bool settled;
    const char* watched;
    double seconds, tolerance;
  } cases[] = {
      {limited, 0.005, rising, false, "SM clock", 0.7, 0.2},
      {half, 0.005, rising, false, "SM clock", 0.4, 0.2},
      {usual, 0.5, flat, true, "SM clock", 1.6, 0.5},  // launches longer than the window
      {usual, 0.005, unknown, false, "", 0.25, 0.2},
  };
  for (const auto& one : cases) {
    FakeBatch batch(one.batch_seconds, one.sm_hz);
    const Warmup warmup = warm_up_one(one.plan, nullptr, batch);
    EXPECT_EQ(warmup.settled, one.settled);
    EXPECT_EQ(warmup.watched, one.watched);
    EXPECT_NEAR(warmup.seconds, one.seconds, one.tolerance + batch.longest);
  }
}

// At the power cap half a second is too short to distinguish an oscillation from steady state.
TEST(WarmUp, LooksLongerAtAThrottledGpu) {
  GpuMonitor monitor(
      std::make_unique<FakeGpu>([] { return GpuReading{.power_w = 700, .reasons = 0x4}; }), 0.01);
  FakeBatch batch(0.005, [] { return 1.5e9; });
  const Warmup warmup = warm_up_one({}, &monitor, batch);
  EXPECT_TRUE(warmup.settled);
  EXPECT_TRUE(warmup.throttled);
  EXPECT_GE(warmup.seconds, kWarmupAtCap);
  TimingPlan brief;
  brief.warmup_seconds = 2.5;  // as asked for, though clocks settle later
  const Warmup asked = warm_up_one(brief, &monitor, batch);
  EXPECT_TRUE(asked.settled);
  EXPECT_NEAR(asked.seconds, 2.5, 0.4 + batch.longest);
}

TEST(Sampling, EndsWhenTheMedianIsKnown) {
  FakeBatch batch(0.001, [] { return 1.5e9; });
  TimingPlan plan;
  plan.sampling_seconds = 0.05;
  const Timing timing = sample(plan, batch);
  EXPECT_TRUE(timing.converged);
  EXPECT_GE(timing.samples_seconds.size(), 6U);
  EXPECT_LT(timing.samples_seconds.size(), 60U);
  EXPECT_EQ(timing.samples_sm_hz.size(), timing.samples_seconds.size());
  EXPECT_EQ(timing.median_sm_hz(), 1.5e9);
}

// At 0 s the samples begin, and at 10 s the row's budget is spent.
TEST(StopRule, EndsWhenTheMedianIsKnownOrTheTimeIsOver) {
  TimingPlan settled, seven, burst;
  settled.sampling_seconds = 1;
  settled.longest_sampling_seconds = 3;
  settled.target = 0.01;
  seven.samples = 7;
  burst.state = State::burst;
  burst.target = 0.01;
  constexpr bool kThrottled = true;
  const struct {
    const TimingPlan& plan;
    bool throttled;
    std::int64_t taken;
    double now, interval;
    bool enough;
  } cases[] = {
      {settled, false, 50, 0.9, 0.001, false},  // too early
      {settled, false, 50, 1.1, 0.001, true},
      {settled, false, 50, 1.1, 0.02, false},
      {settled, false, 5, 1.1, 0.001, false},  // five samples have no interval
      {settled, false, 50, 3.1, 0.02, true},   // the longest time
      {settled, false, 2, 9, 0.02, false},
      {settled, false, 3, 9, 0.02, true},
      {settled, kThrottled, 50, 1.1, 0.001, false},  // not two periods of the swings
      {settled, kThrottled, 50, 2.1, 0.001, true},
      {seven, false, 6, 9, 0.001, false},  // as many as were asked for
      {seven, false, 7, 0.1, 1, true},
      {seven, false, 1, 10.1, 1, true},
      {seven, false, 0, 10.1, 1, false},  // one in any case
      {burst, false, 6, 0.1, 0.001, true},
      {burst, false, 50, 9, 0.02, false},
      {burst, false, 5, 10.1, 0.02, false},  // fewer bursts say nothing
      {burst, false, 6, 10.1, 0.02, true},
  };
  for (const auto& one : cases) {
    StopRule rule(one.plan, 0, 10, one.throttled);
    EXPECT_EQ(rule.enough(one.taken, one.now, [&] { return one.interval; }), one.enough)
        << one.taken << " samples at " << one.now << " s, interval " << one.interval;
    EXPECT_EQ(rule.late(one.now), one.now >= 10);
  }
}

TEST(StopRule, LooksAtTheIntervalNowAndThen) {
  TimingPlan plan;
  plan.sampling_seconds = 0;
  StopRule rule(plan, 0, 10, false);
  int looks = 0;
  for (int i = 10; i < 20; ++i) {
    EXPECT_FALSE(rule.enough(i, 0.01 * i, [&] {
      ++looks;
      return 1.0;
    }));
  }
  EXPECT_EQ(looks, 2);
}

TEST(BatchPlan, IsAsLongAsASampleAndOfShortKernelsOfAGpuAGraphOfWholeRounds) {
  const TimingPlan usual{.sample_seconds = 0.005}, burst{.state = State::burst};
  const auto gpu = Device::Kind::gpu, cpu = Device::Kind::cpu;
  const struct {
    const TimingPlan& plan;
    double seconds;
    Device::Kind kind;
    std::int64_t size;
    bool graph;
  } cases[] = {
      {usual, 1e-5, gpu, 17 * 31, true},
      {usual, 1e-4, gpu, 50, false},
      {usual, 1e-5, cpu, 500, false},
      {burst, 1e-3, gpu, burst.burst_launches, false},
      {burst, 1e-5, gpu, burst.burst_launches, true},
  };
  for (const auto& [plan, seconds, kind, size, graph] : cases) {
    const BatchPlan found = plan_batch(plan, seconds, 31, kind);
    EXPECT_EQ(found.size, size) << seconds;
    EXPECT_EQ(found.graph, graph) << seconds;
  }
}

TEST(Sampling, LabelsThrottledSamplesAndKeepsThem) {
  constexpr int kSamples = 60;
  FakeBatch batch(0.005, [] { return 1.5e9; });
  GpuMonitor monitor(std::make_unique<FakeGpu>([&] {
                       const bool capped = batch.times > kSamples / 2;
                       return GpuReading{.sm_hz = 1.5e9, .reasons = capped ? 0x4U : 0U};
                     }),
                     0.005);
  TimingPlan plan;
  plan.samples = kSamples;
  const Timing timing = sample(plan, batch, &monitor);
  ASSERT_EQ(timing.samples_throttled.size(), timing.samples_seconds.size());
  EXPECT_FALSE(timing.samples_throttled.front());
  EXPECT_TRUE(timing.samples_throttled.back());
  EXPECT_NEAR(timing.gpu.throttled_share.value_or(0), 0.5, 0.2);
  ASSERT_EQ(timing.gpu.reasons.size(), 1U);
  EXPECT_EQ(timing.gpu.reasons[0].first, "power cap");
}

TEST(Sampling, ABatchThatTakesNoTimeIsAnError) {
  FakeBatch batch(0, [] { return std::nullopt; });
  EXPECT_THROW(sample({}, batch), std::runtime_error);
}

}  // namespace
}  // namespace gemm::bench
