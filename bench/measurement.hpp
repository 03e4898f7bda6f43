// One case from operands to verdict: prepare, verify, warm up, sample, verify again.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "bench/cases.hpp"
#include "bench/options.hpp"
#include "bench/problem_data.hpp"

namespace gemm::bench {

// The case is not run; what() says why.
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The kernel computed something else; what() says where and by how much.
struct WrongResult : std::runtime_error {
  WrongResult(const std::string& what, const Verdict& v) : std::runtime_error(what), verdict(v) {}
  Verdict verdict;
};

// The user pressed Ctrl-C.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

// Ctrl-C and SIGTERM set a flag that is looked at between launches; the second one ends the
// process.
void watch_for_interrupt();
bool interrupted();

// Of a steady clock.
double now_seconds();

// How launches are gathered into samples. Google Benchmark aborts when the repetitions of a case
// differ in their number of iterations, so that a case keeps the plan of its first repetition.
struct BatchPlan {
  std::int64_t size;
  bool graph;
};

class Measurement {
 public:
  // Ready to be sampled: verified and warm. Throws Skipped, Interrupted, DeviceLost, WrongResult,
  // or std::runtime_error with what the kernel ran into. `seconds_left` is what remains of the
  // run's budget; without a plan one is made from the warm-up.
  Measurement(Backend& backend, ProblemCache& cache, const Options& options, const Case& which,
              double seconds_left, std::optional<BatchPlan> plan = std::nullopt);

  const Case& which() const { return case_; }
  const BatchPlan& plan() const { return *plan_; }
  std::int64_t rotation_sets() const { return static_cast<std::int64_t>(launches_.size()); }
  std::string_view launch() const { return batch_->launch(); }

  // NaN into every C, so that what the following samples leave behind can be judged.
  void begin();

  // Times one batch: mean seconds of a launch. Throws like the constructor.
  double sample();

  // Judges what the launches so far left behind; throws WrongResult.
  Verdict verify() const;

 private:
  void predict(const ProblemCache& cache, double seconds_left) const;
  void prepare();
  void warm_up();
  BatchPlan plan_for(double seconds_per_launch) const;

  Backend& backend_;
  const Options& options_;
  Case case_;
  std::shared_ptr<ProblemData> data_;
  std::vector<Launch> launches_;  // one for each operand set
  std::unique_ptr<Batch> batch_;
  std::optional<BatchPlan> plan_;
  std::int64_t launched_ = 0;  // since C was poisoned
};

}  // namespace gemm::bench
