#include "bench/peaks/physics.hpp"

#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

constexpr double kClockError = 1.01;      // of the clock as seen
constexpr double kProbeError = 1.05;      // kernels that are better than the probe
constexpr double kClockUnseen = 1.3;      // GPUs run above the clock that they report
constexpr double kBandwidthError = 1.03;  // of a measured bandwidth
constexpr double kEmptyLaunches = 2;      // a launch this short does nothing

// FLOP/s that the unit cannot exceed.
std::optional<double> highest(const Peak& peak, const Evidence& seen) {
  // A measured peak is no physical limit; it has one if the table contradicts it.
  const bool measured = peak.origin == Peak::Origin::measured;
  if (!peak.per_second || (measured && !peak.limit_per_second)) return std::nullopt;
  const double error = measured ? kProbeError : kClockError;
  if (!peak.clock_hz) return error * *peak.limit_at({});  // given by the user
  return (seen.highest_sm_hz ? error : kClockUnseen) * *peak.limit_at(seen.highest_sm_hz);
}

std::string cause_of_too_many_flops(const Limits& limits, const Evidence& seen, double rate) {
  if (limits.overheads && seen.seconds < kEmptyLaunches * limits.overheads->graph_node)
    return "that is the time of an empty kernel: do the launches work on the stream they are "
           "given?";
  const Peak* fits = nullptr;
  for (const Peak& other : limits.peaks) {
    if (!other.precision) continue;
    const auto limit = highest(other, seen);
    if (limit && rate <= *limit && (fits == nullptr || *limit < *highest(*fits, seen)))
      fits = &other;
  }
  if (fits != nullptr)
    return "only the " + fits->name +
           " is that fast: is the product computed in another precision?";
  return "no unit of the device is that fast: is part of the work on another stream, or not done?";
}

}  // namespace

std::optional<std::string> beats_physics(const Limits& limits, const Evidence& seen) {
  const Problem& p = seen.problem;
  const double rate = flop(p) / seen.seconds;
  if (const Peak* compute = compute_peak(limits.peaks, p.precision)) {
    const auto limit = highest(*compute, seen);
    if (limit && !(rate <= *limit))
      return "impossible: " + rate_text(rate, p.precision) + ", but the peak of " + compute->name +
             " is " + rate_text(*limit, p.precision) +
             (seen.highest_sm_hz
                  ? formatted(" at %.0f MHz, the highest clock seen", *seen.highest_sm_hz * 1e-6)
                  : "") +
             "; " +
             (compute->origin == Peak::Origin::given ? "is --gemm_peak_flops right?"
                                                     : cause_of_too_many_flops(limits, seen, rate));
  }

  const Peak* memory = memory_peak(limits.peaks);
  std::optional<double> bandwidth = limits.dram_bytes_per_second;
  if (!bandwidth && memory != nullptr && memory->origin != Peak::Origin::measured)
    bandwidth = memory->per_second;
  if (!bandwidth || seen.operand_sets < 2) return std::nullopt;
  // Of all that a round over the operand sets touches, no more than the cache holds can be there
  // when it is touched again.
  const auto sets = static_cast<double>(seen.operand_sets);
  const double must_move =
      bytes_minimum(p) - static_cast<double>(limits.last_level_cache_bytes) / sets;
  const double moved_per_second = must_move / seen.seconds;
  if (!(moved_per_second <= kBandwidthError * *bandwidth))
    return formatted(
               "impossible: at least %.4g MB must come from DRAM, which is %.4g GB/s, and the "
               "GPU can do %.4g; ",
               must_move * 1e-6, moved_per_second * 1e-9, *bandwidth * 1e-9) +
           formatted(
               "the operands come from the cache: do the launches rotate through all %lld operand "
               "sets, or does one keep a copy?",
               static_cast<long long>(seen.operand_sets));
  return std::nullopt;
}

}  // namespace gemm::bench
