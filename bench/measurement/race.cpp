#include "bench/measurement/race.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/base/device_errors.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/text.hpp"

namespace gemm::bench {

std::vector<Case> Race::named_rivals(const Case& which) const {
  if (!bench_.options.versus || which.transfer) return {};
  return rivals_of(which, parse_versus(*bench_.options.versus), bench_.options.variants);
}

// Whom --gemm_versus names: of several, variants or kernels, the fastest in a trial.
std::optional<Case> Race::rival_of(const Case& which) {
  std::vector<Case> rivals = named_rivals(which);
  const auto is_among = [](const std::vector<Case>& cases, const Case& one) {
    return std::ranges::find(cases, one) != cases.end();
  };
  if (is_among(rivals, which)) return std::nullopt;  // it would race against itself
  std::erase_if(rivals, [&](const Case& one) { return is_among(unfit_, one); });
  if (rivals.size() <= 1) return rivals.empty() ? std::nullopt : std::optional(rivals[0]);
  for (const auto& [problem, rival] : rivals_)
    if (problem == which.problem && is_among(rivals, rival)) return rival;
  const auto best = fastest_rival(rivals);
  if (best) rivals_.emplace_back(which.problem, *best);
  return best;
}

// Two at a time, sample by sample, so that the state of the card favours none.
std::optional<Case> Race::fastest_rival(const std::vector<Case>& rivals) {
  constexpr double kTrialSeconds = 0.5;
  TimingPlan trial = bench_.options.timing;
  trial.samples.reset();
  for (double* seconds :
       {&trial.warmup_seconds, &trial.sampling_seconds, &trial.longest_sampling_seconds})
    *seconds = std::min(*seconds, kTrialSeconds);

  bench_.active.reset();  // its memory may be needed
  bench_.rival.reset();
  std::optional<Case> best;  // in bench_.rival
  for (const Case& next : rivals) {
    bool faster = !best;
    const bool ran = rival_can(next, [&] {
      if (best) bench_.prepare(bench_.rival, *best);  // again, if the one before failed
      bench_.prepare(bench_.active, next);
      if (!best) return;
      Timing theirs;
      const Timing mine =
          bench_.active->time(trial, bench_.seconds_left(), bench_.rival.get(), &theirs);
      bench_.active->verify();
      faster = mine.quantile_seconds(0.5) < theirs.quantile_seconds(0.5);
    });
    if (!ran || !faster) continue;
    best = next;
    std::swap(bench_.active, bench_.rival);
  }
  bench_.active.reset();
  return best;
}

// A rival that cannot race is no fault of the row.
bool Race::rival_can(const Case& rival, const std::function<void()>& step) {
  try {
    step();
    return true;
  } catch (const Interrupted&) {
    throw;
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception& error) {
    std::cerr << rival.name() << " is not raced against: " << one_line(error.what()) << "\n";
  }
  unfit_.push_back(rival);
  bench_.discard(rival);  // it may have written anywhere
  return false;
}

void Race::run(const Case& which, std::optional<Case> rival, std::optional<std::int64_t> samples,
               Row& row) {
  std::unique_ptr<Measurement>&mine = bench_.active, &other = bench_.rival;
  if (mine && mine->which() != which) mine.reset();  // its memory may be needed
  if (other && other->which() != rival) other.reset();
  if (rival && !rival_can(*rival, [&] { bench_.prepare(other, *rival); })) rival.reset();
  bench_.prepare(mine, which);

  TimingPlan plan = bench_.options.timing;
  if (samples) plan.samples = samples;
  Timing theirs;
  row.rotation_sets = mine->rotation_sets();
  row.timing = mine->time(plan, bench_.seconds_left(), other.get(), &theirs, &row.audit);
  row.batch = mine->plan().size;
  row.launch = mine->launch();
  bench_.kernel_seconds += row.timing.kernel_seconds;
  row.verdict = mine->verify();
  const auto require_possible = [&](const Case& one, const Timing& timing) {
    if (const auto why = bench_.impossible(one, timing, row.rotation_sets))
      throw std::runtime_error(*why);
  };
  require_possible(which, row.timing);
  row.launched = bench_.backend->kernels_of(mine->kernel());
  if (which.transfer) row.parts = mine->time_parts();
  if (!rival || !rival_can(*rival, [&] {
        other->verify();
        require_possible(*rival, theirs);
      }))
    return;
  row.versus = compare_pairs(row.timing.samples_seconds, theirs.samples_seconds);
  const Precision precision = rival->problem.precision;
  if (precision != which.problem.precision)
    row.versus->kernel = std::string(traits_of(precision).name) + ":";
  row.versus->kernel += rival->kernel->label();
  row.versus->library = is_library_for(which, *rival);
}

bool is_library_for(const Case& which, const Case& rival) {
  return rival.kernel->is_library() && rival.problem == which.problem;
}

}  // namespace gemm::bench
