#include "bench/measurement/measurement.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <span>

#include "bench/base/clock.hpp"
#include "bench/base/device_errors.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

// Python needs up to 100 us for a launch.
constexpr double kPythonGraphBelowSeconds = 1e-3;

constexpr int kFewestTries = 3, kMostTries = 9;  // of each part of a launch

std::string seconds_text(double seconds) { return formatted("%.3g s", seconds); }

}  // namespace

Skipped run_budget_is_spent(const Options& options) {
  return Skipped("the run budget of " + seconds_text(options.run_budget_seconds.value_or(0)) +
                 " is spent: raise --gemm_run_budget");
}

void Measurement::require_supported() const {
  const Kernel& kernel = *case_.kernel;
  const Problem& p = case_.problem;
  if (const std::int64_t longest = traits_of(p.precision).longest_sum; p.k > longest)
    throw Skipped("requires k <= " + std::to_string(longest) +
                  ": longer sums may overflow 32 bits");
  if (!kernel.unsupported) return;
  if (const auto why = kernel.unsupported(p, backend_.device())) throw Skipped(*why);
  if (case_.transfer != Transfer::overlapped) return;
  for (const Panel& panel : row_panels(p.m))
    if (const auto why = kernel.unsupported(panel_problem(p, panel), backend_.device()))
      throw Skipped("for a panel of " + std::to_string(panel.rows) + " rows: " + *why);
}

void Measurement::prepare(double seconds_left) {
  require_supported();
  if (seconds_left <= 0) throw run_budget_is_spent(options_);
  const Problem& p = case_.problem;
  const double started = now_seconds();
  const auto left = [&] { return seconds_left - (now_seconds() - started); };
  try {
    data_ = cache_.get(p, make_room(left));
    prepare_launches(affordable_sets(left()));
  } catch (const OutOfMemory& error) {
    throw Skipped(error.what());
  }
  poison();
  const double deadline = now_seconds() + std::min(options_.timing.budget_seconds, left());
  for (const Launch& launch : launches_) {
    if (interrupted()) throw Interrupted();
    if (now_seconds() > deadline)
      throw Skipped("verification took longer than the budget: raise --gemm_row_budget");
    backend_.run(launch);
  }
  judge(rotation_sets());
}

// The FP64 product if there are memory and time for it, else Freivalds' check.
Reference Measurement::make_room(const std::function<double()>& left) {
  const Problem& p = case_.problem;
  const double extra_bytes =
      case_.transfer ? static_cast<double>(cache_.set_count(p)) * bytes_minimum(p) : 0;
  const auto seconds = [&](Reference reference) {
    return predict(std::min(options_.timing.budget_seconds, left()),
                   [&](const Problem& corner) { return time_data(corner, reference); });
  };
  try {
    cache_.make_room(p, Reference::product, extra_bytes);
    if (cache_.holds(p) ||
        seconds(Reference::product) <= std::min(options_.timing.budget_seconds, left()))
      return Reference::product;
  } catch (const OutOfMemory&) {  // the check needs less
    cache_.make_room(p, Reference::rows, extra_bytes);
  }
  require_time(seconds(Reference::rows), left());
  return Reference::rows;
}

void Measurement::require_time(double seconds, double seconds_left) const {
  const double budget = options_.timing.budget_seconds;
  if (!(seconds <= budget))
    throw Skipped("predicted to take " + seconds_text(seconds) + ", more than the row budget of " +
                  seconds_text(budget) + ": raise --gemm_row_budget");
  if (!(seconds <= seconds_left))
    throw Skipped("predicted to take " + seconds_text(seconds) + ", but the run budget has only " +
                  seconds_text(std::max(0.0, seconds_left)) + " left: raise --gemm_run_budget");
}

// Neither a launch nor the reference product can be interrupted.
double Measurement::predict(double limit,
                            const std::function<Prediction(const Problem&)>& measure) const {
  constexpr double kMostlyWork =
      0.05;  // seconds, of which allocations and launches are a small part
  const Problem& whole = case_.problem;
  for (std::int64_t edge = backend_.device().kind == Device::Kind::gpu ? 1024 : 256;; edge *= 2) {
    Problem corner = whole;
    for (std::int64_t* size : {&corner.m, &corner.n, &corner.k}) *size = std::min(*size, edge);
    Prediction found = measure(corner);
    // The first time may have loaded a library, compiled, or touched memory for the first time.
    if (found.whole > limit) found = measure(corner);
    if (found.whole <= limit || found.corner >= kMostlyWork || corner == whole) return found.whole;
  }
}

