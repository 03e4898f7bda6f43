#include "bench/timing/versus.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/verification/fill.hpp"

namespace gemm::bench {
namespace {

// Seconds that drift together, as two kernels in one power state do.
std::vector<double> drifting(double seconds, std::uint64_t seed, std::size_t count) {
  std::vector<double> samples;
  for (std::size_t i = 0; i < count; ++i)
    samples.push_back(seconds * (1 + 0.1 * static_cast<double>(i) / static_cast<double>(count)) *
                      (1 + 0.002 * static_cast<double>(fill_value(Fill::normal, seed, i))));
  return samples;
}

TEST(Versus, FindsTheRatioInItsInterval) {
  const Versus versus = compare_pairs(drifting(1.00, 1, 100), drifting(1.02, 2, 100));
  EXPECT_NEAR(versus.ratio, 1.02, 0.005);
  EXPECT_LE(versus.low, versus.ratio);
  EXPECT_GE(versus.high, versus.ratio);
  EXPECT_GT(versus.low, 1);  // told apart, though either drifts by 10 %
  EXPECT_EQ(versus.samples, 100);
}

TEST(Versus, EqualCodeIsNotToldApart) {
  int apart = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Versus versus = compare_pairs(drifting(1, 2 * seed, 60), drifting(1, 2 * seed + 1, 60));
    apart += versus.low > 1 || versus.high < 1 ? 1 : 0;
  }
  EXPECT_LE(apart, 6);  // 5 % of 40 are 2
}

// The share of intervals that hold the true ratio, 1; each kernel has AR(1) noise of its own.
double coverage(double correlation, std::size_t count) {
  constexpr std::uint64_t kRuns = 2000;
  int covered = 0;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    std::vector<double> sides[2];
    for (std::uint64_t side = 0; side < 2; ++side) {
      const auto noise = [&](std::size_t i) {
        return static_cast<double>(fill_value(Fill::normal, 5000 + 2 * run + side, i));
      };
      double x = noise(0);
      for (std::size_t i = 1; i <= count; ++i) {
        x = correlation * x + std::sqrt(1 - correlation * correlation) * noise(i);
        sides[side].push_back(1 + 0.002 * x);
      }
    }
    const Versus versus = compare_pairs(sides[0], sides[1]);
    covered += versus.low <= 1 && versus.high >= 1 ? 1 : 0;
  }
  return static_cast<double>(covered) / static_cast<double>(kRuns);
}

TEST(Versus, TheIntervalHoldsTheRatio) {
  EXPECT_GE(coverage(0, 40), 0.95);
  EXPECT_GE(coverage(0.6, 40), 0.93);
  EXPECT_GE(coverage(0.8, 40), 0.90);
  EXPECT_GE(coverage(0.9, 40), 0.85);
  EXPECT_GE(coverage(0.8, 400), 0.95);
}

TEST(Versus, OfOnePairThereIsNoInterval) {
  const Versus versus = compare_pairs({2}, {1});
  EXPECT_EQ(versus.ratio, 0.5);
  EXPECT_EQ(versus.low, 0.5);
  EXPECT_EQ(versus.high, 0.5);
}

}  // namespace
}  // namespace gemm::bench
