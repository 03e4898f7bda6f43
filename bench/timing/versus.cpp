#include "bench/timing/versus.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "bench/timing/timing.hpp"
#include "bench/verification/fill.hpp"

namespace gemm::bench {
namespace {

constexpr int kResamples = 2000;
constexpr std::uint64_t kSeed = 1;

double median(std::vector<double>& values) {
  const std::size_t middle = values.size() / 2;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(middle));
  const double above = values[middle];
  if (values.size() % 2 == 1) return above;
  return (above +
          *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle))) /
         2;
}

}  // namespace

Versus compare_pairs(const std::vector<double>& mine, const std::vector<double>& theirs) {
  const std::size_t n = mine.size();
  std::vector<double> a = mine, b = theirs;
  Versus versus;
  versus.seconds = median(b);
  versus.ratio = versus.seconds / median(a);
  versus.samples = static_cast<std::int64_t>(n);
  std::vector<double> pairs;
  for (std::size_t i = 0; i < n; ++i) pairs.push_back(theirs[i] / mine[i]);
  const auto block = static_cast<std::size_t>(
      std::clamp(std::ceil(static_cast<double>(n) / effective_count(pairs)), 1.0,
                 static_cast<double>(std::max<std::size_t>(1, n / 2))));
  std::vector<double> ratios;
  for (std::uint64_t resample = 0; resample < kResamples; ++resample) {
    std::size_t start = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (i % block == 0) start = random_bits(kSeed, resample * n + i) % n;
      const std::size_t pick = (start + i % block) % n;
      a[i] = mine[pick];
      b[i] = theirs[pick];
    }
    ratios.push_back(median(b) / median(a));
  }
  std::ranges::sort(ratios);
  const double tail = (1 - kConfidence) / 2;
  versus.low = ratios[static_cast<std::size_t>(tail * kResamples)];
  versus.high = ratios[static_cast<std::size_t>((1 - tail) * kResamples) - 1];
  return versus;
}

}  // namespace gemm::bench
