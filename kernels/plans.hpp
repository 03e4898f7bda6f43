// The plans of a kernel, and which of them a trial chose for a problem: that is kept in a file, so
// that the next run starts at once and runs the same plan. A key names all on which the choice
// depends: GPU, driver, machine code and problem.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernels/gemm.hpp"

namespace gemm {

// At least one. Called where `unsupported` has no reason; without a model of its work that is
// empty.
std::vector<Candidate> plans_of(const Kernel& kernel, const Problem& p, const Device& device);

// `driver`: its version, as CUDA counts them.
std::string plan_key(const Problem& p, const Device& device, int driver);

// The file; before a call $XDG_CACHE_HOME/gemm_bench/plans.json, or ~/.cache/gemm_bench/plans.json.
// Without a home nothing is kept. Throws std::runtime_error if it cannot be written.
void keep_plans_in(const std::filesystem::path& file);

// The plan in the file. Nothing if there is none; a file that cannot be read has none.
std::optional<std::string> kept_plan(const std::string& key);

// The plan in the file that was kept for the nearest m, by ratio, of a problem that is otherwise
// this one: of two equally near the smaller m. Nothing if there is none.
std::optional<std::string> plan_of_nearest_m(const Problem& p, const Device& device, int driver);

// Adds it under a lock, so that processes may share the file. Does nothing where it cannot.
void keep_plan(const std::string& key, const std::string& plan);

}  // namespace gemm
