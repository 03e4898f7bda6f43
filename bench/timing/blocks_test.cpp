#include "bench/timing/blocks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/timing/versus.hpp"
#include "bench/verification/fill.hpp"

namespace gemm::bench {
namespace {

Block block(double launch_seconds, std::optional<double> watts) {
  return {.seconds = 2.5,
          .launch_seconds = launch_seconds,
          .launches = std::llround(2.5 / launch_seconds),
          .energy = {.watts = watts, .seconds = 2.4, .changes = 24, .why_not = watts ? "" : "odd"},
          .power_w = 650};
}

TEST(Estimate, HoldsTheMeanIn95PercentOfTheRuns) {
  constexpr std::uint64_t kRuns = 4000;
  for (const std::uint64_t count : {2U, 4U, 8U, 16U}) {
    std::uint64_t held = 0;
    for (std::uint64_t run = 0; run < kRuns; ++run) {
      std::vector<double> values;
      for (std::uint64_t i = 0; i < count; ++i)
        values.push_back(2 *
                         (1 + 0.003 * static_cast<double>(fill_value(Fill::normal, run, 100 + i))));
      const auto found = estimate(values);
      ASSERT_TRUE(found);
      held += found->low <= 2 && found->high >= 2 ? 1U : 0U;
    }
    EXPECT_NEAR(static_cast<double>(held) / kRuns, 0.95, 0.015) << count;
  }
  EXPECT_FALSE(estimate({1}));
  EXPECT_FALSE(estimate({}));
  const auto wide = estimate({1, 9});
  EXPECT_DOUBLE_EQ(wide->value, 3);
  EXPECT_GT(wide->low, 0);
}

TEST(Blocks, EnergyIsOfTheCounterOrOfTheReadingsAsAWhole) {
  EXPECT_DOUBLE_EQ(block(1e-3, 700).joules().value_or(0), 0.7);
  EXPECT_DOUBLE_EQ(block(1e-3, {}).joules().value_or(0), 0.65);
  EXPECT_DOUBLE_EQ(energy_of({block(1e-3, 700), block(1e-3, 690)}).watts.value_or(0), 695);
  EXPECT_EQ(energy_of({block(1e-3, 700), block(1e-3, 690)}).changes, 48);
  EXPECT_FALSE(energy_of({block(1e-3, 700), block(1e-3, {})}).watts);
  EXPECT_EQ(energy_of({block(1e-3, 700), block(1e-3, {})}).why_not, "odd");
  Block unread = block(1e-3, {});
  unread.power_w.reset();
  EXPECT_FALSE(unread.joules());
  EXPECT_FALSE(joules_of({block(1e-3, 700), unread}));
}

TEST(Blocks, AreComparedInPairs) {
  // Both slow down by 10 % and draw less.
  const Versus versus = compare_blocks({block(1.00e-3, 700), block(1.10e-3, 690)},
                                       {block(1.02e-3, 700), block(1.122e-3, 690)});
  EXPECT_NEAR(versus.ratio, 1.02, 1e-6);
  EXPECT_NEAR(versus.high - versus.low, 0, 1e-6);
  EXPECT_EQ(versus.samples, 2);
  ASSERT_TRUE(versus.energy_ratio);
  EXPECT_NEAR(versus.energy_ratio->value, 1 / 1.02, 1e-3);
  Block unread = block(1e-3, {});
  unread.power_w.reset();
  EXPECT_FALSE(compare_blocks({unread, unread}, {unread, unread}).energy_ratio);
}

}  // namespace
}  // namespace gemm::bench
