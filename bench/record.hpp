// The record: Google Benchmark's JSON with our `gemm` objects beside its keys
// (results/schema.json).
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/cases.hpp"
#include "bench/device.hpp"
#include "bench/options.hpp"
#include "bench/peaks.hpp"
#include "bench/verdict.hpp"

namespace gemm::bench {

// One kernel on one problem, one repetition.
struct Row {
  Case which;
  std::vector<double> samples_seconds;
  std::int64_t rotation_sets = 0, batch = 0;  // 0: never got that far
  std::string launch;
  std::optional<Verdict> verdict;
  std::string skipped, failed;  // why; at most one is not empty

  bool timed() const { return skipped.empty() && failed.empty() && !samples_seconds.empty(); }
  double quantile_seconds(double share) const;  // linear between the two nearest samples
  double flop_per_second() const { return flop(which.problem) / quantile_seconds(0.5); }
};

// Rate of a library on a problem.
struct Baseline {
  std::string label;
  double flop_per_second;
};

// All rows so far and what they are measured against.
class Results {
 public:
  explicit Results(std::vector<Ceiling> ceilings) : ceilings_(std::move(ceilings)) {}

  const std::vector<Ceiling>& ceilings() const { return ceilings_; }
  void add(const std::string& name, Row row) { rows_[name].push_back(std::move(row)); }
  // Stands in for a library row where the filter left the library out.
  void set_baseline(const Problem& p, Baseline baseline) {
    baselines_.emplace_back(p, std::move(baseline));
  }

  // Google Benchmark calls a case several times to find its iteration count and reports the last
  // call of each of `repetitions`: this finds the row of one of them.
  const Row& reported(const std::string& name, std::int64_t repetition,
                      std::int64_t repetitions) const;
  bool all_timed(const std::string& name, std::int64_t repetitions) const;
  // The fastest library row of the problem, else its stand-in.
  std::optional<Baseline> baseline(const Problem& p) const;
  std::optional<double> of_roof(const Row& row) const;
  std::optional<double> of_library(const Row& row) const;
  bool any_failed() const;

  nlohmann::ordered_json to_json(const Row& row) const;

 private:
  std::vector<Ceiling> ceilings_;
  std::map<std::string, std::vector<Row>> rows_;
  std::vector<std::pair<Problem, Baseline>> baselines_;
};

// context.gemm, complete but for the kernels.
nlohmann::ordered_json run_to_json(const DeviceInfo& device, const std::vector<Ceiling>& ceilings,
                                   const Options& options, std::string_view timer,
                                   const std::vector<std::string>& command);

// "nvidia-h200/20261121T020000Z-0123456789ab.json"
std::string record_name(const DeviceInfo& device);

// Replaces the file in one step and makes missing folders; what is no regular file is written to.
// Throws std::runtime_error naming the path.
void write_atomically(const std::filesystem::path& path, const std::string& text);

// The same error before anything is measured, and without touching the file.
void require_writable(const std::filesystem::path& path);

}  // namespace gemm::bench
