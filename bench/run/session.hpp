// A session: opens the device, measures cases one after another, and keeps the results for the
// record. A row is a case, alone or interleaved with a baseline; where code of a user has a part in
// it, that runs in a child (run/child.hpp).
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/measurement/measurement.hpp"
#include "bench/peaks/physics.hpp"
#include "bench/record/record.hpp"
#include "bench/run/exchange.hpp"

namespace gemm::bench {

// Writes into the row what measure() threw.
void say_why_untimed(Row& row, const std::exception& error);

class Session {
 public:
  // Takes the peaks that `options` ask for, which may need to be measured first. Throws
  // Interrupted, DeviceLost.
  Session(std::unique_ptr<Backend> backend, const Options& options,
          std::vector<std::string> command, Environment environment = {});

  const DeviceInfo& device() const { return backend_->device(); }
  Results& results() { return *results_; }
  const GpuMonitor* monitor() const { return monitor_.get(); }
  bool lost() const { return !lost_.empty(); }

  // Fills the row: in a child if a user's kernel has a part in it, else here. After a failure
  // nothing that the kernel may have written to is used again. Throws Skipped, Interrupted,
  // DeviceLost, WrongResult, Suspect, NotChecked, and std::runtime_error with what the kernel ran
  // into, how a child ended, or why its time is impossible.
  void measure(const Case& which, Row& row);
  // The fastest of these, which a short trial finds, measured here and alone, by that many samples
  // if given. Nothing if all fail, which is said, or if it is skipped. Throws EndsTheRun.
  std::optional<Row> measure_fastest(std::vector<Case> cases,
                                     std::optional<std::int64_t> samples = {});
  // After `error` nothing can be measured any more.
  void lose_device(const std::string& error, const Case& during);

  // context.gemm as of now, but for the kernels.
  nlohmann::ordered_json run_to_json() const;

 private:
  void take_peaks(Conditions& run);
  double elapsed_seconds() const;
  double seconds_left() const;  // of the run's budget; infinite without one

  // What --gemm_versus names for the case and has not failed; none if the case is among them.
  std::vector<Case> baselines_of(const Case& which) const;
  // In trials, two at a time and interleaved, so that the state of the GPU favours none. What fails
  // is left out from then on; nothing if all do.
  std::optional<Case> fastest_of(const std::vector<Case>& cases);
  // Says why rows are not compared with it, and that it is not tried again.
  void leave_out(const Case& baseline, const std::string& why);
  // Makes sure that there is a library's rate for the problem, if one can be had.
  void measure_library(const Case& which);

  // These fill a row; they throw BaselineFailed for what is the baseline's fault.
  void measure_here(const Case& which, const std::optional<Case>& baseline, const TimingPlan& plan,
                    Row& row);
  void measure_apart(const Case& which, const Case& baseline, Row& row);
  // `cases`: all that run in the child, of which it answers with the row of `which`.
  Row row_of_child(Request request, const Case& which, const std::vector<Case>& cases,
                   const BetweenTurns& turns = {});

  // Makes `place` a prepared measurement of the case; nothing to do if it is.
  Measurement& prepare(std::unique_ptr<Measurement>& place, const Case& which);
  // After it was timed: verifies again and fills the row.
  void complete(Measurement& mine, Row& row);
  // Throws std::runtime_error if the device cannot have been so fast.
  void require_possible(const Case& which, const Timing& timing, std::int64_t operand_sets);
  void discard(const Problem& problem);  // what a kernel may have written to
  void clear();                          // the device's memory, for a child

  std::unique_ptr<Backend> backend_;
  Options options_;
  std::unique_ptr<GpuMonitor> monitor_;
  ProblemCache cache_{*backend_, options_.fill, options_.seed, options_.rotate};
  std::unique_ptr<Measurement> active_, baseline_;
  std::optional<Results> results_;
  Limits limits_;

  std::vector<Case> unfit_;                                                // baselines that failed
  std::vector<std::pair<std::vector<Case>, std::optional<Case>>> trials_;  // and their winners
  std::vector<Problem> without_library_;  // where measuring one was tried in vain

  double started_ = 0;         // of a steady clock
  double kernel_seconds_ = 0;  // of kernels under test
  GpuHealth health_before_;
  std::optional<CpuTimes> cpu_before_ = read_cpu_times();
  std::optional<double> load_before_ = load_average();
  std::string lost_;
};

}  // namespace gemm::bench
