// The kernel that a case is interleaved with, sample by sample (--gemm_versus).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "bench/measurement/workbench.hpp"
#include "bench/record/record.hpp"

namespace gemm::bench {

// Whether it is the library on the same problem.
bool is_library_for(const Case& which, const Case& baseline);

class Interleaving {
 public:
  explicit Interleaving(Workbench& bench) : bench_(bench) {}

  std::vector<Case> named_baselines(const Case& which) const;  // by --gemm_versus
  // The fastest of them in a trial; nothing if none runs, or if the case is among them.
  std::optional<Case> baseline_of(const Case& which);
  // Prepares, verifies and times the case, with its baseline if there is one, verifies what both
  // left behind, and fills the row. Throws as Measurement does; std::runtime_error, too, for a time
  // that beats physics.
  void run(const Case& which, std::optional<Case> baseline, std::optional<std::int64_t> samples,
           Row& row);

  // After it was timed: fills the row, verifies again. Throws std::runtime_error for a time that
  // beats physics.
  void complete(Measurement& mine, Row& row);
  void require_possible(const Case& which, const Timing& timing, std::int64_t sets);
  static void compare(Row& row, const Case& baseline, const Timing& theirs);

 private:
  bool try_baseline(const Case& baseline, const std::function<void()>& step);
  // In short trials; what does not run is unfit.
  std::optional<Case> fastest_baseline(const std::vector<Case>& baselines);

  Workbench& bench_;
  std::vector<std::pair<Problem, Case>> baselines_;  // the fastest of those that versus names
  std::vector<Case> unfit_;                          // they failed
};

}  // namespace gemm::bench
