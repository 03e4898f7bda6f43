// What rows are measured with: the device, the operands, and the one or two cases that are
// prepared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bench/base/clock.hpp"
#include "bench/measurement/measurement.hpp"
#include "bench/peaks/physics.hpp"

namespace gemm::bench {

struct Workbench {
  std::unique_ptr<Backend> backend;
  Options options;
  std::unique_ptr<GpuMonitor> monitor = {};
  ProblemCache cache{*backend, options.fill, options.seed, options.rotate};
  Limits limits = {};
  std::unique_ptr<Measurement> active = {}, baseline = {};
  std::function<bool(bool enough)> turns = {};  // of a child
  double started = now_seconds();               // of a steady clock
  double kernel_seconds = 0;                    // of kernels under test

  double elapsed_seconds() const { return now_seconds() - started; }
  // Of the run's budget; infinite without one.
  double seconds_left() const;
  // Makes `place` a prepared measurement of the case; nothing to do if it is. Throws as
  // Measurement::prepare does.
  void prepare(std::unique_ptr<Measurement>& place, const Case& which);
  // After a failure: nothing that the kernel may have written to is used again.
  void discard(const Case& which);
  // Runs a step of a case that another is compared with, whose fault a failure is not; false if it
  // failed, which is printed. Throws Interrupted, DeviceLost.
  bool attempt(const Case& baseline, const std::function<void()>& step);
  // Frees the device's memory, for a child.
  void clear();
  // Why the device cannot have been so fast; nothing if it can.
  // On a CPU, whose peak is what a probe reaches, the probe is repeated beside a row that is above
  // it, and the larger figure is the peak from then on: in limits.peaks, not in the stored file.
  std::optional<std::string> impossible(const Case& which, const Timing& timing,
                                        std::int64_t operand_sets);

 private:
  std::optional<std::string> above_cpu(const Case& which, double flop_per_second);
};

}  // namespace gemm::bench
