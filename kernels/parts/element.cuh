// Element types that CUDA cores multiply, and the types of their accumulators.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/precision.hpp"

namespace gemm::simt {

// 16-bit operands are widened to FP32, which is exact; the result is rounded once, when it is
// stored.
template <typename T>
using Accumulator = std::conditional_t<sizeof(T) == 2, float, T>;

template <typename T>
__device__ Accumulator<T> widen(T value) {
  return static_cast<Accumulator<T>>(value);
}
template <typename T>
__device__ T narrow(Accumulator<T> sum) {
  return static_cast<T>(sum);
}

// Elements outside a row-major matrix are zero and add nothing.
template <typename T>
__device__ T element_or_zero(const T* matrix, std::int64_t rows, std::int64_t columns,
                             std::int64_t row, std::int64_t column) {
  return row < rows && column < columns ? matrix[row * columns + column] : T{};
}

// Calls f with a value of the element type of the precision, which is one of the list.
template <Precision kFirst, Precision... kOthers, typename F>
auto with_element(Precision precision, F&& f) {
  if constexpr (sizeof...(kOthers) > 0)
    if (precision != kFirst) return with_element<kOthers...>(precision, f);
  if constexpr (kFirst == Precision::f32) return f(float{});
  if constexpr (kFirst == Precision::bf16) return f(__nv_bfloat16{});
  if constexpr (kFirst == Precision::f16) return f(__half{});
  if constexpr (kFirst == Precision::f64) return f(double{});
  if constexpr (kFirst == Precision::s32) return f(std::int32_t{});
}

}  // namespace gemm::simt
