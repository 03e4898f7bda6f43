// CUDA handles, each with its destroyer.
#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "bench/device/cuda_check.hpp"

namespace gemm::bench {

template <typename Handle, auto kDestroy>
class Owned {
 public:
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) kDestroy(handle_);
  }
  operator Handle() const { return handle_; }

 private:
  Handle handle_;
};
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

}  // namespace gemm::bench
