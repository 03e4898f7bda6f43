// A row that is measured in a process of its own, because a user's kernel takes part in it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/measurement/workbench.hpp"
#include "bench/record/record.hpp"

namespace gemm::bench {

// Runs the same program, if need be in Python, with the same options and --gemm_child, which
// answers with one row. Throws
// Skipped, Interrupted, and std::runtime_error with how the child failed or ended.
void measure_in_child(Workbench& bench, const Case& which, const std::vector<Case>& baselines,
                      std::optional<std::int64_t> samples, Row& row);

}  // namespace gemm::bench
