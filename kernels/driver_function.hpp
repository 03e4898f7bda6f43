// Looks up a driver API function by name, so that the program need not link to libcuda and also
// starts without a driver.
#pragma once

#include <cuda_runtime.h>

namespace gemm {

// The function as of that CUDA version; null if the driver, or the toolkit of this build, is older.
template <typename Function>
Function* driver_function(const char* name, unsigned version = 12000) {
  void* found = nullptr;
#if CUDART_VERSION >= 12050
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault);
#else
  if (version > CUDART_VERSION) return nullptr;
  const cudaError_t status = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault);
#endif
  return status == cudaSuccess ? reinterpret_cast<Function*>(found) : nullptr;
}

}  // namespace gemm
