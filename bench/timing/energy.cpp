#include "bench/timing/energy.hpp"

#include <cstddef>

#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

// Changes of the counter: a change is seen up to one reading late, and the first and the last then
// leave an error of two intervals of 20 ms at most, in the mean none.
constexpr std::int64_t kFewestChanges = 4;
// Changes of the power: with fewer its sensor is too slow, or it stands still.
constexpr std::int64_t kFewestPowers = 8;

}  // namespace

Energy energy_over(std::span<const GpuReading> stretch) {
  Energy energy{.why_not = ""};
  if (!stretch.empty()) energy.seconds = stretch.back().when - stretch.front().when;
  if (!(energy.seconds >= kShortestStretch)) {
    energy.why_not = formatted("%.2g s without a pause, at least %g s are needed", energy.seconds,
                               kShortestStretch);
    return energy;
  }
  const GpuReading *first = nullptr, *last = nullptr;  // where the counter changed
  std::int64_t counts = 0, powers = 0, known = 0;
  double watts = 0;
  for (std::size_t i = 1; i < stretch.size(); ++i) {
    const GpuReading &before = stretch[i - 1], &now = stretch[i];
    if (before.joules && now.joules && *now.joules > *before.joules) {
      ++counts;
      last = &now;
      if (first == nullptr) first = &now;
    }
    if (!now.power_w) continue;
    watts += *now.power_w;
    ++known;
    if (before.power_w && *now.power_w != *before.power_w) ++powers;
  }
  if (counts >= kFewestChanges && last->when - first->when >= kShortestStretch / 2) {
    energy.watts = (*last->joules - *first->joules) / (last->when - first->when);
    energy.readings = counts;
    energy.source = "energy counter";
  } else if (powers >= kFewestPowers) {
    energy.watts = watts / static_cast<double>(known);
    energy.readings = powers;
    energy.source = "power readings";
  } else {
    energy.why_not = formatted(
        "the energy counter changed %lld times and the power %lld times in %.2g s, too seldom",
        static_cast<long long>(counts), static_cast<long long>(powers), energy.seconds);
  }
  return energy;
}

}  // namespace gemm::bench
