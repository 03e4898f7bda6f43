#include "bench/run/progress.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace gemm::bench {
namespace {

TEST(Progress, ExpectsTheMeanOfTheCasesSoFar) {
  Progress progress(4, 10);
  EXPECT_EQ(progress.seconds_left(11), std::nullopt);
  EXPECT_EQ(progress.share(11), 0);
  progress.end_case(14);
  progress.end_case(16);
  EXPECT_EQ(progress.seconds_left(16), 6);
  EXPECT_EQ(progress.share(16), 0.5);
  EXPECT_EQ(progress.seconds_left(17), 5) << "that of the case that runs passes";
  EXPECT_EQ(progress.seconds_left(99), 3) << "and is not below zero";
  for (const double now : {18.0, 20.0, 22.0}) progress.end_case(now);
  EXPECT_EQ(progress.seconds_left(22), 0);
  EXPECT_EQ(progress.done(), 5U);
  EXPECT_EQ(progress.total(), 5U) << "Google Benchmark called one more often";
}

}  // namespace
}  // namespace gemm::bench
