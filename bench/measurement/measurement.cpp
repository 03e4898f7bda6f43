#include "bench/measurement/measurement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/base/clock.hpp"
#include "bench/base/device_errors.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/terminal.hpp"
#include "bench/base/text.hpp"
#include "kernels/tokens.hpp"

namespace gemm::bench {
namespace {

constexpr double kBatchOfBlock = 0.05;      // seconds: the host's gap after it is 0.1 % of these
constexpr double kCheckedOfStretch = 0.25;  // seconds of checked passes after a stretch
// Launches of an honest kernel take as long in blocks as in passes that are checked, or longer: the
// clock is higher where operands are renewed. On a CPU other programs run.
constexpr double kFastBlocks = 1.03, kFastBlocksOnCpu = 1.5;

// Python needs up to 100 us for a launch.
constexpr double kPythonGraphBelowSeconds = 1e-3;

std::string seconds_text(double seconds) { return formatted("%.3g s", seconds); }

}  // namespace

Skipped run_budget_is_spent(const Options& options) {
  return Skipped("the run budget of " + seconds_text(options.run_budget_seconds.value_or(0)) +
                     " is spent: raise --gemm_run_budget",
                 Outcome::timeout);
}

void Measurement::require_supported() const {
  const Kernel& kernel = *case_.kernel;
  const Problem& p = case_.problem;
  if (const std::int64_t longest = traits_of(p.precision).longest_sum; p.k > longest)
    throw Skipped("requires k <= " + std::to_string(longest) +
                  ": longer sums may overflow 32 bits");
  if (!kernel.unsupported) return;
  if (const auto why = kernel.unsupported(p, backend_.device())) throw Skipped(*why);
}

void Measurement::prepare(double seconds_left) {
  require_supported();
  if (seconds_left <= 0) throw run_budget_is_spent(options_);
  const Problem& p = case_.problem;
  const double started = now_seconds();
  const auto left = [&] { return seconds_left - (now_seconds() - started); };
  try {
    data_ = cache_.get(p, make_room(left), cache_.sets());
    require_affordable(left());
    prepare_launches(std::ssize(data_->sets()));
  } catch (const OutOfMemory& error) {
    throw Skipped(error.what());
  }
  verify_until(now_seconds() + std::min(options_.timing.budget_seconds, left()));
}

Verdict Measurement::verify_until(double deadline) {
  show_phase("verifying");
  data_->poison();
  for (const Launch& launch : launches_) {
    if (interrupted()) throw Interrupted();
    if (now_seconds() > deadline)
      throw Skipped("verification took longer than the budget: raise --gemm_row_budget",
                    Outcome::timeout);
    backend_.run(launch);
  }
  return judge();
}

// The FP64 product if there are memory and time for it, else Freivalds' check, which GELU does not
// have.
Reference Measurement::make_room(const std::function<double()>& left) {
  const Problem& p = case_.problem;
  const auto seconds = [&](Reference reference) {
    return predict(std::min(options_.timing.budget_seconds, left()),
                   [&](const Problem& corner) { return time_data(corner, reference); });
  };
  try {
    cache_.make_room(p, Reference::product, cache_.sets());
    if (cache_.holds(p, cache_.sets()) ||
        seconds(Reference::product) <= std::min(options_.timing.budget_seconds, left()))
      return Reference::product;
    if (p.activation == Activation::bias_gelu) require_time(seconds(Reference::product), left());
  } catch (const OutOfMemory&) {  // the check needs less
    if (p.activation == Activation::bias_gelu) throw;
    cache_.make_room(p, Reference::rows, cache_.sets());
  }
  require_time(seconds(Reference::rows), left());
  return Reference::rows;
}

void Measurement::require_time(double seconds, double seconds_left) const {
  const double budget = options_.timing.budget_seconds;
  if (!(seconds <= budget))
    throw Skipped("predicted to take " + seconds_text(seconds) + ", more than the row budget of " +
                      seconds_text(budget) + ": raise --gemm_row_budget",
                  Outcome::timeout);
  if (!(seconds <= seconds_left))
    throw Skipped("predicted to take " + seconds_text(seconds) + ", but the run budget has only " +
                      seconds_text(std::max(0.0, seconds_left)) + " left: raise --gemm_run_budget",
                  Outcome::timeout);
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
    // As the size of a product, so that a corner of many products is a moment's work.
    corner.batch = static_cast<std::int32_t>(std::min<std::int64_t>(corner.batch, edge / 64));
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
    return reference == Reference::product ? flop(p) : compulsory_bytes(p);
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
      once = std::min(once, Batch(backend_, launches, 1, false).time().seconds);
    return once;
  };
  const double larger = flop(p) / flop(corner);
  if (corner == p) {
    prepare_launches(1);
    const double once = fastest(launches_);
    return {once, once};
  }
  corner_launch_ = {case_.kernel->prepare(corner, backend_.device(), data_->sets()[0])};
  const double once = fastest(corner_launch_);
  corner_launch_.clear();
  return {once, once * larger};
}

