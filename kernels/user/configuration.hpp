// The check of what a user's device code returns to the host (gemm_kernel.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kernels/user/gemm_kernel.h"

namespace gemm {

// Why it describes no launch of a kernel with parameters of these sizes, in bytes; without them,
// where the driver does not tell, only what holds for every kernel is checked.
std::optional<std::string> fault_of(const Configuration& configuration,
                                    const std::optional<std::vector<std::size_t>>& parameters);

}  // namespace gemm
