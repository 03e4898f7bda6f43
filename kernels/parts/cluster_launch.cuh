// Launches with the attributes of compute capability 9.0: clusters of blocks, and programmatic
// dependent launch. Also tells whether a build has sm_90a code.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>

#include "kernels/gemm.hpp"

namespace gemm {

struct LaunchShape {
  int blocks;
  dim3 threads;
  int shared_bytes;
  int cluster = 1;           // blocks of a cluster
  bool overlaps = false;     // programmatic dependent launch
  int across = 1, deep = 1;  // the grid's second and third dimension, at most 65535
};

class ClusterLaunch {
 public:
  ClusterLaunch(const LaunchShape& shape, Stream stream) {
    config_.gridDim = dim3(static_cast<unsigned>(shape.blocks), static_cast<unsigned>(shape.across),
                           static_cast<unsigned>(shape.deep));
    config_.blockDim = shape.threads;
    config_.dynamicSmemBytes = static_cast<std::size_t>(shape.shared_bytes);
    config_.stream = stream;
    config_.attrs = attributes_;
    if (shape.cluster > 1) {
      cudaLaunchAttribute& clusters = attributes_[config_.numAttrs++];
      clusters.id = cudaLaunchAttributeClusterDimension;
      clusters.val.clusterDim = {static_cast<unsigned>(shape.cluster), 1, 1};
    }
    if (shape.overlaps) {
      cudaLaunchAttribute& overlap = attributes_[config_.numAttrs++];
      overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      overlap.val.programmaticStreamSerializationAllowed = 1;
    }
  }
  ClusterLaunch(const ClusterLaunch&) = delete;
  ClusterLaunch& operator=(const ClusterLaunch&) = delete;
  const cudaLaunchConfig_t* config() const { return &config_; }

 private:
  cudaLaunchAttribute attributes_[2]{};
  cudaLaunchConfig_t config_{};
};

// Launch errors are left to the caller (cudaGetLastError).
template <typename... Work>
void enqueue(void (*kernel)(Work...), const LaunchShape& shape, Stream stream,
             const std::type_identity_t<Work>&... work) {
  cudaLaunchKernelEx(ClusterLaunch(shape, stream).config(), kernel, work...);
}

// Whether a kernel was compiled for compute capability 9.0 or later, so that its calls of
// wait_for_previous_launch have an effect.
template <typename... Work>
bool may_overlap(void (*kernel)(Work...)) {
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess) return attributes.ptxVersion >= 90;
  cudaGetLastError();  // no device
  return false;
}

// Why a device cannot run a kernel whose body is compiled for sm_90a only. In other builds the body
// is empty: it is recognised by its lack of static shared memory, where most kernels have their
// barriers, and its few registers.
template <typename... Parameters>
std::optional<std::string> sm_90a_unsupported(void (*kernel)(Parameters...), const Device& device) {
  if (device.compute_capability != 90) return "requires compute capability 9.0";
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess)
    cudaGetLastError();  // no device
  else if (attributes.sharedSizeBytes == 0 && attributes.numRegs < 128)
    return "requires sm_90a code (rebuild with -DCMAKE_CUDA_ARCHITECTURES=90a)";
  return std::nullopt;
}

}  // namespace gemm
