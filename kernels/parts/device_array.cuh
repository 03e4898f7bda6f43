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

// Copies own the memory together.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  // Throws std::runtime_error if the allocation fails.
  explicit DeviceMemory(std::size_t bytes) {
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, bytes);
    if (status != cudaSuccess) {
      cudaGetLastError();  // clear the error, else the next launch would report it
      throw std::runtime_error("workspace of " + std::to_string(bytes) +
                               " bytes: " + cudaGetErrorString(status));
    }
    memory_.reset(memory, cudaFree);
  }

  explicit DeviceMemory(std::shared_ptr<void> memory) : memory_(std::move(memory)) {}

  void* get() const { return memory_.get(); }
  std::weak_ptr<void> weak() const { return memory_; }

 private:
  std::shared_ptr<void> memory_;
};

template <typename T>
struct DeviceArray : DeviceMemory {
  using DeviceMemory::DeviceMemory;
  T* get() const { return static_cast<T*>(DeviceMemory::get()); }
};

// Throws std::runtime_error if the allocation fails.
template <typename T>
DeviceArray<T> device_array(std::int64_t count) {
  return DeviceArray<T>(static_cast<std::size_t>(count) * sizeof(T));
}

// A launch that keeps its memory alive.
inline Launch keeping(DeviceMemory memory, Launch launch) {
  return
      [memory = std::move(memory), launch = std::move(launch)](Stream stream) { launch(stream); };
}

}  // namespace gemm::simt
