// What a launch runs on the GPU: kernels, their machine code, and the resources they use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/gemm.hpp"

namespace gemm::bench {

// One kernel of a launch; what the driver does not report is missing.
struct KernelCode {
  std::string name;
  std::optional<std::string> fingerprint;  // of code of our own (bench/kernel_code/fingerprint.hpp)
  std::optional<std::int64_t> registers;   // of a thread
  std::optional<std::int64_t> shared_bytes;  // of a block, those that the launch asks for too
  std::optional<std::int64_t> local_bytes;   // of a thread
  std::optional<std::int64_t> threads;       // of a block
  std::optional<std::int64_t> blocks;
  std::optional<double> occupancy;  // warps that fit on a multiprocessor, over what it has room for
  std::optional<std::int64_t> blocks_per_sm;  // that fit on a multiprocessor at once
};

struct LaunchedKernels {
  std::vector<std::string> names;  // with "memcpy" and "memset" for what else is done on the GPU
  std::vector<KernelCode> code;
};

// In the order in which they were launched. Nothing is run: the launch is captured into a CUDA
// graph, on a stream that no other capture uses. Empty where that cannot be done or the driver does
// not report it (before CUDA 12.3). Never throws, and leaves the stream as it was.
LaunchedKernels kernels_of(const Launch& launch, Stream stream);

// Demangled, and if that is longer than 200 characters, without return type and arguments, and if
// need be without template arguments.
std::string readable_kernel_name(const char* symbol);

}  // namespace gemm::bench
