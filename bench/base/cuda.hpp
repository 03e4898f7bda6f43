// CUDA calls: their status as exceptions, and handles that each have their destroyer.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "bench/base/device_errors.hpp"

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

template <auto kDestroy>
struct Destroy {
  void operator()(auto* handle) const { kDestroy(handle); }
};
template <typename Handle, auto kDestroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<kDestroy>>;
using OwnedStream = Owned<cudaStream_t, cudaStreamDestroy>;
using OwnedEvent = Owned<cudaEvent_t, cudaEventDestroy>;
using OwnedGraph = Owned<cudaGraph_t, cudaGraphDestroy>;
using OwnedGraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

inline OwnedStream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return OwnedStream(stream);
}

inline OwnedEvent make_event(unsigned flags = cudaEventDefault) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, flags));
  return OwnedEvent(event);
}

// What `enqueue` puts on the stream, which is not run. Throws what it throws.
template <typename F>
OwnedGraph captured(cudaStream_t stream, F&& enqueue) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  cudaGraph_t graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    cudaGetLastError();  // what was wrong is being thrown
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph));
  return OwnedGraph(graph);
}

// Memory of the host that the GPU reads and writes directly.
inline Owned<std::byte*, cudaFreeHost> pinned_memory(std::int64_t bytes) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
  return Owned<std::byte*, cudaFreeHost>(static_cast<std::byte*>(memory));
}

}  // namespace gemm::bench