void Measurement::require_affordable(double seconds_left) {
  // Besides the verified ones: two for calibration, warm-up, three samples with a lead as long, and
  // the last verification.
  const auto launches = static_cast<double>(std::ssize(data_->sets()) + 9);
  const double limit = std::min(options_.timing.budget_seconds, seconds_left);
  const double once =
      predict(limit / launches, [&](const Problem& corner) { return time_launch(corner); });
  require_time(once * launches, seconds_left);
}

void Measurement::prepare_launches(std::int64_t sets) {
  while (std::ssize(launches_) < sets)
    launches_.push_back(
        case_.kernel->prepare(case_.problem, backend_.device(), data_->sets()[launches_.size()]));
}

void Measurement::make_batch(std::span<const Launch> launches, BatchPlan plan) {
  batch_ = std::make_unique<Batch>(backend_, launches, plan.size, plan.graph);
}

void Measurement::begin(const TimingPlan& plan, double seconds_left) {
  plan_ = plan;
  if (plan.state != State::burst) idle(plan.cooldown_seconds);
  deadline_ = now_seconds() + std::min(plan.budget_seconds, seconds_left);
  checks_.reset();
  sampling_.reset();
  blocks_.reset();
  checked_seconds_.clear();
  batch_.reset();
  ring_.reset();  // its memory is free then
  if (!case_.kernel->python.empty()) plan_.graph_below_seconds = kPythonGraphBelowSeconds;
  const double seconds = seconds_of_launch(backend_, launches_);
  if (plan.samples == 1)
    return make_batch(launches_,
                      plan_batch(plan_, seconds, std::ssize(launches_), backend_.device().kind));
  RingPlan ring = plan_ring(plan_, seconds, case_.problem, backend_.device(), backend_.free_bytes(),
                            options_.rotate);
  try {
    ring_.emplace(backend_, case_, options_.fill, ring);
  } catch (const OutOfMemory& error) {
    throw Skipped(error.what());
  } catch (const std::exception&) {
    if (!ring.graph) throw;
    ring.graph = false;  // it does what a graph cannot hold: waits for the device, for example
    ring_.emplace(backend_, case_, options_.fill, ring);
  }
  constexpr std::int64_t kAhead = 3;
  ahead_ = backend_.device().kind == Device::Kind::gpu && !case_.kernel->rearranges ? kAhead : 1;
  if (plan.state == State::limit && !plan.samples) blocks_.emplace();
  std::int64_t passes = 1;  // whole ones are one graph
  if (blocks_)
    passes = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(std::min(kBatchOfBlock / seconds, 1e3)) / ring.launches);
  make_batch(ring_->launches(), {passes * ring.launches, ring.graph});
}

void Measurement::begin_samples(const Warmup& warmup) {
  show_phase("sampling");
  warmup_ = warmup;
  if (!ring_) batch_->rewind();
  sampling_.emplace(plan_, monitor_, deadline_, warmup.throttled);
  free_bytes_ = backend_.free_bytes();
  repetitions_ = 0;
}

bool Measurement::enough() {
  return sampling_->enough() && (!ring_ || ring_->judged() || sampling_->late());
}

Elapsed Measurement::pass() {
  do ring_->enqueue(repetitions_);
  while (plan_.state != State::burst && ring_->queued() < ahead_);
  const Elapsed time = ring_->read();
  if (warmup_.throttled) repetitions_ = ring_->repetitions_at_cap();
  return time;
}

void Measurement::drain() {
  while (ring_ && ring_->queued() > 0) ring_->read();
  backend_.finish_all();
}

void Measurement::sample() {
  if (interrupted()) throw Interrupted();
  if (plan_.state == State::burst) idle(plan_.cooldown_seconds);
  const double from = now_seconds();
  if (!ring_) return sampling_->add(batch_->time(), batch_->size(), from);
  const Elapsed time = pass();
  // More than were asked for are for the checks alone.
  if (!plan_.samples || sampling_->taken() < *plan_.samples)
    sampling_->add(time, ring_->plan().timed, from);
}

void Measurement::lead() {
  if (sampling_ && case_.kernel->rearranges)  // its launches are others since the passes
    make_batch(ring_->launches(), {batch_->size(), ring_->plan().graph});
  const Warmup before = warmup_, warmup = warm_up_alone();
  if (!sampling_) return begin_samples(warmup);
  warmup_ = warmup;  // the shortest counts, and whether all settled
  warmup_.seconds = std::min(warmup.seconds, before.seconds);
  warmup_.settled = warmup.settled && before.settled;
  warmup_.kernel_seconds += before.kernel_seconds;
}

void Measurement::block() {
  show_phase("sampling");
  Block block;
  const double start = now_seconds();
  double kernel_seconds = 0, cycles = 0;
  while (block.seconds < plan_.block_seconds) {
    if (interrupted()) throw Interrupted();
    const double from = now_seconds();
    const Elapsed time = batch_->time();
    sampling_->add(time, batch_->size(), from);
    kernel_seconds += time.seconds;
    cycles += time.seconds * time.sm_hz.value_or(std::numeric_limits<double>::quiet_NaN());
    block.launches += batch_->size();
    block.seconds = now_seconds() - start;
  }
  block.launch_seconds = kernel_seconds / static_cast<double>(block.launches);
  const double sm_hz = cycles / kernel_seconds;
  read_block(block,
             monitor_ != nullptr ? monitor_->between(start, start + block.seconds)
                                 : std::vector<GpuReading>(),
             std::isnan(sm_hz) ? std::nullopt : std::optional(sm_hz));
  blocks_->push_back(block);
}