Measurement::Prediction Measurement::time_data(const Problem& corner, Reference reference) {
  const double start = now_seconds();
  corner_data_ =
      std::make_shared<ProblemData>(backend_, corner, options_.fill, options_.seed, 1, reference);
  const double seconds = now_seconds() - start;
  corner_data_.reset();
  const auto work = [&](const Problem& p) {
    return reference == Reference::product ? flop(p) : bytes_minimum(p);
  };
  return {seconds, seconds * work(case_.problem) / work(corner)};
}

// On the operands of the first set: a corner has fewer elements than they have.
Measurement::Prediction Measurement::time_launch(const Problem& corner) {
  const Problem& p = case_.problem;
  if (const Kernel& kernel = *case_.kernel;
      kernel.unsupported && kernel.unsupported(corner, backend_.device()))
    return {0, std::numeric_limits<double>::infinity()};  // a larger one may be supported
  // The fastest of a few: one launch may be held up by whatever else the machine does.
  const auto fastest = [&](std::span<const Launch> launches) {
    constexpr double kEnoughSeconds = 0.05;
    const double start = now_seconds();
    backend_.run(launches[0]);  // loads the code
    double once = now_seconds() - start;
    for (int tries = 0; tries < 5 && now_seconds() - start < kEnoughSeconds; ++tries)
      once = std::min(once, backend_.batch(launches, 1, false)->time().seconds);
    return once;
  };
  const double larger = flop(p) / flop(corner);
  if (corner == p && !case_.transfer) {
    prepare_launches(1);
    const double once = fastest(launches_);
    return {once, once};
  }
  const std::span<const Operands> set = data_->sets().first(1);
  corner_launch_ = {case_.kernel->prepare(corner, backend_.device(), set[0])};
  Prediction sum{fastest(corner_launch_), 0};
  sum.whole = sum.corner * larger;
  if (case_.transfer) {  // copies grow with the bytes
    corner_end_to_end_ = backend_.end_to_end(transferred(corner), set);
    for (const EndToEnd::Part part : {EndToEnd::Part::to_device, EndToEnd::Part::from_device}) {
      corner_launch_ = corner_end_to_end_->launches(part);
      const double once = fastest(corner_launch_);
      sum.corner += once;
      sum.whole += once * bytes_minimum(p) / bytes_minimum(corner);
    }
  }
  corner_launch_.clear();
  corner_end_to_end_.reset();
  return sum;
}

Transferred Measurement::transferred(const Problem& p) const {
  const RegisteredKernel& kernel = *case_.kernel;
  return {.problem = p,
          .transfer = *case_.transfer,
          .prepare =
              [&kernel, this](const Problem& panel, const Operands& operands) {
                return kernel.prepare(panel, backend_.device(), operands);
              },
          .one_at_a_time = kernel.is_library()};
}

std::int64_t Measurement::affordable_sets(double seconds_left) {
  const auto all = std::ssize(data_->sets());
  const std::int64_t fewest = std::min<std::int64_t>(all, 2);
  // In addition to the verified ones: two for calibration, warm-up, two samples, and the parts.
  const double others = 5 + (case_.transfer ? kFewestTries : 0);
  const double limit = std::min(options_.timing.budget_seconds, seconds_left);
  const double once = predict(limit / (static_cast<double>(all) + others),
                              [&](const Problem& corner) { return time_launch(corner); });
  require_time(once * (static_cast<double>(fewest) + others), seconds_left);
  if (once * (static_cast<double>(all) + others) <= limit) return all;
  // A launch that takes so long gains little from operands in the cache.
  return std::clamp(static_cast<std::int64_t>(limit / 2 / once), fewest, all);
}

void Measurement::prepare_launches(std::int64_t sets) {
  if (case_.transfer) {
    end_to_end_ = backend_.end_to_end(transferred(case_.problem), data_->sets().first(sets));
    launches_ = end_to_end_->launches(EndToEnd::Part::whole);
    return;
  }
  while (rotation_sets() < sets)
    launches_.push_back(
        case_.kernel->prepare(case_.problem, backend_.device(), data_->sets()[launches_.size()]));
}

void Measurement::make_batch() {
  TimingPlan timing = options_.timing;
  if (!case_.kernel->python.empty()) timing.graph_below_seconds = kPythonGraphBelowSeconds;
  if (!plan_) plan_ = try_out(backend_, timing, launches_);
  if (case_.transfer) plan_->graph = false;  // a program copies and launches one by one
  try {
    batch_ = backend_.batch(launches_, plan_->size, plan_->graph);  // from the first set on
  } catch (const std::exception&) {
    if (case_.kernel->python.empty() || !plan_->graph) throw;
    plan_->graph = false;  // it does what a graph cannot hold: waits for the device, for example
    batch_ = backend_.batch(launches_, plan_->size, false);
  }
}

