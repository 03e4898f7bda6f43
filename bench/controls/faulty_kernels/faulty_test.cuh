// What the kernels share that are right, and slow for one reason each, which tools/explain must
// name (faulty_kernels_test.py). Linked into a gemm_bench of their own; C is any m x n, FP32.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "bench/base/cuda.hpp"
#include "kernels/registry.hpp"

namespace gemm::bench {

__host__ __device__ constexpr std::int64_t pieces(std::int64_t whole, int piece) {
  return (whole + piece - 1) / piece;
}

template <typename... Arguments>
void start(void (*kernel)(Problem, const float*, const float*, float*, Arguments...),
           std::int64_t blocks, dim3 threads, const Problem& p, const Operands& o, Stream stream,
           Arguments... more) {
  if (blocks > 0x7fffffff) throw std::length_error("more blocks than a grid has");
  kernel<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(p, static_cast<const float*>(o.a),
                                                                static_cast<const float*>(o.b),
                                                                static_cast<float*>(o.c), more...);
}

// A thread for each element of C, in blocks of kX x kY; neighbouring threads have neighbouring
// columns.
template <auto kKernel, int kX = 32, int kY = 32>
Launch by_elements(const Problem& p, const Device&, const Operands& o) {
  const std::int64_t blocks = pieces(p.n, kX) * pieces(p.m, kY);
  return [=](Stream stream) { start(kKernel, blocks, dim3(kX, kY), p, o, stream); };
}

// The same into a C of zeros, to which the kernel adds.
template <auto kKernel, int kX = 32, int kY = 32>
Launch adding(const Problem& p, const Device& device, const Operands& o) {
  const Launch add = by_elements<kKernel, kX, kY>(p, device, o);
  return [=](Stream stream) {
    check(cudaMemsetAsync(o.c, 0, sizeof(float) * p.m * p.n, stream));
    add(stream);
  };
}

// The element of a thread of by_elements.
struct Element {
  std::int64_t row, column;
  bool exists;
};

__device__ inline Element element(const Problem& p) {
  const std::int64_t columns = pieces(p.n, static_cast<int>(blockDim.x));
  const std::int64_t row = blockIdx.x / columns * blockDim.y + threadIdx.y;
  const std::int64_t column = blockIdx.x % columns * blockDim.x + threadIdx.x;
  return {row, column, row < p.m && column < p.n};
}

inline Kernel faulty(
    const char* name, std::string_view idea,
    std::function<Launch(const Problem&, const Device&, const Operands&)> prepare) {
  return {.name = name,
          .idea = idea,
          .source = "ours",
          .rung = 99,
          .precisions = {Precision::f32},
          .prepare = std::move(prepare)};
}

}  // namespace gemm::bench
