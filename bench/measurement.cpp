#include "bench/measurement.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace gemm::bench {
namespace {

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

}  // namespace

void Measurement::prepare(double seconds_left) {
  const Kernel& kernel = *case_.kernel;
  if (kernel.unsupported != nullptr)
    if (const auto why = kernel.unsupported(case_.problem, backend_.device())) throw Skipped(*why);
  if (case_.problem.precision == Precision::s32 && case_.problem.k > kLongestExactSum)
    throw Skipped("sums of more than " + std::to_string(kLongestExactSum) +
                  " products may leave 32 bits");
  if (seconds_left <= 0)
    throw Skipped("the run budget of " + seconds_text(*options_.run_budget_seconds) + " is spent");
  try {
    cache_.make_room(case_.problem);
    predict(seconds_left);
    data_ = cache_.get(case_.problem);
    for (const Operands& set : data_->sets())
      launches_.push_back(kernel.prepare(case_.problem, backend_.device(), set));
  } catch (const OutOfMemory& error) {
    throw Skipped(error.what());
  }
  data_->poison();
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
  backend_.run(corner_launch_[0]);  // loads the code
  double once = std::numeric_limits<double>::infinity();
  // The fastest of a few: one launch may be held up by whatever else the machine does.
  const double enough = now_seconds() + 0.05;
  for (int tries = 0; tries < 5 && (tries == 0 || now_seconds() < enough); ++tries)
    once = std::min(once, backend_.batch(corner_launch_, 1, false)->time().seconds);
  corner_launch_.clear();
  corner_data_.reset();

  const double launches = static_cast<double>(cache_.set_count(case_.problem)) +
                          4;  // verify; try out, warm up, sample twice
  const double row = (reference + once * launches) * flop(case_.problem) / flop(probe);
  if (row > options_.timing.budget_seconds)
    throw Skipped("predicted to take " + seconds_text(row) + ", the row budget is " +
                  seconds_text(options_.timing.budget_seconds) + " (--gemm_row_budget)");
  if (row > seconds_left)
    throw Skipped("predicted to take " + seconds_text(row) + ", the run budget has " +
                  seconds_text(seconds_left) + " left");
}

void Measurement::make_batch() {
  if (!plan_) plan_ = try_out(backend_, options_.timing, launches_);
  batch_ = backend_.batch(launches_, plan_->size, plan_->graph);  // from the first set on
}

// NaN into every C, so that what the following samples leave behind can be judged.
void Measurement::begin() {
  batch_->rewind();
  data_->poison();
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

Verdict Measurement::judge(std::int64_t launched) const {
  const Verdict verdict = data_->judge(case_.problem, std::min(launched, rotation_sets()));
  if (const auto wrong = complaint(case_.problem, verdict)) throw WrongResult(*wrong, verdict);
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

}  // namespace gemm::bench
