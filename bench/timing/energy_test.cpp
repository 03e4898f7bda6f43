#include "bench/timing/energy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace gemm::bench {
namespace {

// One every 20 ms, of a GPU whose counter is right each `step` seconds and stands still between.
// The power's sensor is slow and still has what ran before.
std::vector<GpuReading> stretch(double seconds, double watts, double step) {
  std::vector<GpuReading> readings;
  for (int i = 0; i * 0.02 <= seconds + 1e-9; ++i)
    readings.push_back({.when = 100 + i * 0.02,
                        .power_w = 442,
                        .joules = 1e6 + watts * std::floor(i * 0.02 / step + 1e-9) * step});
  return readings;
}

TEST(Energy, IsThatOfTheCounterWhateverThePowerReadingsSay) {
  for (const double step : {0.02, 0.05, 0.1}) {
    const Energy energy = energy_over(stretch(0.6, 700, step));
    ASSERT_TRUE(energy.watts) << energy.why_not;
    EXPECT_NEAR(*energy.watts, 700, 0.02 * 700) << step;
    EXPECT_TRUE(energy.why_not.empty());
  }
}

TEST(Energy, OfAShortStretchOrTooFewChangesIsNotMeasured) {
  auto without_counter = stretch(0.6, 700, 0.02);
  for (GpuReading& reading : without_counter) reading.joules.reset();
  const std::pair<std::vector<GpuReading>, const char*> cases[] = {
      {{}, "0.5 s"},
      {stretch(0.3, 700, 0.02), "0.5 s"},
      {stretch(0.6, 700, 0.4), "changed 1 times"},
      {stretch(0.75, 700, 0.2), "changed 3 times"},
      {stretch(0.6, 0, 0.02), "changed 0 times"},
      {without_counter, "changed 0 times"}};
  for (const auto& [readings, why] : cases) {
    const Energy energy = energy_over(readings);
    EXPECT_FALSE(energy.watts);
    EXPECT_NE(energy.why_not.find(why), std::string::npos) << energy.why_not;
  }
}

}  // namespace
}  // namespace gemm::bench
