// One case from operands to verdict: prepare, verify, warm up, sample, verify again.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/base/device_errors.hpp"
#include "bench/base/outcome.hpp"
#include "bench/cases/cases.hpp"
#include "bench/cases/options.hpp"
#include "bench/device/problem_data.hpp"
#include "bench/measurement/ring.hpp"
#include "bench/timing/timing.hpp"

namespace gemm::bench {

// The case is not run; what() says why.
struct Skipped : Failure {
  explicit Skipped(const std::string& what, Outcome why = Outcome::unsupported)
      : Failure(what, why) {}
};

Skipped run_budget_is_spent(const Options& options);

// The kernel that another is interleaved with failed.
struct BaselineFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Runs a step of that kernel: what it throws is BaselineFailed, but for the end of the run.
template <typename Step>
auto of_baseline(Step&& step) {
  try {
    return step();
  } catch (const EndsTheRun&) {
    throw;
  } catch (const std::exception& error) {
    throw BaselineFailed(error.what());
  }
}

class Measurement {
 public:
  Measurement(Backend& backend, const GpuMonitor* monitor, ProblemCache& cache,
              const Options& options, const Case& which)
      : backend_(backend), monitor_(monitor), cache_(cache), options_(options), case_(which) {}

  // Verifies. Throws Skipped, Interrupted, DeviceLost, WrongResult, or std::runtime_error with what
  // the kernel ran into; so do the others below. `seconds_left` is what remains of the run's
  // budget.
  void prepare(double seconds_left);

  const Case& which() const { return case_; }
  // After time(), or after it was a baseline: launches of a sample, and how they were submitted.
  std::int64_t batch() const { return ring_ && !blocks_ ? ring_->plan().timed : batch_->size(); }
  std::string_view launch() const { return ring_ ? ring_->launch() : batch_->launch(); }
  std::int64_t sets() const { return std::ssize(ring_ ? ring_->launches() : launches_); }
  Launch kernel() const { return launches_[0]; }
  // Of the samples; none of a single sample, which is for a profiler.
  const std::optional<Checks>& checks() const { return checks_; }

  // Warms up and samples. With a `baseline` the samples of the two are interleaved, in one power
  // state, and `baseline_timing` gets the other's. No longer than the plan's budget or
  // `seconds_left`, but for the fewest samples. At the power limit the two run in blocks A B B A.
  // Throws Suspect and NotChecked, too, and BaselineFailed.
  Timing time(const TimingPlan& plan, double seconds_left, Measurement* baseline = nullptr,
              Timing* baseline_timing = nullptr);
  // Interleaved with another process: `next` ends a turn, says whether this one needs no more, and
  // waits for another turn; false: there is none. Each begins with launches that are not timed, and
  // ends when the device has finished.
  Timing time_in_turns(const TimingPlan& plan, double seconds_left,
                       const std::function<bool(bool enough)>& next);

  // The same step by step: with everything that the samples need, warmed up by warm_up() or
  // together with another; sample() until enough(); then finish().
  void begin(const TimingPlan& plan, double seconds_left);
  Warmup warm_up_alone();
  void begin_samples(const Warmup& warmup);
  bool enough();
  void sample();
  void sample_in_turn();
  // At the power limit: launches of one kernel until it is in steady state, blocks without a pause
  // between them, and then passes that are checked.
  void lead();
  void block();
  void check_passes();
  Timing finish();

  // Judges every element of what further launches leave behind; throws WrongResult.
  Verdict verify();

 private:
  // A duration measured on a corner of the problem, and what the whole is predicted to take.
  struct Prediction {
    double corner, whole;
  };

  void require_supported() const;
  // By corners that grow until the whole is predicted to fit into `limit`, or until what is fixed
  // matters no more: scaling it by the FLOP would blame a tall or thin problem for it.
  double predict(double limit, const std::function<Prediction(const Problem&)>& measure) const;
  // Throws Skipped if that exceeds the row's budget, or what is left of the run's.
  void require_time(double seconds, double seconds_left) const;
  Reference make_room(const std::function<double()>& left);
  Prediction time_data(const Problem& corner, Reference reference);
  Prediction time_launch(const Problem& corner);
  void prepare_launches(std::int64_t sets);
  // Throws Skipped if there is no time to verify and time it.
  void require_affordable(double seconds_left);
  void make_batch(std::span<const Launch> launches, BatchPlan batch);
  Elapsed pass();
  void drain();
  void require_honest_blocks() const;
  Verdict verify_until(double deadline);
  Verdict judge();

  Backend& backend_;
  const GpuMonitor* monitor_;
  ProblemCache& cache_;
  const Options& options_;
  Case case_;
  // Members, even those needed for a moment only: on a GPU that hangs, freeing them would wait for
  // ever, so that the whole measurement is then leaked.
  std::shared_ptr<ProblemData> data_, corner_data_;
  std::vector<Launch> launches_, corner_launch_;  // on each of the verified sets
  std::optional<Ring> ring_;
  std::unique_ptr<Batch> batch_;

  TimingPlan plan_;
  double deadline_ = 0, free_bytes_ = 0;
  Warmup warmup_;
  std::optional<Sampling> sampling_;
  std::int64_t ahead_ = 1, repetitions_ = 0;  // passes in flight; launches after a pass
  std::optional<Checks> checks_;
  std::optional<std::vector<Block>> blocks_;  // at the power limit
  std::vector<double> checked_seconds_;       // of a launch, in each of its passes
};

}  // namespace gemm::bench
