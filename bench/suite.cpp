#include "bench/suite.hpp"

#include <algorithm>
#include <iostream>
#include <limits>

namespace gemm::bench {

Suite::Suite(std::unique_ptr<Backend> backend, const Options& options)
    : backend_(std::move(backend)),
      options_(options),
      results_(ceilings_of(backend_->device(), options.peaks)),
      cache_(*backend_, options.fill, options.seed),
      started_(now_seconds()) {}

double Suite::elapsed_seconds() const { return now_seconds() - started_; }

double Suite::seconds_left() const {
  if (!options_.run_budget_seconds) return std::numeric_limits<double>::infinity();
  return *options_.run_budget_seconds - elapsed_seconds();
}

Measurement& Suite::measurement(const Case& which, std::optional<BatchPlan> plan) {
  require_usable();
  const bool same = active_ && active_->which().kernel == which.kernel &&
                    active_->which().problem == which.problem;
  if (!same) {
    active_.reset();  // its memory may be needed
    active_ =
        std::make_unique<Measurement>(*backend_, cache_, options_, which, seconds_left(), plan);
  }
  return *active_;
}

void Suite::require_usable() const {
  if (interrupted()) throw Interrupted();
  if (!lost_.empty()) throw Skipped(lost_);
}

void Suite::discard(const Case& which) {
  active_.reset();
  cache_.forget(which.problem);
}

void Suite::lose_device(const std::string& error, const Case& during) {
  if (lost_.empty()) lost_ = "the device was lost in " + during.name() + ": " + error;
}

void Suite::measure_baseline(const Case& which) {
  require_usable();
  const Problem& p = which.problem;
  if (which.kernel->is_library() || results_.baseline(p)) return;
  if (std::ranges::find(without_library_, p) != without_library_.end()) return;
  active_.reset();  // its memory may be needed
  std::optional<Baseline> best;
  for (const Case& library :
       make_cases({{p.m, p.n, p.k}}, {p.precision}, backend_->device().kind)) {
    if (!library.kernel->is_library()) continue;
    try {
      Measurement measurement(*backend_, cache_, options_, library, seconds_left());
      measurement.begin();
      Row row{.which = library};
      for (int i = 0; i < 9; ++i) row.samples_seconds.push_back(measurement.sample());
      measurement.verify();
      if (!best || row.flop_per_second() > best->flop_per_second)
        best = Baseline{library.kernel->label(), row.flop_per_second()};
    } catch (const Interrupted&) {
      throw;
    } catch (const DeviceLost& error) {
      lose_device(error.what(), library);
      require_usable();
    } catch (const Skipped&) {  // the next library, or none
    } catch (const std::exception& error) {
      std::cerr << library.name() << " is no baseline: " << error.what() << "\n";
      discard(library);
    }
  }
  if (best)
    results_.set_baseline(p, *best);
  else
    without_library_.push_back(p);
}

}  // namespace gemm::bench
