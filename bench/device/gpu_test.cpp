// The GPU's state against a library that answers as NVML would (fake_nvml_test.cpp), and on the
// GPU against NVML itself.
#include "bench/device/gpu.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/base/clock.hpp"
#include "bench/device/backend.hpp"
#include "bench/timing/timing.hpp"

namespace gemm::bench {
namespace {

constexpr char kGood[] = "0000:01:00.0", kWithoutInstantPower[] = "0000:02:00.0",
               kSoonLost[] = "0000:03:00.0", kForbidden[] = "0000:04:00.0",
               kLowered[] = "0000:05:00.0", kLost[] = "0000:06:00.0", kUnknown[] = "0000:ff:00.0";

std::unique_ptr<Gpu> fake(const char* bus_id, const char* library = FAKE_NVML) {
  std::string why_not;
  auto gpu = open_nvml(bus_id, why_not, library);
  EXPECT_NE(gpu, nullptr) << why_not;
  return gpu;
}

std::string why_not(const char* bus_id, const char* library = FAKE_NVML) {
  std::string why;
  EXPECT_EQ(open_nvml(bus_id, why, library), nullptr);
  return why;
}

TEST(Nvml, TellsFactsAndReadingsInSi) {
  const auto gpu = fake(kGood);
  const GpuFacts facts = gpu->facts();
  EXPECT_EQ(facts.driver, "580.95.05");
  EXPECT_EQ(facts.power_limit_w, 700);
  EXPECT_EQ(facts.sm_hz_max, 1980e6);
  EXPECT_FALSE(facts.application_clocks_set);

  const double before = now_seconds();
  const GpuReading reading = gpu->read();
  EXPECT_LE(before, reading.when);
  EXPECT_GE(now_seconds(), reading.when);
  EXPECT_EQ(reading.sm_hz, 1560e6);
  EXPECT_EQ(reading.memory_hz, 3201e6);
  EXPECT_EQ(reading.power_w, 693.25);  // of the moment, not 412.5 W
  EXPECT_DOUBLE_EQ(reading.joules.value_or(0), 123456789.012);
  EXPECT_EQ(reading.temperature_c, 63);
  EXPECT_EQ(reading.reasons, 0x4U);
}

// What another GPU or an old library tells otherwise.
TEST(Nvml, MakesDoWithWhatThereIs) {
  EXPECT_EQ(fake(kWithoutInstantPower)->read().power_w, 412.5);  // the mean of a second
  EXPECT_TRUE(fake(kLowered)->facts().application_clocks_set);
  const auto old = fake(kLowered, FAKE_NVML_OLD);
  EXPECT_FALSE(old->facts().application_clocks_set);
  const GpuReading reading = old->read();
  EXPECT_EQ(reading.sm_hz, 1560e6);
  EXPECT_EQ(reading.power_w, 412.5);
  EXPECT_EQ(reading.temperature_c, 61);
  EXPECT_EQ(reading.reasons, 0x8U);
  const GpuHealth health = old->health();
  EXPECT_EQ(health.sm_hz, 1560e6);
  EXPECT_FALSE(health.ecc_corrected || health.rows_remapped || health.remapping_pending);
  EXPECT_TRUE(health.xids.empty());
  EXPECT_FALSE(health.other_processes);
}

TEST(Nvml, TellsTheHealthOfAGpu) {
  const auto gpu = fake(kGood);
  GpuHealth health = gpu->health();
  EXPECT_EQ(health.sm_hz, 1560e6);
  EXPECT_EQ(health.temperature_c, 63);
  EXPECT_EQ(health.reasons, std::vector<std::string>{"power cap"});
  EXPECT_EQ(health.ecc_corrected, 5U);
  EXPECT_EQ(health.ecc_uncorrected, 2U);
  EXPECT_EQ(health.rows_remapped, 4U);
  EXPECT_EQ(health.remapping_pending, true);
  EXPECT_EQ(health.remapping_failed, false);
  EXPECT_EQ(health.xids, (std::vector<std::uint64_t>{48, 79}));
  EXPECT_EQ(health.other_processes, 2U);     // of three, one is this
  EXPECT_EQ(gpu->health().xids.size(), 2U);  // not told twice, and not forgotten
}

TEST(Nvml, LeavesTheValuesOfALostGpuEmpty) {
  const auto gpu = fake(kSoonLost);
  EXPECT_EQ(gpu->read().sm_hz, 1560e6);
  const GpuReading torn = gpu->read();  // lost in the middle
  EXPECT_TRUE(torn.sm_hz);
  EXPECT_FALSE(torn.reasons);
  for (int i = 0; i < 3; ++i) {
    const GpuReading reading = gpu->read();
    EXPECT_GT(reading.when, torn.when);
    EXPECT_FALSE(reading.sm_hz || reading.memory_hz || reading.power_w || reading.temperature_c ||
                 reading.reasons);
  }
  const GpuFacts facts = gpu->facts();
  EXPECT_FALSE(facts.power_limit_w || facts.sm_hz_max);
}

TEST(Nvml, SaysWhyThereIsNoGpu) {
  const struct {
    const char *bus_id, *library, *status, *why;
  } cases[] = {
      {kGood, "libnvidia-ml.so.77", nullptr, "NVML is not installed (libnvidia-ml.so.77)"},
      {kGood, "libm.so.6", nullptr, "NVML is too old: libm.so.6 has no nvmlInit_v2"},
      {kUnknown, FAKE_NVML, nullptr, "NVML does not know the GPU 0000:ff:00.0"},
      {kForbidden, FAKE_NVML, nullptr, "NVML: no permission"},
      {kLost, FAKE_NVML, nullptr, "NVML: GPU is lost"},
      {kGood, FAKE_NVML, "4", "NVML: no permission"},
      {kGood, FAKE_NVML, "9", "NVML: the driver is not loaded"},
      {kGood, FAKE_NVML, "999", "NVML: Unknown Error"},
  };
  for (const auto& [bus_id, library, status, why] : cases) {
    if (status != nullptr) setenv("FAKE_NVML_INIT", status, 1);
    EXPECT_EQ(why_not(bus_id, library), why);
    unsetenv("FAKE_NVML_INIT");
  }
}

// The library ends the process if it goes without having been shut down.
TEST(Nvml, IsShutDownAndUnloaded) {
  const auto loaded = [] { return dlopen(FAKE_NVML, RTLD_NOW | RTLD_NOLOAD) != nullptr; };
  auto gpu = fake(kGood);
  gpu.reset();
  why_not(kForbidden);
  EXPECT_FALSE(loaded());
}

GpuReading reading(double when, double sm_hz, std::optional<std::uint64_t> reasons) {
  return {.when = when, .sm_hz = sm_hz, .reasons = reasons};
}

TEST(GpuState, SumsUpWhatTheReadingsSay) {
  const GpuReading readings[] = {
      reading(1, 1500e6, 0x4), reading(2, 1600e6, 0x4 | 0x20), reading(3, 1900e6, 0x1),
      reading(4, 1700e6, 0x2), reading(5, 1000e6, {}),  // does not say why
  };
  const GpuState state = summarize(readings);
  EXPECT_EQ(state.readings, 5);
  ASSERT_TRUE(state.sm_hz);
  EXPECT_EQ(state.sm_hz->min, 1000e6);
  EXPECT_EQ(state.sm_hz->median, 1600e6);
  EXPECT_EQ(state.sm_hz->max, 1900e6);
  EXPECT_FALSE(state.power_w);
  EXPECT_EQ(state.throttled_share, 0.5);
  const std::vector<std::pair<std::string, double>> reasons = {
      {"power cap", 0.5}, {"clocks set by user", 0.25}, {"thermal slowdown (software)", 0.25}};
  EXPECT_EQ(state.reasons, reasons);
}

TEST(GpuState, NamesEveryReason) {
  const GpuReading all[] = {reading(1, 1e9, 0x1ff | 0x4000)};
  std::string names;
  for (const auto& [name, share] : summarize(all).reasons) names += name + ", ";
  EXPECT_EQ(names,
            "clocks set by user, power cap, hardware slowdown, sync boost, thermal slowdown "
            "(software), thermal slowdown (hardware), power brake, display, other, ");
}

// Nothing known is not the same as nothing throttled.
TEST(GpuState, KnowsNothingWithoutReadings) {
  const GpuState state = summarize({});
  EXPECT_EQ(state.readings, 0);
  EXPECT_FALSE(state.sm_hz || state.throttled_share);
  const GpuReading silent[] = {reading(1, 1e9, {})};
  EXPECT_FALSE(summarize(silent).throttled_share);
  const GpuReading idle[] = {reading(1, 1e9, 0x1)};
  EXPECT_EQ(summarize(idle).throttled_share, 0);
  EXPECT_TRUE(summarize(idle).reasons.empty());
}

TEST(GpuState, MedianOfAnEvenNumberIsBetweenTheTwoInTheMiddle) {
  EXPECT_EQ(range_of({4, 1, 3, 2})->median, 2.5);
  EXPECT_EQ(range_of({7})->median, 7);
  EXPECT_FALSE(range_of({}));
}

// Counts how often it is read; a reading takes 4 ms.
class SlowGpu : public Gpu {
 public:
  explicit SlowGpu(std::atomic<int>& reads) : reads_(reads) {}
  GpuFacts facts() override { return {.driver = "1.2"}; }
  GpuReading read() override {
    const double start = now_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
    ++reads_;
    return {.when = (start + now_seconds()) / 2, .sm_hz = 1e9 + reads_};
  }

