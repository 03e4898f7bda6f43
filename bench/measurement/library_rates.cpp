#include "bench/measurement/library_rates.hpp"

#include <algorithm>
#include <stdexcept>

namespace gemm::bench {

std::optional<LibraryRate> LibraryRates::fastest(const std::vector<Case>& cases) {
  std::optional<LibraryRate> best;
  for (const Case& one : cases) {
    bench_.attempt(one, [&] {
      bench_.active.reset();  // its memory may be needed
      try {
        bench_.prepare(bench_.active, one);
      } catch (const Skipped&) {
        return;
      }
      // In the state of the rows: burst and settled differ by 15 % on one GPU.
      TimingPlan plan = bench_.options.timing;
      plan.samples.reset();
      Row row{.which = one};
      row.timing = bench_.active->time(plan, bench_.seconds_left());
      bench_.active->verify();
      if (const auto wrong = bench_.impossible(one, row.timing, bench_.active->sets()))
        throw std::runtime_error(*wrong);
      if (!best || row.flop_per_second() > best->flop_per_second)
        best = LibraryRate{one.kernel->label(), row.flop_per_second()};
    });
  }
  return best;
}

void LibraryRates::measure(const Case& which) {
  const Problem& p = which.problem;
  if (which.transfer || which.kernel->is_library() || results_.library_rate(p)) return;
  if (std::ranges::find(without_library_, p) != without_library_.end()) return;
  std::vector<Case> libraries = make_cases({{p.m, p.n, p.k}}, {p.precision},
                                           bench_.backend->device().kind, false, {p.layout});
  std::erase_if(libraries, [](const Case& one) { return !one.kernel->is_library(); });
  if (const auto best = fastest(libraries))
    results_.set_library_rate(p, *best);
  else
    without_library_.push_back(p);
}

}  // namespace gemm::bench
