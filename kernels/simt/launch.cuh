// From a kernel to a Launch.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "kernels/gemm.hpp"

namespace gemm::simt {

// Whether every row of FP32 matrices begins at a multiple of 16 bytes; the matrices themselves do.
inline bool rows_of_16_bytes(const Problem& p) { return p.k % 4 == 0 && p.n % 4 == 0; }

// Blocks of `threads` and `shared_bytes` of dynamic shared memory; the kernel takes the problem,
// the grid and the matrices. Throws std::runtime_error if the device has not so much shared memory.
template <typename Grid, typename T>
Launch launch(void (*kernel)(Problem, Grid, const T*, const T*, T*), unsigned blocks, int threads,
              int shared_bytes, const Problem& p, const Grid& grid, const Operands& o) {
  constexpr int kWithoutAsking = 48 << 10;
  if (shared_bytes > kWithoutAsking)
    if (const cudaError_t status =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
        status != cudaSuccess)
      throw std::runtime_error(std::to_string(shared_bytes) +
                               " bytes of shared memory a block: " + cudaGetErrorString(status));
  return [=](Stream stream) {
    kernel<<<blocks, threads, shared_bytes, stream>>>(
        p, grid, static_cast<const T*>(o.a), static_cast<const T*>(o.b), static_cast<T*>(o.c));
  };
}

}  // namespace gemm::simt
