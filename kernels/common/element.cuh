// The element types that CUDA cores multiply, and what their products are added up in.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/precision.hpp"

namespace gemm::simt {

// 16-bit operands are widened to FP32, which is exact; the sum is rounded once, when it is stored.
template <typename T>
struct SumOf {
  using Type = T;
};
template <>
struct SumOf<__half> {
  using Type = float;
};
template <>
struct SumOf<__nv_bfloat16> {
  using Type = float;
};
template <typename T>
using Sum = typename SumOf<T>::Type;

template <typename T>
__device__ Sum<T> widen(T value) {
  return static_cast<Sum<T>>(value);
}
template <typename T>
__device__ T narrow(Sum<T> sum) {
  return static_cast<T>(sum);
}

// Beyond the edges of a row-major matrix lie zeros, which add nothing to a sum.
template <typename T>
__device__ T element_or_zero(const T* matrix, std::int64_t rows, std::int64_t columns,
                             std::int64_t row, std::int64_t column) {
  return row < rows && column < columns ? matrix[row * columns + column] : T{};
}

// Those that with_element knows.
inline std::vector<Precision> element_precisions() {
  return {Precision::f32, Precision::bf16, Precision::f16, Precision::f64, Precision::s32};
}

template <typename T>
constexpr Precision precision_of = Precision::f32;
template <>
inline constexpr Precision precision_of<__nv_bfloat16> = Precision::bf16;
template <>
inline constexpr Precision precision_of<__half> = Precision::f16;
template <>
inline constexpr Precision precision_of<double> = Precision::f64;
template <>
inline constexpr Precision precision_of<std::int32_t> = Precision::s32;

// Calls f with a value of the type whose products are those of the precision. Throws
// std::invalid_argument for TF32, which only tensor cores have.
template <typename F>
auto with_element(Precision precision, F&& f) {
  switch (precision) {
    case Precision::f32:
      return f(float{});
    case Precision::bf16:
      return f(__nv_bfloat16{});
    case Precision::f16:
      return f(__half{});
    case Precision::f64:
      return f(double{});
    case Precision::s32:
      return f(std::int32_t{});
    default:
      throw std::invalid_argument("CUDA cores do not compute in " +
                                  std::string(traits_of(precision).name));
  }
}

}  // namespace gemm::simt
