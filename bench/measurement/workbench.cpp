#include "bench/measurement/workbench.hpp"

#include <algorithm>
#include <exception>
#include <iostream>
#include <limits>

#include "bench/base/device_errors.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/terminal.hpp"
#include "bench/base/text.hpp"

namespace gemm::bench {

double Workbench::seconds_left() const {
  if (!options.run_budget_seconds) return std::numeric_limits<double>::infinity();
  return *options.run_budget_seconds - elapsed_seconds();
}

// Prepared in place: on a GPU that hangs its destructor would wait for ever.
void Workbench::prepare(std::unique_ptr<Measurement>& place, const Case& which) {
  if (place && place->which() == which) return;
  place = std::make_unique<Measurement>(*backend, monitor.get(), cache, options, which);
  place->prepare(seconds_left());
}

void Workbench::discard(const Case& which) {
  active.reset();
  baseline.reset();
  cache.forget(which.problem);
}

bool Workbench::attempt(const Case& baseline, const std::function<void()>& step) {
  try {
    step();
    return true;
  } catch (const Interrupted&) {
    throw;
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception& error) {
    const AboveStatus above;
    std::cerr << baseline.name() << " is not compared with: " << one_line(error.what()) << "\n";
  }
  discard(baseline);  // it may have written anywhere
  return false;
}

void Workbench::clear() {
  active.reset();
  baseline.reset();
  cache.clear();
}

std::optional<std::string> Workbench::impossible(const Case& which, const Timing& timing,
                                                 std::int64_t operand_sets) {
  const double seconds = timing.quantile_seconds(0.5);
  if (backend->device().kind == Device::Kind::cpu)
    return above_cpu(which, flop(which.problem) / seconds);
  // A burst is shorter than the time between two updates of NVML's clock.
  const std::optional<Range> by_timer = timing.sm_hz_by_timer();
  const std::optional<double> highest_sm_hz = options.timing.state != State::burst
                                                  ? timing.highest_sm_hz()
                                              : by_timer ? std::optional(by_timer->max)
                                                         : std::nullopt;
  return beats_physics(limits, {.problem = which.problem,
                                .seconds = seconds,
                                .operand_sets = operand_sets,
                                .highest_sm_hz = highest_sm_hz});
}

// A child does not judge itself.
std::optional<std::string> Workbench::above_cpu(const Case& which, double flop_per_second) {
  const auto peak = std::ranges::find_if(limits.peaks, [&](const Peak& one) {
    return one.precision && *one.precision == which.problem.precision;
  });
  if (options.is_child() || which.transfer || peak == limits.peaks.end()) return std::nullopt;
  return beats_cpu(*backend, *peak, flop_per_second);
}

}  // namespace gemm::bench
