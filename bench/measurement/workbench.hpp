// What rows are measured with: the device, the operands, and the one or two cases that are
// prepared. Each row is measured alone or, with --gemm_versus, interleaved sample by sample with
// another kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bench/base/clock.hpp"
#include "bench/measurement/measurement.hpp"
#include "bench/peaks/physics.hpp"
#include "bench/record/record.hpp"

namespace gemm::bench {

// Whether the baseline is the library on the problem of the case.
bool is_library_for(const Case& which, const Case& baseline);

struct Workbench {
  Workbench(std::unique_ptr<Backend> with, const Options& given)
      : backend(std::move(with)), options(given) {}

  std::unique_ptr<Backend> backend;
  Options options;
  std::unique_ptr<GpuMonitor> monitor;
  ProblemCache cache{*backend, options.fill, options.seed, options.rotate};
  Limits limits;
  std::unique_ptr<Measurement> active, baseline;
  double started = now_seconds();  // of a steady clock
  double kernel_seconds = 0;       // of kernels under test

  double elapsed_seconds() const { return now_seconds() - started; }
  // Of the run's budget; infinite without one.
  double seconds_left() const;

  std::vector<Case> named_baselines(const Case& which) const;  // by --gemm_versus
  // The fastest of them in a trial; nothing if none runs, or if the case is among them.
  std::optional<Case> baseline_of(const Case& which);
  // Prepares, verifies and times the case, with its baseline if there is one, verifies what both
  // left behind, and fills the row. Throws as Measurement does; std::runtime_error, too, for a time
  // that beats physics.
  void run(const Case& which, std::optional<Case> with, std::optional<std::int64_t> samples,
           Row& row);
  // The rate of the fastest library on a problem, measured now; nothing if none runs.
  std::optional<LibraryRate> time_libraries(const Problem& p);

  // After a failure: nothing that the kernel may have written to is used again.
  void discard(const Case& which);
  // Frees the device's memory, for a child.
  void clear();

 private:
  // Makes `place` a prepared measurement of the case; nothing to do if it is. Throws as
  // Measurement::prepare does.
  void prepare(std::unique_ptr<Measurement>& place, const Case& which);
  // Runs a step of a case that another is compared with, whose fault a failure is not; false if it
  // failed, which is printed. Throws Interrupted, DeviceLost.
  bool attempt(const Case& compared, const std::function<void()>& step);
  // The same; a case that failed is no baseline any more.
  bool try_baseline(const Case& named, const std::function<void()>& step);
  // In short trials.
  std::optional<Case> fastest_baseline(const std::vector<Case>& baselines);
  // Throws std::runtime_error if the device cannot have been so fast.
  void require_possible(const Case& which, const Timing& timing, std::int64_t operand_sets) const;

  std::vector<std::pair<Problem, Case>> fastest_;  // of the baselines that are named
  std::vector<Case> unfit_;                        // baselines that failed
};

}  // namespace gemm::bench
