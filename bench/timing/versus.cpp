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

}  // namespace gemm::bench