 private:
  std::atomic<int>& reads_;
};

void sleep_seconds(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

TEST(GpuMonitor, ReadsAtItsInterval) {
  std::atomic<int> reads = 0;
  const double start = now_seconds();
  GpuMonitor monitor(std::make_unique<SlowGpu>(reads), 0.01);
  EXPECT_EQ(monitor.facts().driver, "1.2");
  sleep_seconds(0.5);
  const double end = now_seconds();
  const std::vector<GpuReading> all = monitor.between(start, end);
  EXPECT_LE(all.size(), (end - start) / 0.01 + 1);
  ASSERT_GE(all.size(), 10U);
  EXPECT_GE(monitor.read_seconds().value_or(0), 4e-3);

  // The time that a reading takes is not added to the interval.
  std::vector<double> off;
  for (std::size_t i = 1; i < all.size(); ++i)
    off.push_back(std::abs(std::remainder(all[i].when - all[i - 1].when, 0.01)));
  EXPECT_LT(range_of(off)->min, 2e-3);  // a busy host wakes late, but not each time

  const std::vector<GpuReading> some = monitor.between(all[1].when, all[2].when);  // both included
  ASSERT_EQ(some.size(), 2U);
  EXPECT_EQ(some[0].sm_hz, all[1].sm_hz);
  EXPECT_EQ(some[1].sm_hz, all[2].sm_hz);
  EXPECT_TRUE(monitor.between(all[2].when, all[1].when).empty());
  EXPECT_TRUE(monitor.between(0, all[0].when - 1e-9).empty());
}

TEST(GpuMonitor, ReadsNothingWhilePaused) {
  std::atomic<int> reads = 0;
  const auto reads_on = [&](int from) {
    for (int tries = 0; tries < 60'000 && reads <= from; ++tries) sleep_seconds(1e-3);
    return reads > from;
  };
  GpuMonitor monitor(std::make_unique<SlowGpu>(reads), 0.003);
  EXPECT_TRUE(reads_on(0));
  monitor.pause(true);
  const int before = reads;
  sleep_seconds(0.05);
  EXPECT_EQ(reads, before);
  monitor.pause(false);
  EXPECT_TRUE(reads_on(before));
}

TEST(GpuMonitor, EndsAtOnceAndRefusesAnIntervalOfNothing) {
  std::atomic<int> reads = 0;
  for (const bool paused : {false, true}) {
    auto monitor = std::make_unique<GpuMonitor>(std::make_unique<SlowGpu>(reads), 3600);
    monitor->pause(paused);
    const double start = now_seconds();
    monitor.reset();
    EXPECT_LT(now_seconds() - start, 60);
  }
  for (const double seconds : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(GpuMonitor(fake(kGood), seconds), std::invalid_argument);
}

// A GPU that is slower than the interval is not read without a rest.
TEST(GpuMonitor, DoesNotMakeUpForWhatItMissed) {
  std::atomic<int> reads = 0;
  const double start = now_seconds();
  GpuMonitor monitor(std::make_unique<SlowGpu>(reads), 0.003);
  sleep_seconds(0.3);
  monitor.pause(true);
  EXPECT_LE(reads, (now_seconds() - start) / 0.006 + 1);  // every other deadline
}

TEST(GpuMonitor, GoesOnWithAGpuThatIsLost) {
  GpuMonitor monitor(fake(kSoonLost), 0.001);
  sleep_seconds(0.1);
  const std::vector<GpuReading> all = monitor.between(0, now_seconds());
  ASSERT_GE(all.size(), 3U);
  EXPECT_FALSE(all.back().sm_hz);
  const GpuState last = summarize(std::span(all).last(1));
  EXPECT_EQ(last.readings, 1);
  EXPECT_FALSE(last.sm_hz || last.throttled_share);
}

TEST(Nvml, TellsPlausibleValuesOnTheGpu) {
  std::string why;
  const auto backend = make_cuda_backend(0, why);
  if (backend == nullptr) GTEST_SKIP() << why;
  ASSERT_TRUE(backend->device().pci_bus_id);
  const auto gpu = open_nvml(*backend->device().pci_bus_id, why);
  if (gpu == nullptr) GTEST_SKIP() << why;
  const GpuFacts facts = gpu->facts();
  EXPECT_TRUE(facts.driver);
  const GpuReading reading = gpu->read();
  const auto plausible = [](std::optional<double> value, double low, double high) {
    return !value || (*value > low && *value < high);
  };
  EXPECT_TRUE(plausible(reading.sm_hz, 100e6, 1.1 * facts.sm_hz_max.value_or(10e9)));
  EXPECT_TRUE(plausible(reading.memory_hz, 100e6, 50e9));
  EXPECT_TRUE(plausible(reading.power_w, 10, 2 * facts.power_limit_w.value_or(5e3)));
  EXPECT_TRUE(plausible(reading.temperature_c, 5, 120));
  if (!reading.sm_hz && !reading.power_w) GTEST_SKIP() << "NVML reports neither clock nor power";
}

}  // namespace
}  // namespace gemm::bench
