// How the negative controls are launched, and the product that those among them start from which
// are wrong in something else.
#pragma once

#include <cstdint>

#include "bench/controls/negative_controls.hpp"

namespace gemm::bench {

template <typename T>
using WrongKernel = void (*)(Problem, const T* a, const T* b, T* c);

template <typename T>
Launch launch(WrongKernel<T> kernel, dim3 grid, dim3 block, const Problem& p, const Operands& o) {
  return [=](Stream stream) {
    kernel<<<grid, block, 0, stream>>>(p, static_cast<const T*>(o.a), static_cast<const T*>(o.b),
                                       static_cast<T*>(o.c));
  };
}

constexpr unsigned pieces(std::int64_t whole, int piece) {
  return static_cast<unsigned>((whole + piece - 1) / piece);
}

// One element of C, or the part of its sum from one l to another.
__device__ inline float product(const Problem& p, const float* a, const float* b, std::int64_t row,
                                std::int64_t column, std::int64_t from, std::int64_t to) {
  float sum = 0;
  for (std::int64_t l = from; l < to; ++l) sum += a[row * p.k + l] * b[l * p.n + column];
  return sum;
}
__device__ inline float product(const Problem& p, const float* a, const float* b, std::int64_t row,
                                std::int64_t column) {
  return product(p, a, b, row, column, 0, p.k);
}

}  // namespace gemm::bench
