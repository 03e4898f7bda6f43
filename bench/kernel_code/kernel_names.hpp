// Which GPU kernels a launch runs, of a library the only sign of the algorithm that it chose, and
// what the driver reports of each.
#pragma once

#include <string>

#include "bench/kernel_code/kernel_code.hpp"
#include "kernels/gemm.hpp"

namespace gemm::bench {

// In the order in which they were launched. Nothing is run: the launch is captured into a CUDA
// graph, on a stream that no other capture uses. Empty where that cannot be done or the driver does
// not report it (before CUDA 12.3). Never throws, and leaves the stream as it was.
LaunchedKernels kernels_of(const Launch& launch, Stream stream);

// Demangled, and if that is longer than 200 characters, without return type and arguments, and if
// need be without template arguments.
std::string readable_kernel_name(const char* symbol);

}  // namespace gemm::bench
