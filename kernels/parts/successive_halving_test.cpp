// Choices on a simulated GPU at its power limit: a kernel that needs more cycles, but less power,
// runs at a higher clock, which the GPU takes on some milliseconds later.
#include "kernels/parts/successive_halving.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace gemm {
namespace {

struct SimulatedKernel {
  float megacycles;  // of a launch
  float limit_mhz;   // its clock at the power limit, or the highest clock
  std::string kind = {};
};

constexpr float kHighestMhz = 1980;

class SimulatedGpu {
 public:
  // `mhz`: the clock at first.
  explicit SimulatedGpu(std::vector<SimulatedKernel> kernels, float mhz = kHighestMhz)
      : kernels_(std::move(kernels)), mhz_(kLate, mhz) {}

  std::size_t choice() {
    std::vector<std::size_t> all;
    std::vector<std::string> kinds;
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      all.push_back(i);
      kinds.push_back(kernels_[i].kind);
    }
    const auto time = [this](std::size_t which, float milliseconds) {
      return run(kernels_[which], milliseconds);
    };
    const auto rest = [this] {
      const float before = mhz_.back();
      mhz_.resize(mhz_.size() + kHighAfterRest, kHighestMhz);
      mhz_.resize(mhz_.size() + kLate - kHighAfterRest, before);
      since_rest_ = 0;
    };
    return SuccessiveHalving(time, rest, 0, kinds).fastest(all);
  }
  float spent() const { return spent_; }  // milliseconds

 private:
  static constexpr std::size_t kLate = 200, kHighAfterRest = 20;  // steps

  SuccessiveHalving::Timing run(const SimulatedKernel& kernel, float milliseconds) {
    constexpr float kStep = 0.05F;  // milliseconds
    float launches = 0, whole = 0;
    for (; whole < milliseconds || launches < 1; whole += kStep) {
      mhz_.push_back(kernel.limit_mhz * swing(since_rest_));
      since_rest_ += kStep;
      launches += kStep * mhz_[mhz_.size() - kLate - 1] / 1000 / kernel.megacycles;
    }
    spent_ += whole;
    return {whole / launches, whole};
  }

  // After a rest the clock is high, then low until the mean power of a second is the limit, and
  // less so in the next second (H200).
  static float swing(float milliseconds) {
    if (milliseconds > 900 && milliseconds < 1100) return 0.75F;
    return milliseconds > 1900 && milliseconds < 2100 ? 0.93F : 1;
  }

  std::vector<SimulatedKernel> kernels_;
  float since_rest_ = 0;    // milliseconds of work
  std::vector<float> mhz_;  // of each step, as the power of that step allows
  float spent_ = 0;
};

// The cycles and clocks of plans of a product of 4096 in BF16 on an H200. Batches of a millisecond
// meet the clock of what ran ten entrants before: the hungry ones that of slow kernels, the frugal
// one that of hungry ones, in both directions.
TEST(SuccessiveHalving, FindsWhatIsFastestAtItsOwnClock) {
  const SimulatedKernel hungry{0.2645F, 1252, "128x192"}, frugal{0.2779F, 1370, "128x256"},
      slow{0.58F, 1500, "64x128"};
  std::vector<SimulatedKernel> kernels;
  for (std::size_t i = 0; i < 25; ++i) kernels.push_back(i < 5 || i > 19 ? slow : hungry);
  kernels[2] = kernels[22] = hungry;
  kernels[12] = frugal;
  EXPECT_EQ(SimulatedGpu(kernels).choice(), 12U);
  // Other work ran just before, so that no launch meets the highest clock.
  for (SimulatedKernel& one : kernels) one.limit_mhz = std::min(one.limit_mhz, 1370.0F);
  EXPECT_EQ(SimulatedGpu(kernels, 1252).choice(), 12U);
}

// Plans of a product of 8192 in BF16: the hungriest was first while they shared a clock, and those
// of the most frugal kind were the last. Of these the fastest is the one that draws least, too.
TEST(SuccessiveHalving, ComparesKindsThenThePlansOfTheFastest) {
  const std::vector<SimulatedKernel> kernels{
      {2.100F, 1235, "128x128"},           {2.105F, 1235, "128x128"},
      {2.120F, 1265, "128x160"},           {2.125F, 1272, "128x192"},
      {2.130F, 1275, "128x192"},           {2.140F, 1285, "128x256/cluster:1"},
      {2.145F, 1310, "128x256/cluster:2"}, {2.150F, 1335, "128x256/cluster:2"}};
  EXPECT_EQ(SimulatedGpu(kernels).choice(), 7U);
}

// The GPU makes up for what it drew after a rest: that does not count against who runs then.
TEST(SuccessiveHalving, WaitsUntilTheClockNoLongerSwings) {
  EXPECT_EQ(SimulatedGpu({{2.0F, 1330, "frugal"}, {2.0F, 1305, "second"}, {2.01F, 1280, "third"}})
                .choice(),
            0U);
}

// The clock falls within a launch, so that one after a rest is hardly shorter.
TEST(SuccessiveHalving, FindsWhatIsFastestAtItsOwnClockIfLaunchesAreLong) {
  EXPECT_EQ(SimulatedGpu({{15.0F, 1235, "128x128"}, {15.5F, 1335, "128x256"}}).choice(), 1U);
}

// Below the power limit the order is that of the cycles, within the budget.
TEST(SuccessiveHalving, FindsTheFewestCyclesWithinItsBudget) {
  std::vector<SimulatedKernel> kernels;
  for (int i = 0; i < 24; ++i)
    kernels.push_back({0.02F + 0.001F * static_cast<float>(i * 7 % 24), kHighestMhz});
  SimulatedGpu gpu(kernels);
  EXPECT_EQ(gpu.choice(), 0U);
  EXPECT_LT(gpu.spent(), 1.25F * SuccessiveHalving::kMilliseconds);
}

TEST(SuccessiveHalving, TakesTheOnlyOne) { EXPECT_EQ(SimulatedGpu({{0.2F, 1200}}).choice(), 0U); }

}  // namespace
}  // namespace gemm
