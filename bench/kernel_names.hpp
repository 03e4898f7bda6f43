// Which GPU kernels a launch runs: of a library, the only sign of the algorithm that it chose.
#pragma once

#include <string>
#include <vector>

#include "kernels/gemm.hpp"

namespace gemm::bench {

// One name for each kernel of the launch, and "memcpy" or "memset" for what else it does on the
// card. Nothing is run: the launch is captured into a CUDA graph, on a stream that no other capture
// uses. Empty where that cannot be done or the driver does not tell (before CUDA 12.3). Never
// throws, and leaves the stream as it was.
std::vector<std::string> kernel_names(const Launch& launch, Stream stream);

// Demangled, and if that is longer than 200 characters, without return type and arguments, and if
// need be without template arguments.
std::string readable_kernel_name(const char* symbol);

}  // namespace gemm::bench
