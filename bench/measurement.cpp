#include "bench/measurement.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "bench/end_to_end.hpp"

namespace gemm::bench {
namespace {

constexpr int kFewestTries = 3, kMostTries = 9;  // of each part of a launch

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

}  // namespace

void Measurement::require_supported() const {
  const Kernel& kernel = *case_.kernel;
  const Problem& p = case_.problem;
  if (const std::int64_t longest = traits_of(p.precision).longest_sum; p.k > longest)
    throw Skipped("sums of more than " + std::to_string(longest) + " products may leave 32 bits");
  if (!kernel.unsupported) return;
  if (const auto why = kernel.unsupported(p, backend_.device())) throw Skipped(*why);
  if (case_.transfer != Transfer::overlapped) return;
  for (const Panel& panel : row_panels(p.m))
    if (const auto why = kernel.unsupported(panel_problem(p, panel), backend_.device()))
      throw Skipped("a panel of " + std::to_string(panel.rows) + " rows: " + *why);
}

void Measurement::prepare(double seconds_left) {
  require_supported();
  if (seconds_left <= 0)
    throw Skipped("the run budget of " + seconds_text(*options_.run_budget_seconds) + " is spent");
  const Problem& p = case_.problem;
  const auto sets = static_cast<double>(cache_.set_count(p));
  try {
    cache_.make_room(p, case_.transfer ? sets * bytes_minimum(p) : 0);
    predict(seconds_left);
    data_ = cache_.get(p);
    if (case_.transfer) {
      end_to_end_ = backend_.end_to_end(case_, data_->sets());
      launches_ = end_to_end_->launches(EndToEnd::Part::whole);
    } else {
      for (const Operands& set : data_->sets())
        launches_.push_back(case_.kernel->prepare(p, backend_.device(), set));
    }
  } catch (const OutOfMemory& error) {
    throw Skipped(error.what());
  }
  poison();
  for (const Launch& launch : launches_) {
    if (interrupted()) throw Interrupted();
    backend_.run(launch);
  }
  judge(rotation_sets());
}

// A launch cannot be stopped once it runs, and neither can the reference product, so a large
// problem is first tried on a corner of itself.
void Measurement::predict(double seconds_left) {
  const std::int64_t corner = backend_.device().kind == Device::Kind::gpu ? 1024 : 256;
  Problem probe = case_.problem;
  probe.m = std::min(probe.m, corner);
  probe.n = std::min(probe.n, corner);
  probe.k = std::min(probe.k, corner);
  const Kernel& kernel = *case_.kernel;
  if (probe == case_.problem) return;
  if (kernel.unsupported != nullptr && kernel.unsupported(probe, backend_.device())) return;

  const double start = now_seconds();
  corner_data_ = std::make_shared<ProblemData>(backend_, probe, options_.fill, options_.seed, 1);
  const double reference = cache_.holds(case_.problem) ? 0 : now_seconds() - start;
  corner_launch_ = {kernel.prepare(probe, backend_.device(), corner_data_->sets()[0])};
  // The fastest of a few: one launch may be held up by whatever else the machine does.
  const auto fastest = [&] {
    backend_.run(corner_launch_[0]);  // loads the code
    double once = std::numeric_limits<double>::infinity();
    const double enough = now_seconds() + 0.05;
    for (int tries = 0; tries < 5 && (tries == 0 || now_seconds() < enough); ++tries)
      once = std::min(once, backend_.batch(corner_launch_, 1, false)->time().seconds);
    return once;
  };
  const double larger = flop(case_.problem) / flop(probe);
  double once = fastest() * larger;
  if (case_.transfer) {  // copies grow with the bytes
    corner_end_to_end_ =
        backend_.end_to_end({case_.kernel, probe, case_.transfer}, corner_data_->sets());
    for (const EndToEnd::Part part : {EndToEnd::Part::to_device, EndToEnd::Part::from_device}) {
      corner_launch_ = corner_end_to_end_->launches(part);
      once += fastest() * bytes_minimum(case_.problem) / bytes_minimum(probe);
    }
  }
  corner_launch_.clear();
  corner_end_to_end_.reset();
  corner_data_.reset();

  const double launches = static_cast<double>(cache_.set_count(case_.problem)) +
                          4 +  // verify; try out, warm up, sample twice
                          (case_.transfer ? kFewestTries : 0);
  const double row = reference * larger + once * launches;
  if (row > options_.timing.budget_seconds)
    throw Skipped("predicted to take " + seconds_text(row) + ", the row budget is " +
                  seconds_text(options_.timing.budget_seconds) + " (--gemm_row_budget)");
  if (row > seconds_left)
    throw Skipped("predicted to take " + seconds_text(row) + ", the run budget has " +
                  seconds_text(seconds_left) + " left");
}

void Measurement::make_batch() {
  if (!plan_) plan_ = try_out(backend_, options_.timing, launches_);
  if (case_.transfer) plan_->graph = false;  // a program copies and launches each time anew
  batch_ = backend_.batch(launches_, plan_->size, plan_->graph);  // from the first set on
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

Timing Measurement::time(const TimingPlan& plan, double seconds_left, Measurement* rival,
                         Timing* rival_timing) {
  if (plan.state == State::settled) idle(plan.cooldown_seconds);
  const double deadline = now_seconds() + std::min(plan.budget_seconds, seconds_left);
  make_batch();
  std::vector<Batch*> batches{batch_.get()};
  if (rival != nullptr) {
    rival->make_batch();
    batches.push_back(rival->batch_.get());
  }
  Warmup warmup;
  if (plan.state == State::settled) warmup = warm_up(plan, watch_, batches, deadline);

  begin();
  if (rival != nullptr) rival->begin();
  Sampling mine(plan, watch_, deadline, warmup.throttled);
  Sampling theirs(plan, watch_, deadline, warmup.throttled);
  while (!mine.enough() || (rival != nullptr && !theirs.enough())) {
    mine.take(*batch_, plan_->size);
    if (rival != nullptr) theirs.take(*rival->batch_, rival->plan_->size);
  }
  Timing timing = mine.finish();
  launched_ = static_cast<std::int64_t>(timing.samples_seconds.size()) * plan_->size;
  timing.warmup = warmup;
  timing.kernel_seconds += warmup.kernel_seconds;
  if (rival != nullptr) {
    *rival_timing = theirs.finish();
    launched_ = 0;  // both wrote to the same C
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
