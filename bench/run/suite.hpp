// The state of a run: the device, the data, the case being measured, and what was measured.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/peaks/physics.hpp"
#include "bench/record/record.hpp"
#include "bench/run/measurement.hpp"

namespace gemm::bench {

// The card of a GPU, watched; null where it cannot be, with why. Either way `device` gets the
// version of its driver if NVML tells it, since measured ceilings are kept by it.
std::unique_ptr<CardWatch> watch_card(DeviceInfo& device, double interval_seconds,
                                      std::string& why_not);

class Suite {
 public:
  // Takes the ceilings that `options` ask for, which may need to be measured first. Throws
  // Interrupted, DeviceLost.
  Suite(std::unique_ptr<Backend> backend, const Options& options, std::vector<std::string> command);

  const DeviceInfo& device() const { return backend_->device(); }
  Results& results() { return *results_; }
  double elapsed_seconds() const;
  bool lost() const { return !lost_.empty(); }

  // Fills the row: in a child if a user's kernel has a part in it, else here. It prepares the case,
  // if it is not the one that was measured last, times it, beside its rival if there is one, and
  // judges it. `samples` asks for so many, unless the row's budget ends them. Throws as Measurement
  // does; std::runtime_error, too, for a time that beats physics.
  void measure(const Case& which, std::optional<std::int64_t> samples, Row& row);
  // After a failure: nothing that the kernel may have written to is used again.
  void discard(const Case& which);
  // After `error` nothing can be measured any more.
  void lose_device(const std::string& error, const Case& during);

  // context.gemm as of now, but for the kernels.
  nlohmann::ordered_json run_to_json() const;

 private:
  bool needs_child(const Case& which) const;
  void measure_in_child(const Case& which, std::optional<std::int64_t> samples, Row& row);
  double seconds_left() const;
  // A row that beats a measured compute roof shows that something else ran when that was measured.
  void doubt_ceilings(const Row& row);
  void require_usable() const;  // throws Interrupted, or Skipped once the device is lost
  std::vector<MeasuredCeiling> measured_ceilings(const DeviceInfo& device);
  std::optional<Baseline> fastest(const std::vector<Case>& cases);
  // Makes sure that there is a library figure to compare a row with.
  void measure_baseline(const Case& which);
  std::vector<Case> named_rivals(const Case& which) const;  // by --gemm_versus
  std::optional<Case> rival_of(const Case& which);
  // In short trials; what does not run is unfit.
  std::optional<Case> fastest_rival(const std::vector<Case>& rivals);
  void prepare(std::unique_ptr<Measurement>& place, const Case& which);
  // Runs a step of the rival; false if it failed, which is said once.
  bool rival_can(const Case& rival, const std::function<void()>& step);
  std::optional<std::string> impossible(const Case& which, const Timing& timing,
                                        std::int64_t operand_sets) const;

  std::unique_ptr<Backend> backend_;
  Options options_;
  std::unique_ptr<CardWatch> watch_;
  std::unique_ptr<Results> results_;
  Limits limits_;
  ProblemCache cache_;
  std::unique_ptr<Measurement> active_, rival_;
  std::vector<Problem> without_library_;          // where measuring it was tried in vain
  std::vector<std::pair<Problem, Case>> rivals_;  // the fastest of those that versus names
  std::string lost_;
  std::vector<Case> unfit_;                  // to race: they failed
  double started_ = 0, kernel_seconds_ = 0;  // the latter: of kernels under test
  bool doubted_ = false;
};

}  // namespace gemm::bench
