#include "bench/timing/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

namespace gemm::bench {
namespace {

// Student's t that is exceeded with 2.5 %, by degrees of freedom from 1.
constexpr double kStudent[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                               2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131};

std::optional<double> mean_of(std::span<const GpuReading> readings,
                              std::optional<double> GpuReading::*value) {
  double sum = 0;
  std::int64_t count = 0;
  for (const GpuReading& reading : readings)
    if (reading.*value) {
      sum += *(reading.*value);
      ++count;
    }
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

}  // namespace

std::optional<double> Block::joules() const {
  const std::optional<double> watts = energy.watts ? energy.watts : power_w;
  return watts ? std::optional(*watts * seconds / static_cast<double>(launches)) : std::nullopt;
}

void read_block(Block& block, std::span<const GpuReading> readings, std::optional<double> sm_hz) {
  block.energy = energy_over(readings);
  block.power_w = mean_of(readings, &GpuReading::power_w);
  block.temperature_c = mean_of(readings, &GpuReading::temperature_c);
  block.sm_hz = sm_hz ? sm_hz : mean_of(readings, &GpuReading::sm_hz);
}

std::optional<Estimate> estimate(const std::vector<double>& values) {
  if (values.size() < 2) return std::nullopt;
  const auto count = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double value : values) mean += std::log(value) / count;
  for (const double value : values) squares += std::pow(std::log(value) - mean, 2);
  const double half = kStudent[std::min(values.size() - 2, std::size(kStudent) - 1)] *
                      std::sqrt(squares / (count - 1) / count);
  return Estimate{std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

std::optional<Estimate> joules_of(const std::vector<Block>& blocks) {
  std::vector<double> joules;
  for (const Block& block : blocks)
    if (const auto of_block = block.joules()) joules.push_back(*of_block);
  return joules.size() == blocks.size() ? estimate(joules) : std::nullopt;
}

Energy energy_of(const std::vector<Block>& blocks) {
  Energy all{.watts = 0, .why_not = ""};
  double seconds = 0;
  for (const Block& block : blocks) {
    if (!block.energy.watts) return block.energy;
    *all.watts += *block.energy.watts * block.seconds;
    seconds += block.seconds;
    all.seconds += block.energy.seconds;
    all.changes += block.energy.changes;
  }
  *all.watts /= seconds;
  return all;
}

}  // namespace gemm::bench
