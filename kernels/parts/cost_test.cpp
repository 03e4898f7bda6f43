// The model of a plan's time: how it follows the work and the device, and how many numbers it has.
#include "kernels/parts/cost.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "kernels/layout.hpp"
#include "kernels/plans.hpp"
#include "kernels/registered_kernels_test.hpp"

namespace gemm {
namespace {

const Work kWork{.traffic = {.dram = 1e6, .l2 = 1e7, .shared = 1e8}, .cycles = 1e4};

TEST(Cost, GrowsWithEachPartOfTheWork) {
  const double before = seconds(kWork, kHopper);
  double Work::*const parts[] = {&Work::cycles,   &Work::busiest, &Work::lines, &Work::packed,
                                 &Work::launches, &Work::tiles,   &Work::tail,  &Work::exchanges};
  for (double Work::*const part : parts) {
    Work more = kWork;
    more.*part = std::max(1e8, 10 * more.*part);
    more.traffic.dram += more.packed;
    EXPECT_GT(seconds(more, kHopper), before);
  }
  double Traffic::*const levels[] = {&Traffic::dram, &Traffic::l2, &Traffic::shared};
  for (double Traffic::*const level : levels) {
    Work more = kWork;
    more.traffic.*level *= 1000;
    EXPECT_GT(seconds(more, kHopper), before);
  }
}

// What limits a plan decides which peak of the device counts.
TEST(Cost, FollowsThePeaksOfTheDevice) {
  const Work reads{.traffic = {.dram = 1e10, .l2 = 1e9, .shared = 1}, .cycles = 1};
  const Work computes{.traffic = {.dram = 1, .l2 = 1, .shared = 1}, .cycles = 1e8};
  Device memory = kHopper, clock = kHopper;
  memory.dram_bytes_per_second *= 2;
  memory.l2_bytes_per_second *= 2;
  clock.sm_hz *= 2;
  EXPECT_NEAR(seconds(reads, memory) / seconds(reads, kHopper), 0.5, 0.02);
  EXPECT_NEAR(seconds(computes, clock) / seconds(computes, kHopper), 0.5, 0.02);
  EXPECT_NEAR(seconds(computes, memory) / seconds(computes, kHopper), 1, 0.02);
}

// Problems that no kernel was tuned on, of every precision and layout, and the largest.
TEST(Cost, OfEveryPlanIsATime) {
  const std::int64_t large = (std::int64_t{1} << 31) - 1;
  std::size_t plans = 0;
  for (const RegisteredKernel& kernel : registry()) {
    if (!kernel.work) continue;
    for (const Precision precision : kernel.precisions)
      for (const Layout layout : kernel.layouts)
        for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 4096, 4096},
                                      {77, 1000, 333},
                                      {5000, 320, 7},
                                      {4096, 4096, 4096},
                                      {16, large, large}}) {
          const Problem p{m, n, k, precision, layout};
          if (kernel.unsupported && kernel.unsupported(p, kHopper)) continue;
          const std::vector<Candidate> all = plans_of(kernel, p, kHopper);
          ASSERT_FALSE(all.empty()) << kernel.label();
          std::set<std::string> names;
          for (const Candidate& one : all) {
            const std::string name = kernel.label() + " " + one.plan;
            EXPECT_TRUE(names.insert(name).second) << name << " twice";
            const double time = seconds(one.work, kHopper);
            EXPECT_TRUE(std::isfinite(time) && time > kLaunch) << name;
            EXPECT_GE(one.work.busiest, 0.999) << name;
            EXPECT_GE(one.work.traffic.dram, 0.999 * bytes_minimum(p)) << name;
            ++plans;
          }
        }
  }
  if (registry().size() < 10) GTEST_SKIP() << "built without CUDA";
  EXPECT_GT(plans, 1000U);
}

}  // namespace
}  // namespace gemm
