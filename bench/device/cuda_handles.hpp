// CUDA handles, each with its destroyer.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <type_traits>

#include "bench/device/cuda_check.hpp"

namespace gemm::bench {

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

}  // namespace gemm::bench
