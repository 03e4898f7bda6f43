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
bool is_library_for(const Case& which, const Case& rival);

class Race {
 public:
  explicit Race(Workbench& bench) : bench_(bench) {}

  std::vector<Case> named_rivals(const Case& which) const;  // by --gemm_versus
  // The fastest of them in a trial; nothing if none can race, or if the case is among them.
  std::optional<Case> rival_of(const Case& which);
  // Prepares, verifies and times the case, beside its rival if there is one, judges what both left
  // behind, and fills the row. Throws as Measurement does; std::runtime_error, too, for a time that
  // beats physics.
  void run(const Case& which, std::optional<Case> rival, std::optional<std::int64_t> samples,
           Row& row);

 private:
  // Runs a step of the rival; false if it failed, which is said once. Throws Interrupted,
  // DeviceLost.
  bool rival_can(const Case& rival, const std::function<void()>& step);

  // In short trials; what does not run is unfit.
  std::optional<Case> fastest_rival(const std::vector<Case>& rivals);

  Workbench& bench_;
  std::vector<std::pair<Problem, Case>> rivals_;  // the fastest of those that versus names
  std::vector<Case> unfit_;                       // they failed
};

}  // namespace gemm::bench
