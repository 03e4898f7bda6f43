// Element types that CUDA cores multiply, and the types of their accumulators.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/precision.hpp"

namespace gemm::simt {

// 16-bit operands are widened to FP32, which is exact; the result is rounded once, when it is
// stored.
template <typename T>
struct AccumulatorOf {
  using Type = T;
};
template <>
struct AccumulatorOf<__half> {
  using Type = float;
};
template <>
struct AccumulatorOf<__nv_bfloat16> {
  using Type = float;
};
template <typename T>
using Accumulator = typename AccumulatorOf<T>::Type;

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

// The precisions that with_element accepts.
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

// Calls f with a value of the element type of the precision. Throws std::invalid_argument for
// precisions that only tensor cores have.
template <typename F>
auto with_element(Precision precision, F&& f) {
  if (precision == Precision::f32) return f(float{});
  if (precision == Precision::bf16) return f(__nv_bfloat16{});
  if (precision == Precision::f16) return f(__half{});
  if (precision == Precision::f64) return f(double{});
  if (precision == Precision::s32) return f(std::int32_t{});
  throw std::invalid_argument("CUDA cores do not compute in " +
                              std::string(traits_of(precision).name));
}

}  // namespace gemm::simt
