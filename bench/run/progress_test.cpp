// The time that is left, against what then passes.
#include "bench/run/progress.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace gemm::bench {
namespace {

const RegisteredKernel kKernel;

Case of(Precision precision) { return {&kKernel, {64, 64, 64, precision}}; }

// Runs the cases, each for its seconds; the largest error of what was said to be left, over what
// was, from a quarter of the run on.
double largest_error(const std::vector<Case>& cases, const std::vector<double>& seconds) {
  double whole = 0, now = 0, largest = 0;
  for (const double each : seconds) whole += each;
  Progress progress(cases, 1);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    progress.begin(cases[i], now);
    if (const auto left = progress.seconds_left(now); left && now >= whole / 4)
      largest = std::max(largest, std::fabs(*left - (whole - now)) / (whole - now));
    now += seconds[i];
    progress.end(now);
  }
  EXPECT_EQ(progress.done(), cases.size());
  EXPECT_EQ(progress.seconds_left(now), 0);
  return largest;
}

TEST(Progress, OfEqualRowsIsRightFromTheFirstQuarterOn) {
  std::vector<double> seconds(40, 1.0);
  for (std::size_t i = 0; i < seconds.size(); ++i)
    seconds[i] += 0.05 * std::sin(3.0 * static_cast<double>(i));
  EXPECT_LT(largest_error(std::vector(40, of(Precision::f32)), seconds), 0.1);
}

TEST(Progress, TellsPrecisionsApart) {
  std::vector<Case> cases;
  std::vector<double> seconds;
  for (int i = 0; i < 40; ++i) {
    const bool quick = i % 2 == 0 || i > 30;  // the last rows are of one kind
    cases.push_back(of(quick ? Precision::f32 : Precision::bf16));
    seconds.push_back(quick ? 1 : 5);
  }
  EXPECT_LT(largest_error(cases, seconds), 0.1);
}

TEST(Progress, TellsSizesApart) {
  std::vector<Case> cases;
  std::vector<double> seconds;
  for (int i = 0; i < 40; ++i) {
    const bool small = i % 4 == 0 || i > 30;
    Case one = of(Precision::f32);
    if (!small) one.problem.m = one.problem.n = one.problem.k = 4096;
    cases.push_back(one);
    seconds.push_back(small ? 1 : 5);
  }
  EXPECT_LT(largest_error(cases, seconds), 0.1);
}

TEST(Progress, TakesTheNearestSizeForOneThatHasNotRun) {
  const auto cube = [](std::int64_t n, Precision precision) {
    return Case{&kKernel, {n, n, n, precision}};
  };
  Progress progress({cube(512, Precision::f32), cube(4096, Precision::f32),
                     cube(512, Precision::bf16), cube(8192, Precision::f32)},
                    1);
  double now = 0;
  for (const auto& [size, seconds] : {std::pair(512, 1.0), std::pair(4096, 6.0)}) {
    progress.begin(cube(size, Precision::f32), now);
    now += seconds;
    progress.end(now);
  }
  EXPECT_EQ(progress.seconds_left(now), 1 + 6);
  EXPECT_EQ(progress.share(now), 0.5);
}

TEST(Progress, CountsTheRowThatRunsDownAndNeverBelowZero) {
  Progress progress({of(Precision::f32)}, 2);
  EXPECT_EQ(progress.total(), 2U);
  progress.begin(of(Precision::f32), 0);
  EXPECT_EQ(progress.seconds_left(1), std::nullopt);
  progress.end(4);
  progress.begin(of(Precision::f32), 4);
  EXPECT_EQ(progress.seconds_left(5), 3);
  EXPECT_EQ(progress.seconds_left(99), 0);
  progress.end(99);
  EXPECT_EQ(progress.done(), 2U);
}

}  // namespace
}  // namespace gemm::bench
