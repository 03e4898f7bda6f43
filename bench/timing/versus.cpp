#include "bench/timing/versus.hpp"

#include <cstddef>

#include "bench/timing/timing.hpp"

namespace gemm::bench {

Versus compare_pairs(const std::vector<double>& mine, const std::vector<double>& theirs) {
  std::vector<double> pairs;
  for (std::size_t i = 0; i < mine.size(); ++i) pairs.push_back(theirs[i] / mine[i]);
  const Range ratio = median_range(pairs);
  Versus versus;
  versus.ratio = ratio.median;
  versus.low = ratio.min;
  versus.high = ratio.max;
  versus.seconds = median_range(theirs).median;
  versus.samples = static_cast<std::int64_t>(mine.size());
  return versus;
}

Versus compare_blocks(const std::vector<Block>& mine, const std::vector<Block>& theirs) {
  std::vector<double> speeds, energies, seconds;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    seconds.push_back(theirs[i].launch_seconds);
    speeds.push_back(theirs[i].launch_seconds / mine[i].launch_seconds);
    if (const auto ours = mine[i].joules(), other = theirs[i].joules(); ours && other)
      energies.push_back(*ours / *other);
  }
  const Estimate ratio = estimate(speeds).value();
  Versus versus;
  versus.ratio = ratio.value;
  versus.low = ratio.low;
  versus.high = ratio.high;
  versus.seconds = median_range(seconds).median;
  versus.samples = static_cast<std::int64_t>(mine.size());
  versus.blocks = theirs;
  if (energies.size() == mine.size()) versus.energy_ratio = estimate(energies);
  return versus;
}

}  // namespace gemm::bench
