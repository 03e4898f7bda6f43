// The state of a run: the device, the data, the case being measured, and what was measured.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/measurement.hpp"
#include "bench/record.hpp"

namespace gemm::bench {

class Suite {
 public:
  Suite(std::unique_ptr<Backend> backend, const Options& options);

  Backend& backend() { return *backend_; }
  const Options& options() const { return options_; }
  Results& results() { return results_; }
  double elapsed_seconds() const;

  // The measurement of a case, warm; made anew, to the plan if there is one, when the case is not
  // the one measured last. Throws as Measurement does.
  Measurement& measurement(const Case& which, std::optional<BatchPlan> plan);
  // After a failure: nothing that the kernel may have written to is used again.
  void discard(const Case& which);
  // After `error` nothing can be measured any more.
  void lose_device(const std::string& error, const Case& during);

  // Makes sure that there is a library figure to compare a row with, and costs nothing if there is
  // one.
  void measure_baseline(const Case& which);

 private:
  double seconds_left() const;
  void require_usable() const;  // throws Interrupted, or Skipped once the device is lost

  std::unique_ptr<Backend> backend_;
  Options options_;
  Results results_;
  ProblemCache cache_;
  std::unique_ptr<Measurement> active_;
  std::vector<Problem> without_library_;  // where measuring it was tried in vain
  std::string lost_;
  double started_;
};

}  // namespace gemm::bench
