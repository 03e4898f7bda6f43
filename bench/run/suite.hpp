// A session: opens the device, measures cases one after another, and keeps the results for the
// record.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/measurement/interleaving.hpp"
#include "bench/measurement/library_rates.hpp"
#include "bench/measurement/workbench.hpp"
#include "bench/record/record.hpp"
#include "bench/run/child.hpp"

namespace gemm::bench {

// Writes into the row what measure() threw.
void say_why_untimed(Row& row, const std::exception& error);

// There is not enough memory for the operands of two processes.
struct NoRoom : std::exception {};

class Suite {
 public:
  // Takes the peaks that `options` ask for, which may need to be measured first. Throws
  // Interrupted, DeviceLost.
  Suite(std::unique_ptr<Backend> backend, const Options& options, std::vector<std::string> command,
        Environment environment = {});

  const DeviceInfo& device() const { return bench_.backend->device(); }
  Results& results() { return *results_; }
  const GpuMonitor* monitor() const { return bench_.monitor.get(); }
  bool lost() const { return !lost_.empty(); }

  // Fills the row: in a child if a user's kernel has a part in it, else here. `samples` asks for so
  // many, unless the row's budget ends them. Throws as Interleaving::run and measure_in_child do.
  void measure(const Case& which, std::optional<std::int64_t> samples, Row& row);
  // After a failure: nothing that the kernel may have written to is used again.
  void discard(const Case& which);
  // After `error` nothing can be measured any more.
  void lose_device(const std::string& error, const Case& during);

  // context.gemm as of now, but for the kernels.
  nlohmann::ordered_json run_to_json() const;

 private:
  // Runs the same program, if need be in Python, with the same options and --gemm_child, which
  // answers with one row. Throws Skipped, Interrupted, Suspect, and std::runtime_error with how the
  // child failed or ended.
  void measure_in_child(const Case& which, const std::vector<Case>& baselines,
                        std::optional<std::int64_t> samples, Row& row);
  // Throws NoRoom, too.
  void measure_apart(const Case& which, const Case& baseline, std::optional<std::int64_t> samples,
                     Row& row);
  Row row_of_child(const Case& which, const std::vector<Case>& cases,
                   std::optional<std::int64_t> samples, const BetweenTurns& turns);
  bool needs_child(const Case& which, const std::vector<Case>& baselines) const;

  Workbench bench_;
  std::unique_ptr<Results> results_;
  std::optional<LibraryRates> library_rates_;
  Interleaving interleaving_{bench_};
  GpuHealth health_before_;
  std::optional<CpuTimes> cpu_before_ = read_cpu_times();
  std::optional<double> load_before_ = load_average();
  std::string lost_;
};

}  // namespace gemm::bench
