// The C++ types behind the element types, and their values.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "kernels/precision.hpp"

namespace gemm::bench {

// Calls f with a value of the C++ type behind an element type.
template <typename F>
void with_type(ElementType type, F&& f) {
  switch (type) {
    case ElementType::f32:
      return f(float{});
    case ElementType::bf16:
      return f(__nv_bfloat16{});
    case ElementType::f16:
      return f(__half{});
    case ElementType::e4m3:
      return f(__nv_fp8_e4m3{});
    case ElementType::e5m2:
      return f(__nv_fp8_e5m2{});
    case ElementType::f64:
      return f(double{});
    case ElementType::s32:
      return f(std::int32_t{});
    case ElementType::s8:
      return f(std::int8_t{});
  }
}

// What a kernel writes for operands of a type: bytes are multiplied to something wider.
template <typename In>
using Out = std::conditional_t<
    sizeof(In) != 1, In,
    std::conditional_t<std::is_same_v<In, std::int8_t>, std::int32_t, __nv_bfloat16>>;

// Exact for every element type; the shorter floating-point ones convert to float without a doubt.
template <typename T>
__device__ double as_double(T value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(value);
  else
    return static_cast<double>(static_cast<float>(value));
}

}  // namespace gemm::bench
