#include "bench/timing/energy.hpp"

#include <cstddef>

#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

// Changes of the counter: a change is seen up to one reading late, and the first and the last then
// leave an error of two intervals of 20 ms at most, in the mean none.
constexpr std::int64_t kFewestChanges = 4;

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
  for (std::size_t i = 1; i < stretch.size(); ++i) {
    const GpuReading &before = stretch[i - 1], &now = stretch[i];
    if (!before.joules || !now.joules || !(*now.joules > *before.joules)) continue;
    ++energy.changes;
    last = &now;
    if (first == nullptr) first = &now;
  }
  if (energy.changes >= kFewestChanges && last->when - first->when >= kShortestStretch / 2)
    energy.watts = (*last->joules - *first->joules) / (last->when - first->when);
  else
    energy.why_not = formatted("the energy counter changed %lld times in %.2g s, too seldom",
                               static_cast<long long>(energy.changes), energy.seconds);
  return energy;
}

}  // namespace gemm::bench
