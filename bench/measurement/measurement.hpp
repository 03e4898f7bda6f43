// One case from operands to verdict: prepare, verify, warm up, sample, verify again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cases/cases.hpp"
#include "bench/cases/options.hpp"
#include "bench/device/problem_data.hpp"
#include "bench/measurement/audit.hpp"
#include "bench/timing/timing.hpp"

namespace gemm::bench {

// The case is not run; what() says why.
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Skipped run_budget_is_spent(const Options& options);

// The kernel computed something else; what() says where and by how much.
struct WrongResult : std::runtime_error {
  WrongResult(const std::string& what, const Verdict& v) : std::runtime_error(what), verdict(v) {}
  Verdict verdict;
};

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
  // After time(), or after it was a baseline.
  const BatchPlan& plan() const { return *plan_; }
  std::int64_t rotation_sets() const { return std::ssize(launches_); }
  std::string_view launch() const { return batch_->launch(); }
  // Without the copies around it.
  Launch kernel() const;

  // Warms up and samples. With a `baseline` the samples of the two are interleaved, in one power
  // state, and `baseline_timing` gets the other's. With `audited` there are audits among the
  // samples, unless the case has a transfer or the kernel works on operands that it rearranged
  // beforehand. No longer than the plan's budget or `seconds_left`.
  Timing time(const TimingPlan& plan, double seconds_left, Measurement* baseline = nullptr,
              Timing* baseline_timing = nullptr, std::optional<AuditResult>* audited = nullptr);

  // Judges what the timed launches left behind; throws WrongResult. Where a baseline wrote to the
  // same matrices, what a further batch leaves behind.
  Verdict verify();

  // After time(), of a case with a transfer: the copies and the kernel, each alone.
  PartTimes time_parts();

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
  Transferred transferred(const Problem& p) const;
  void prepare_launches(std::int64_t sets);
  // How many operand sets can be verified and timed; throws Skipped if not even the fewest can.
  std::int64_t affordable_sets(double seconds_left);
  void poison();
  void make_batch();
  void begin();
  Verdict judge(std::int64_t launched);

  Backend& backend_;
  const GpuMonitor* monitor_;
  ProblemCache& cache_;
  const Options& options_;
  Case case_;
  // Members, even those needed for a moment only: on a GPU that hangs, freeing them would wait for
  // ever, so that the whole measurement is then leaked.
  std::shared_ptr<ProblemData> data_, corner_data_;
  std::unique_ptr<EndToEnd> end_to_end_, corner_end_to_end_;  // of a case with a transfer
  std::vector<Launch> launches_, corner_launch_;              // one for each operand set
  std::optional<BatchPlan> plan_;
  std::unique_ptr<Batch> batch_;
  std::int64_t launched_ = 0;  // since C was poisoned; 0: verify() must launch again
};

}  // namespace gemm::bench