void Measurement::check_passes() {
  const double start = now_seconds();
  do checked_seconds_.push_back(pass().seconds / static_cast<double>(ring_->plan().timed));
  while (now_seconds() < start + kCheckedOfStretch || !(ring_->judged() || sampling_->late()));
  drain();
}

void Measurement::require_honest_blocks() const {
  const double checked = range_of(checked_seconds_)->median;
  double seconds = 0, launches = 0;
  for (const Block& block : *blocks_) {
    launches += static_cast<double>(block.launches);
    seconds += static_cast<double>(block.launches) * block.launch_seconds;
  }
  const double faster = checked / (seconds / launches);
  if (!(faster <= (backend_.device().kind == Device::Kind::gpu ? kFastBlocks : kFastBlocksOnCpu)))
    throw Suspect(formatted(
        "right, but launches that are not checked are %.3g times as fast as those that are",
        faster));
}

Timing Measurement::finish() {
  drain();
  if (ring_) checks_ = ring_->checks();
  if (blocks_) require_honest_blocks();
  Timing timing = sampling_->finish();
  timing.warmup = warmup_;
  if (blocks_) {
    timing.blocks = *blocks_;
    timing.warmup.energy = energy_of(*blocks_);
  }
  if (backend_.device().kind == Device::Kind::gpu)
    timing.memory_kept_bytes = std::max(0.0, free_bytes_ - backend_.free_bytes());
  timing.kernel_seconds += warmup_.kernel_seconds;
  return timing;
}

Timing Measurement::time(const TimingPlan& plan, double seconds_left, Measurement* baseline,
                         Timing* baseline_timing) {
  std::vector<Measurement*> both{this};
  if (baseline != nullptr) both.push_back(baseline);
  const auto on = [&](Measurement* one, auto&& step) {
    one == this ? step(*one) : of_baseline([&] { step(*one); });
  };
  const auto each = [&](auto&& step) {
    for (Measurement* one : both) on(one, step);
  };
  std::vector<std::function<Elapsed()>> batches;
  each([&](Measurement& one) {
    one.begin(plan, seconds_left);
    batches.emplace_back([&batch = *one.batch_] { return batch.time(); });
  });
  if (blocks_) {
    require_time(plan.seconds_of_blocks(std::ssize(both)), seconds_left);
    const std::int64_t count = 2 * plan.rounds * std::ssize(both);
    const auto of_block = [&](std::int64_t i) {  // A B B A; none beyond the last
      return i < 0 || i == count ? nullptr : i % 4 == 1 || i % 4 == 2 ? both.back() : this;
    };
    for (std::int64_t i = 0; i < count; ++i)
      on(of_block(i), [&](Measurement& one) {
        if (of_block(i - 1) != &one) one.lead();
        one.block();
        if (of_block(i + 1) != &one) one.check_passes();
      });
  } else {
    Warmup warmup;
    if (plan.state != State::burst) warmup = warm_up(plan, monitor_, batches, deadline_);
    each([&](Measurement& one) { one.begin_samples(warmup); });
    while (!std::ranges::all_of(both, &Measurement::enough))
      each([](Measurement& one) { one.sample(); });
  }
  Timing timing;
  each([&](Measurement& one) { (&one == this ? timing : *baseline_timing) = one.finish(); });
  return timing;
}

Warmup Measurement::warm_up_alone() {
  const std::function<Elapsed()> batches[] = {[this] { return batch_->time(); }};
  return plan_.state != State::burst ? warm_up(plan_, monitor_, batches, deadline_) : Warmup{};
}

void Measurement::sample_in_turn() {
  if (plan_.state != State::burst) batch_->time();
  ahead_ = 1;
  repetitions_ = 0;
  sample();
  backend_.finish_all();
}

Timing Measurement::time_in_turns(const TimingPlan& plan, double seconds_left,
                                  const std::function<bool(bool enough)>& next) {
  begin(plan, seconds_left);
  begin_samples(warm_up_alone());
  while (next(enough())) sample_in_turn();
  if (sampling_->taken() == 0) throw std::runtime_error("it had no turn");
  return finish();
}

Verdict Measurement::judge() {
  const std::int64_t count = std::ssize(launches_);
  const Verdict verdict = data_->judge(case_.problem, count);
  if (auto wrong = complaint(case_.problem, verdict)) {
    if (const std::string pattern = data_->pattern(case_.problem, count); !pattern.empty())
      *wrong += "; " + pattern;
    throw WrongResult(*wrong, verdict);
  }
  return verdict;
}

Verdict Measurement::verify() { return verify_until(std::numeric_limits<double>::infinity()); }

}  // namespace gemm::bench
