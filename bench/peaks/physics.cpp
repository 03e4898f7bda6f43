#include "bench/peaks/physics.hpp"

#include <time.h>

#include <algorithm>
#include <string_view>

#include "bench/base/text.hpp"
#include "bench/peaks/measured_peaks.hpp"
#include "kernels/tokens.hpp"

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

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The largest of some launches, in FLOP/s, by the CPU time of this thread.
double best_of_one_core(Backend& backend, std::string_view arithmetic) {
  constexpr int kLaunches = 5;
  DeviceInfo one = backend.device();
  one.cores = 1;
  double best = 0;
  for (const Probe& probe : host_probes(one)) {
    if (probe.arithmetic != arithmetic) continue;
    const Launch launch = probe.prepare(backend);
    for (int i = 0; i < kLaunches; ++i) {
      const double start = thread_seconds();
      launch(nullptr);
      best = std::max(best, probe.work / (thread_seconds() - start));
    }
  }
  return best;
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
      compulsory_bytes(p) - static_cast<double>(limits.last_level_cache_bytes) / sets;
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

double cpu_limit(double of_all_cores, double of_one_core, int cores,
                 const std::optional<OthersLoad>& others) {
  const bool quiet = others && !others->disturbs();
  return kProbeError * (quiet ? of_all_cores : std::max(of_all_cores, cores * of_one_core));
}

std::optional<std::string> beats_cpu(Backend& backend, Peak& peak, double flop_per_second) {
  constexpr int kTries = 3;
  const std::string_view arithmetic = traits_of(*peak.precision).name;
  const auto possible = [&] {
    return flop_per_second <= kProbeError * peak.per_second.value_or(0);
  };
  if (possible()) return std::nullopt;
  const auto refused = [&](const std::string& why) {
    return "impossible: " + rate_text(flop_per_second, *peak.precision) + ", but " + peak.name +
           " reaches " + rate_text(peak.per_second.value_or(0), *peak.precision) +
           " on this CPU (" + why;
  };
  if (peak.origin == Peak::Origin::given) return refused("given): is --gemm_peak_flops right?");
  TimingPlan brief;
  brief.warmup_seconds = 0.02;
  brief.sampling_seconds = brief.longest_sampling_seconds = 0.05;
  const std::optional<CpuTimes> before = read_cpu_times();
  for (int tries = 0; tries < kTries && !possible(); ++tries)
    for (const Probe& probe : host_probes(backend.device())) {
      if (probe.arithmetic != arithmetic) continue;
      const double found = measure(backend, nullptr, brief, probe).per_second();
      if (found <= peak.per_second.value_or(0)) continue;
      peak.per_second = found;
      peak.origin = Peak::Origin::measured;
      peak.source = probe.label() + ": " + probe.what;
    }
  const std::optional<OthersLoad> others = others_between(before, read_cpu_times());
  if (possible() || !peak.per_second ||
      flop_per_second <= cpu_limit(*peak.per_second, best_of_one_core(backend, arithmetic),
                                   backend.device().cores, others))
    return std::nullopt;
  return refused("measured again beside it): is all of the work done?");
}

}  // namespace gemm::bench
