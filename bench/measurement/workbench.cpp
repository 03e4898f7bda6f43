#include "bench/measurement/workbench.hpp"

#include <algorithm>
#include <exception>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>

#include "bench/base/device_errors.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/terminal.hpp"
#include "bench/base/text.hpp"

namespace gemm::bench {

bool is_library_for(const Case& which, const Case& baseline) {
  return baseline.kernel->is_library() && baseline.problem == which.problem;
}

double Workbench::seconds_left() const {
  if (!options.run_budget_seconds) return std::numeric_limits<double>::infinity();
  return *options.run_budget_seconds - elapsed_seconds();
}

std::vector<Case> Workbench::named_baselines(const Case& which) const {
  if (!options.versus || which.transfer) return {};
  return baselines_of(which, parse_versus(*options.versus), options.variants);
}

// Of several that --gemm_versus names, kernels or variants, the fastest in a trial.
std::optional<Case> Workbench::baseline_of(const Case& which) {
  std::vector<Case> baselines = named_baselines(which);
  const auto is_among = [](const std::vector<Case>& cases, const Case& one) {
    return std::ranges::find(cases, one) != cases.end();
  };
  if (is_among(baselines, which)) return std::nullopt;  // no kernel is its own baseline
  std::erase_if(baselines, [&](const Case& one) { return is_among(unfit_, one); });
  if (baselines.size() <= 1) return baselines.empty() ? std::nullopt : std::optional(baselines[0]);
  for (const auto& [problem, fastest] : fastest_)
    if (problem == which.problem && is_among(baselines, fastest)) return fastest;
  const auto best = fastest_baseline(baselines);
  if (best) fastest_.emplace_back(which.problem, *best);
  return best;
}

// Two at a time, interleaved sample by sample, so that the state of the GPU favours none.
std::optional<Case> Workbench::fastest_baseline(const std::vector<Case>& baselines) {
  constexpr double kTrialSeconds = 0.5;
  TimingPlan trial = options.timing;
  trial.samples.reset();
  for (double* seconds :
       {&trial.warmup_seconds, &trial.sampling_seconds, &trial.longest_sampling_seconds})
    *seconds = std::min(*seconds, kTrialSeconds);

  active.reset();  // its memory may be needed
  baseline.reset();
  std::optional<Case> best;  // in `baseline`
  for (const Case& next : baselines) {
    bool faster = !best;
    const bool ran = try_baseline(next, [&] {
      if (best) prepare(baseline, *best);  // again, if the one before failed
      prepare(active, next);
      if (!best) return;
      Timing theirs;
      const Timing mine = active->time(trial, seconds_left(), baseline.get(), &theirs);
      active->verify();
      faster = mine.quantile_seconds(0.5) < theirs.quantile_seconds(0.5);
    });
    if (!ran || !faster) continue;
    best = next;
    std::swap(active, baseline);
  }
  active.reset();
  return best;
}

void Workbench::run(const Case& which, std::optional<Case> with,
                    std::optional<std::int64_t> samples, Row& row) {
  if (active && active->which() != which) active.reset();  // its memory may be needed
  if (baseline && baseline->which() != with) baseline.reset();
  if (with && !try_baseline(*with, [&] { prepare(baseline, *with); })) with.reset();
  prepare(active, which);

  TimingPlan plan = options.timing;
  if (samples) plan.samples = samples;
  Timing theirs;
  row.rotation_sets = active->rotation_sets();
  row.timing = active->time(plan, seconds_left(), baseline.get(), &theirs, &row.audit);
  row.batch = active->plan().size;
  row.launch = active->launch();
  kernel_seconds += row.timing.kernel_seconds;
  row.verdict = active->verify();
  require_possible(which, row.timing, row.rotation_sets);
  row.launched = backend->kernels_of(active->kernel());
  if (which.transfer) row.parts = active->time_parts();
  if (!with || !try_baseline(*with, [&] {
        baseline->verify();
        require_possible(*with, theirs, row.rotation_sets);
      }))
    return;
  row.versus = compare_pairs(row.timing.samples_seconds, theirs.samples_seconds);
  const Precision precision = with->problem.precision;
  if (precision != which.problem.precision)
    row.versus->kernel = std::string(traits_of(precision).name) + ":";
  row.versus->kernel += with->kernel->label();
  row.versus->library = is_library_for(which, *with);
}

std::optional<LibraryRate> Workbench::time_libraries(const Problem& p) {
  std::optional<LibraryRate> best;
  for (const Case& one :
       make_cases({{p.m, p.n, p.k}}, {p.precision}, backend->device().kind, false, {p.layout})) {
    if (!one.kernel->is_library()) continue;
    attempt(one, [&] {
      active.reset();  // its memory may be needed
      try {
        prepare(active, one);
      } catch (const Skipped&) {
        return;
      }
      // In the state of the rows: burst and settled differ by 15 % on one GPU.
      TimingPlan plan = options.timing;
      plan.samples.reset();
      Row row{.which = one};
      row.timing = active->time(plan, seconds_left());
      active->verify();
      require_possible(one, row.timing, active->rotation_sets());
      if (!best || row.flop_per_second() > best->flop_per_second)
        best = LibraryRate{one.kernel->label(), row.flop_per_second()};
    });
  }
  return best;
}

void Workbench::discard(const Case& which) {
  active.reset();
  baseline.reset();
  cache.forget(which.problem);
}

void Workbench::clear() {
  active.reset();
  baseline.reset();
  cache.clear();
}

// Prepared in place: on a GPU that hangs its destructor would wait for ever.
void Workbench::prepare(std::unique_ptr<Measurement>& place, const Case& which) {
  if (place && place->which() == which) return;
  place = std::make_unique<Measurement>(*backend, monitor.get(), cache, options, which);
  place->prepare(seconds_left());
}

bool Workbench::attempt(const Case& compared, const std::function<void()>& step) {
  try {
    step();
    return true;
  } catch (const Interrupted&) {
    throw;
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception& error) {
    const AboveStatus above;
    std::cerr << compared.name() << " is not compared with: " << one_line(error.what()) << "\n";
  }
  discard(compared);  // it may have written anywhere
  return false;
}

bool Workbench::try_baseline(const Case& named, const std::function<void()>& step) {
  if (attempt(named, step)) return true;
  unfit_.push_back(named);
  return false;
}

void Workbench::require_possible(const Case& which, const Timing& timing,
                                 std::int64_t operand_sets) const {
  // A burst is shorter than the time between two updates of NVML's clock.
  const std::optional<Range> by_timer = timing.sm_hz_by_timer();
  const std::optional<double> highest_sm_hz = options.timing.state != State::burst
                                                  ? timing.highest_sm_hz()
                                              : by_timer ? std::optional(by_timer->max)
                                                         : std::nullopt;
  if (const auto why = beats_physics(limits, {.problem = which.problem,
                                              .seconds = timing.quantile_seconds(0.5),
                                              .operand_sets = operand_sets,
                                              .highest_sm_hz = highest_sm_hz}))
    throw std::runtime_error(*why);
}

}  // namespace gemm::bench
