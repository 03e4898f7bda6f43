// What the tests of registered kernels share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "kernels/registry.hpp"

namespace gemm {

inline const Device kHopper{.kind = Device::Kind::gpu,
                            .compute_capability = 90,
                            .sm_count = 132,
                            .last_level_cache_bytes = 60 << 20};

// Null in builds without CUDA.
inline const RegisteredKernel* find(std::string_view label) {
  const auto found = std::ranges::find(registry(), label, &RegisteredKernel::label);
  return found == registry().end() ? nullptr : &*found;
}

#define SKIP_WITHOUT_GPU_KERNELS() \
  if (find("Best") == nullptr) GTEST_SKIP() << "built without CUDA"

}  // namespace gemm
