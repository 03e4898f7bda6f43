#include "bench/measurement/interleaving.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

namespace gemm::bench {

std::vector<Case> Interleaving::named_baselines(const Case& which) const {
  if (!bench_.options.versus || which.transfer || bench_.options.child_turns) return {};
  return baselines_of(which, parse_versus(*bench_.options.versus), bench_.options.variants);
}

// Of several that --gemm_versus names, kernels or variants, the fastest in a trial.
std::optional<Case> Interleaving::baseline_of(const Case& which) {
  std::vector<Case> baselines = named_baselines(which);
  const auto is_among = [](const std::vector<Case>& cases, const Case& one) {
    return std::ranges::find(cases, one) != cases.end();
  };
  if (is_among(baselines, which)) return std::nullopt;  // no kernel is its own baseline
  std::erase_if(baselines, [&](const Case& one) { return is_among(unfit_, one); });
  if (baselines.size() <= 1) return baselines.empty() ? std::nullopt : std::optional(baselines[0]);
  for (const auto& [problem, baseline] : baselines_)
    if (problem == which.problem && is_among(baselines, baseline)) return baseline;
  const auto best = fastest_baseline(baselines);
  if (best) baselines_.emplace_back(which.problem, *best);
  return best;
}

// Two at a time, interleaved sample by sample, so that the state of the GPU favours none.
std::optional<Case> Interleaving::fastest_baseline(const std::vector<Case>& baselines) {
  constexpr double kTrialSeconds = 0.5;
  TimingPlan trial = bench_.options.timing;
  trial.samples.reset();
  for (double* seconds :
       {&trial.warmup_seconds, &trial.sampling_seconds, &trial.longest_sampling_seconds})
    *seconds = std::min(*seconds, kTrialSeconds);

  bench_.active.reset();  // its memory may be needed
  bench_.baseline.reset();
  std::optional<Case> best;  // in bench_.baseline
  for (const Case& next : baselines) {
    bool faster = !best;
    const bool ran = try_baseline(next, [&] {
      if (best) bench_.prepare(bench_.baseline, *best);  // again, if the one before failed
      bench_.prepare(bench_.active, next);
      if (!best) return;
      Timing theirs;
      const Timing mine =
          bench_.active->time(trial, bench_.seconds_left(), bench_.baseline.get(), &theirs);
      bench_.active->verify();
      faster = mine.quantile_seconds(0.5) < theirs.quantile_seconds(0.5);
    });
    if (!ran || !faster) continue;
    best = next;
    std::swap(bench_.active, bench_.baseline);
  }
  bench_.active.reset();
  return best;
}

bool Interleaving::try_baseline(const Case& baseline, const std::function<void()>& step) {
  if (bench_.attempt(baseline, step)) return true;
  unfit_.push_back(baseline);
  return false;
}

void Interleaving::run(const Case& which, std::optional<Case> baseline,
                       std::optional<std::int64_t> samples, Row& row) {
  std::unique_ptr<Measurement>&mine = bench_.active, &other = bench_.baseline;
  if (mine && mine->which() != which) mine.reset();  // its memory may be needed
  if (other && other->which() != baseline) other.reset();
  if (baseline && !try_baseline(*baseline, [&] { bench_.prepare(other, *baseline); }))
    baseline.reset();
  bench_.prepare(mine, which);

  TimingPlan plan = bench_.options.timing;
  if (samples) plan.samples = samples;
  Timing theirs;
  try {
    row.timing = bench_.turns ? mine->time_in_turns(plan, bench_.seconds_left(), bench_.turns)
                              : mine->time(plan, bench_.seconds_left(), other.get(), &theirs);
  } catch (const BaselineFailed& error) {
    try_baseline(*baseline, [&] { throw error; });  // says so
    return run(which, {}, samples, row);
  }
  complete(*mine, row);
  if (!baseline || !try_baseline(*baseline, [&] {
        other->verify();
        require_possible(*baseline, theirs, other->sets());
      }))
    return;
  compare(row, *baseline, theirs);
}

void Interleaving::require_possible(const Case& which, const Timing& timing, std::int64_t sets) {
  if (const auto why = bench_.impossible(which, timing, sets)) throw std::runtime_error(*why);
}

void Interleaving::complete(Measurement& mine, Row& row) {
  row.rotation_sets = mine.sets();
  row.batch = mine.batch();
  row.launch = mine.launch();
  row.checks = mine.checks();
  bench_.kernel_seconds += row.timing.kernel_seconds;
  row.verdict = mine.verify();
  require_possible(row.which, row.timing, row.rotation_sets);
  row.launched = bench_.backend->kernels_of(mine.kernel());
  if (const RegisteredKernel& kernel = *row.which.kernel; kernel.chosen)
    if (const auto plan = kernel.chosen(row.which.problem, bench_.backend->device()))
      row.plan = {plan->name, plan->source};
  if (row.which.transfer) row.parts = mine.time_parts();
}

void Interleaving::compare(Row& row, const Case& baseline, const Timing& theirs) {
  const auto pairs = static_cast<std::ptrdiff_t>(
      std::min(row.timing.samples_seconds.size(), theirs.samples_seconds.size()));
  const auto first = [&](const std::vector<double>& samples) {
    return std::vector<double>(samples.begin(), samples.begin() + pairs);
  };
  row.versus = compare_pairs(first(row.timing.samples_seconds), first(theirs.samples_seconds));
  const Precision precision = baseline.problem.precision;
  if (precision != row.which.problem.precision)
    row.versus->kernel = std::string(traits_of(precision).name) + ":";
  row.versus->kernel += baseline.kernel->label();
  row.versus->library = is_library_for(row.which, baseline);
}

bool is_library_for(const Case& which, const Case& baseline) {
  return baseline.kernel->is_library() && baseline.problem == which.problem;
}

}  // namespace gemm::bench
