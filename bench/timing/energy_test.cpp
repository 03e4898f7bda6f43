#include "bench/timing/energy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace gemm::bench {
namespace {

// One every 20 ms, of a GPU whose counter is right each `step` seconds and stands still between.
std::vector<GpuReading> stretch(double seconds, double watts, double step,
                                const std::function<double(int)>& power) {
  std::vector<GpuReading> readings;
  for (int i = 0; i * 0.02 <= seconds + 1e-9; ++i)
    readings.push_back({.when = 100 + i * 0.02,
                        .power_w = power(i),
                        .joules = 1e6 + watts * std::floor(i * 0.02 / step + 1e-9) * step});
  return readings;
}

const auto kStuck = [](int) { return 442.0; };

// The power's sensor is slow and still has what ran before.
TEST(Energy, IsThatOfTheCounterWhateverThePowerReadingsSay) {
  for (const double step : {0.02, 0.05, 0.1}) {
    const Energy energy = energy_over(stretch(0.6, 700, step, kStuck));
    ASSERT_TRUE(energy.watts) << energy.why_not;
    EXPECT_NEAR(*energy.watts, 700, 0.02 * 700) << step;
    EXPECT_TRUE(energy.why_not.empty());
  }
}

TEST(Energy, OfAShortStretchIsNotMeasured) {
  const Energy energy = energy_over(stretch(0.3, 700, 0.02, [](int i) { return 700.0 + i; }));
  EXPECT_FALSE(energy.watts);
  EXPECT_NE(energy.why_not.find("0.5 s"), std::string::npos) << energy.why_not;
  EXPECT_FALSE(energy_over({}).watts);
  EXPECT_FALSE(energy_over({}).why_not.empty());
}

TEST(Energy, OfTooFewReadingsThatDifferIsNotMeasured) {
  EXPECT_FALSE(energy_over(stretch(0.6, 700, 0.4, kStuck)).watts);  // one step of the counter
  EXPECT_FALSE(energy_over(stretch(0.6, 0, 0.02, kStuck)).watts);   // it stands still
}

TEST(Energy, IsNotMeasuredWithoutACounter) {
  auto readings = stretch(0.6, 700, 0.02, [](int i) { return 690.0 + i % 3 * 10; });
  for (GpuReading& reading : readings) reading.joules.reset();
  EXPECT_FALSE(energy_over(readings).watts);
}

}  // namespace
}  // namespace gemm::bench
