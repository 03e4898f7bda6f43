// Turns the status of a CUDA call into the exceptions of backend.hpp.
#pragma once

#include <cuda_runtime.h>

#include <filesystem>
#include <source_location>
#include <stdexcept>
#include <string>

#include "bench/base/device_errors.hpp"
#include "bench/device/backend.hpp"

namespace gemm::bench {

// After some errors the context answers every call with the same error: then nothing more can be
// measured. A record is published: it has no folder of the build machine.
inline void check(cudaError_t status,
                  std::source_location where = std::source_location::current()) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  const std::string text = std::string(cudaGetErrorString(status)) + " (" +
                           cudaGetErrorName(status) + ", " +
                           std::filesystem::path(where.file_name()).filename().string() + ":" +
                           std::to_string(where.line()) + ")";
  if (status == cudaErrorMemoryAllocation) throw OutOfMemory(text);
  if (cudaFree(nullptr) != cudaSuccess) throw DeviceLost(text);
  throw std::runtime_error(text);
}

}  // namespace gemm::bench
