// Device memory owned by a kernel's launches.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/gemm.hpp"

namespace gemm::simt {

// Throws std::runtime_error if the allocation fails.
template <typename T>
std::shared_ptr<T> device_array(std::int64_t count) {
  void* memory = nullptr;
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
  if (const cudaError_t status = cudaMalloc(&memory, bytes); status != cudaSuccess) {
    cudaGetLastError();  // clear the error, else the next launch would report it
    throw std::runtime_error("workspace of " + std::to_string(bytes) +
                             " bytes: " + cudaGetErrorString(status));
  }
  return {static_cast<T*>(memory), [](T* p) { cudaFree(p); }};
}

// A launch that keeps its memory alive.
inline Launch keeping(std::shared_ptr<const void> memory, Launch launch) {
  return
      [memory = std::move(memory), launch = std::move(launch)](Stream stream) { launch(stream); };
}

}  // namespace gemm::simt