void Measurement::poison() {
  data_->poison();
  if (end_to_end_) end_to_end_->poison();
}

// NaN into every C, so that what the following samples leave behind can be judged.
void Measurement::begin() {
  batch_->rewind();
  poison();
  launched_ = 0;
}

Timing Measurement::time(const TimingPlan& plan, double seconds_left, Measurement* baseline,
                         Timing* baseline_timing, std::optional<AuditResult>* audited) {
  if (plan.state == State::settled) idle(plan.cooldown_seconds);
  const double deadline = now_seconds() + std::min(plan.budget_seconds, seconds_left);
  make_batch();
  std::vector<Batch*> batches{batch_.get()};
  if (baseline != nullptr) {
    baseline->make_batch();
    batches.push_back(baseline->batch_.get());
  }
  Warmup warmup;
  if (plan.state == State::settled) warmup = warm_up(plan, monitor_, batches, deadline);

  begin();
  if (baseline != nullptr) baseline->begin();
  Sampling mine(plan, monitor_, deadline, warmup.throttled);
  Sampling theirs(plan, monitor_, deadline, warmup.throttled);
  std::optional<Audit> audit;
  // Operands that were rearranged beforehand have the old values. One sample is for a profiler,
  // under which every launch is slow.
  if (audited != nullptr && !case_.transfer && !case_.kernel->rearranges && plan.samples != 1)
    audit.emplace(backend_, *data_, case_.problem, launches_, *plan_, *batch_);
  const double free_bytes = backend_.free_bytes();
  while (!mine.enough() || (baseline != nullptr && !theirs.enough())) {
    if (audit) audit->perhaps(mine.last_seconds());
    mine.take(*batch_, plan_->size);
    if (baseline != nullptr) theirs.take(*baseline->batch_, baseline->plan_->size);
  }
  Timing timing = mine.finish();
  launched_ = std::ssize(timing.samples_seconds) * plan_->size;
  timing.warmup = warmup;
  if (backend_.device().kind == Device::Kind::gpu)
    timing.memory_kept_bytes = std::max(0.0, free_bytes - backend_.free_bytes());
  timing.kernel_seconds += warmup.kernel_seconds;
  if (baseline != nullptr) {
    *baseline_timing = theirs.finish();
    launched_ = 0;  // both wrote to the same C
  }
  if (audit) {
    *audited = audit->finish(deadline);
    launched_ = 0;  // C has been poisoned since
  }
  return timing;
}

Verdict Measurement::judge(std::int64_t launched) {
  const std::int64_t count = std::min(launched, rotation_sets());
  if (end_to_end_) end_to_end_->deliver(count);
  const Verdict verdict = data_->judge(case_.problem, count);
  if (auto wrong = complaint(case_.problem, verdict)) {
    if (const std::string pattern = data_->pattern(case_.problem, count); !pattern.empty())
      *wrong += "; " + pattern;
    throw WrongResult(*wrong, verdict);
  }
  return verdict;
}

Verdict Measurement::verify() {
  if (launched_ == 0) {
    begin();
    batch_->time();
    launched_ = plan_->size;
  }
  return judge(launched_);
}

Launch Measurement::kernel() const {
  return end_to_end_ ? end_to_end_->launches(EndToEnd::Part::kernel)[0] : launches_[0];
}

// Batches as long as those of the whole: the median of a few.
PartTimes Measurement::time_parts() {
  const auto seconds = [&](EndToEnd::Part part) {
    const std::vector<Launch> launches = end_to_end_->launches(part);
    const std::unique_ptr<Batch> batch = backend_.batch(launches, plan_->size, false);
    Timing timing;
    const double enough = now_seconds() + 0.2;
    for (int tries = 0; tries < kMostTries && (tries < kFewestTries || now_seconds() < enough);
         ++tries) {
      if (interrupted()) throw Interrupted();
      timing.samples_seconds.push_back(batch->time().seconds / static_cast<double>(plan_->size));
    }
    return timing.quantile_seconds(0.5);
  };
  return {seconds(EndToEnd::Part::to_device), seconds(EndToEnd::Part::kernel),
          seconds(EndToEnd::Part::from_device)};
}

}  // namespace gemm::bench
