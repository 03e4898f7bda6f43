// The record: Google Benchmark's JSON with `gemm` objects in addition to its keys
// (results/schema.json).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/base/outcome.hpp"
#include "bench/cases/cases.hpp"
#include "bench/cases/options.hpp"
#include "bench/device/device.hpp"
#include "bench/device/environment.hpp"
#include "bench/device/host.hpp"
#include "bench/kernel_code/kernel_code.hpp"
#include "bench/peaks/measured_peaks.hpp"
#include "bench/peaks/peaks.hpp"
#include "bench/timing/timing.hpp"
#include "bench/timing/versus.hpp"
#include "bench/verification/verdict.hpp"

namespace gemm::bench {

// As PlanChoice.
struct RowPlan {
  std::string name, source;
};

// One kernel on one problem, one repetition.
struct Row {
  Case which;
  Timing timing;
  std::int64_t rotation_sets = 0, batch = 0;  // 0: never got that far
  std::string launch;
  std::optional<RowPlan> plan;  // of a kernel that chooses
  LaunchedKernels launched;     // by one launch
  std::optional<Verdict> verdict;
  std::optional<Versus> versus;
  std::optional<Checks> checks;    // none: no rate (a single sample)
  std::optional<OthersLoad> host;  // from its preparation to its last check
  std::string skipped, failed;     // why; at most one is not empty
  Outcome outcome = Outcome::passed;
  bool suspect = false;  // failed: the result is right, but the time is not that of the work

  bool timed() const {
    return skipped.empty() && failed.empty() && !timing.samples_seconds.empty();
  }
  // "FAILED: c[0,0] = 1, expected 2 ...", of a row that is not timed.
  std::string why_untimed() const {
    return failed.empty() ? "SKIPPED: " + skipped : (suspect ? "SUSPECT: " : "FAILED: ") + failed;
  }
  // Whether it has a rate: of a single sample, for a profiler, nothing was checked.
  bool rated() const { return timed() && checks; }
  double seconds() const { return timing.quantile_seconds(0.5); }
  double flop_per_second() const { return flop(which.problem) / seconds(); }
};

// What is the same for every row of a run.
struct Conditions {
  Options options;
  DeviceInfo device;
  std::vector<Peak> peaks;
  std::vector<MeasuredPeak> measured;
  std::optional<Overheads> overheads;
  std::string timer;
  std::vector<std::string> command;
  std::optional<GpuFacts> gpu;  // empty: NVML could not be had,
  std::string why_no_monitor;   // for this reason
  Environment environment = {};
  std::optional<std::uint64_t> gpu_processes;  // of others, at the start
};

// What is to be said of how a row was measured, by a code that stays. Either a point of NVIDIA's
// guideline that it does not meet, or, with `doubt`, why its own figure is less certain than it
// should be. The value (bytes, seconds, a count, a fraction) was beyond the limit.
struct Deviation {
  std::string code;
  std::optional<double> value, limit;
  bool doubt = false;
};

// Rate of a library on a problem.
struct LibraryRate {
  std::string label;
  double flop_per_second;
};

// All rows so far and what they are measured against.
class Results {
 public:
  explicit Results(Conditions run) : run_(std::move(run)) {}

  const Conditions& run() const { return run_; }
  // Where a row showed that one is higher; those that were unknown stay so.
  void raise_peaks(const std::vector<Peak>& peaks) {
    for (std::size_t i = 0; i < peaks.size(); ++i)
      if (run_.peaks[i].per_second) run_.peaks[i] = peaks[i];
  }
  // Reasons become one line that every reader of the record accepts.
  void add(const std::string& name, Row row);
  // Stands in for a library row where the filter left the library out.
  void set_library_rate(const Problem& p, LibraryRate library_rate) {
    library_rates_.emplace_back(p, std::move(library_rate));
  }

  // Google Benchmark may call a case before the calls that it reports, to warm up; it reports the
  // last `repetitions` of them: this finds the row of one.
  const Row& reported(const std::string& name, std::int64_t repetition,
                      std::int64_t repetitions) const;
  bool all_timed(const std::string& name, std::int64_t repetitions) const;
  // The fastest library row of the problem, else its stand-in.
  std::optional<LibraryRate> library_rate(const Problem& p) const;
  std::optional<double> of_roof(const Row& row, const Clocks& clocks = {}) const;
  // Of the roofline at the clocks that were seen while the row was timed.
  std::optional<double> of_roof_at_clock(const Row& row) const;
  std::optional<double> of_library(const Row& row) const;
  bool any_failed() const;

  // Of a problem: the fastest of our kernels, and its speed over that of the fastest library, each
  // with half of its interval as a fraction. Rows in doubt do not count.
  struct Best {
    const Row* row;
    double row_half;
    std::string library;  // empty: none
    std::optional<double> ratio, ratio_half;
  };
  // By precision, then by size.
  std::vector<Best> fastest() const;

  // "fixed power": clocks float under the power cap. "fixed frequency": they were set, which
  // the GPU reports or all rows show. Empty without readings of the GPU.
  std::optional<std::string> test() const;
  std::vector<Deviation> deviations(const Row& row) const;
  bool in_doubt(const Row& row) const;
  // Of how many results so far either is true: "off-guideline: 1 of 2 (burst 1); in doubt: 1 of 2".
  std::string conformance() const;

  nlohmann::ordered_json to_json(const Row& row) const;
  // context.gemm, without the kernels and the times of the run, which Session adds.
  nlohmann::ordered_json run_to_json() const;

 private:
  // The fastest of the last repetitions that count.
  const Row* fastest_row(const std::function<bool(const Row&)>& counts) const;
  std::optional<Clocks> clocks_of(const Row& row) const;
  std::optional<Roof> roof_of(const Row& row, const Clocks& clocks = {}) const;

  Conditions run_;
  std::map<std::string, std::vector<Row>> rows_;
  std::vector<std::pair<Problem, LibraryRate>> library_rates_;
};

// The row that Results::to_json wrote, of this case. Throws std::exception, with what is wrong, for
// anything else: another type, a number that no measurement gives.
Row row_from(const nlohmann::ordered_json& written, const Case& which);

// context.gemm.libraries: those that were loaded so far, by this process or a child.
nlohmann::ordered_json libraries_json();
// Adds those that libraries_json() of a child wrote. Throws nlohmann::json::exception.
void note_libraries(const nlohmann::ordered_json& written);

// context.gemm.health: of the GPU before the first row, and after the last one so far.
nlohmann::ordered_json health_json(const GpuHealth& before, const GpuHealth& after);

// context.gemm.host: of the run so far.
nlohmann::ordered_json host_json(const std::optional<OthersLoad>& others,
                                 const std::optional<double>& load_start);

// Cuts each text in it to what the readers of a record accept (kLongestText).
void shorten_texts(nlohmann::ordered_json& value);

// "nvidia-h200/20261121T020000Z-0123456789ab.json.gz"
std::string record_name(const DeviceInfo& device);

}  // namespace gemm::bench
