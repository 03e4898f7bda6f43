// Slow by what is computed beside the product.
#include <cuda_runtime.h>

#include <cstdint>

#include "bench/controls/faulty_kernels/faulty_test.cuh"
#include "kernels/registry.hpp"

namespace gemm::bench {
namespace {

// The sum is a double: operands are converted and multiplied in FP64.
__global__ void faulty_double_sum(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  double sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l)
    sum += static_cast<double>(a[row * p.k + l]) * b[l * p.n + column];
  c[row * p.n + column] = static_cast<float>(sum);
}

// A literal without f: each product becomes a double, is scaled, and becomes a float again.
__global__ void faulty_double_literal(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l)
    sum += 0.5 * a[row * p.k + l] * (2.0 * b[l * p.n + column]);
  c[row * p.n + column] = sum;
}

// Operands pass through fixed point with 40 bits behind the point, in each product.
__device__ float through_fixed_point(float x) {
  return __ll2float_rn(__float2ll_rn(x * 0x1p40f)) * 0x1p-40f;
}
__global__ void faulty_conversions(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l)
    sum += through_fixed_point(a[row * p.k + l]) * through_fixed_point(b[l * p.n + column]);
  c[row * p.n + column] = sum;
}

// The place along k comes from a division by a number that only the host knows.
__global__ void faulty_division(Problem p, const float* a, const float* b, float* c,
                                std::int64_t pitch) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float sum = 0;
  for (std::int64_t step = 0; step < p.k * pitch; step += pitch) {
    const std::int64_t l = step / pitch;
    sum += a[row * p.k + l] * b[l * p.n + column];
  }
  c[row * p.n + column] = sum;
}

// Each operand is found by a function of four strides with a modulo, as in generic tensor code.
__device__ std::int64_t wrapped(int i, int j, int stride, int rows, int columns) {
  return static_cast<std::int64_t>((i + rows) % rows) * stride + (j + columns) % columns;
}
__global__ void faulty_index_function(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  float sum = 0;
  for (int l = 0; l < k; ++l)
    sum += a[wrapped(static_cast<int>(row), l, k, m, k)] *
           b[wrapped(l, static_cast<int>(column), n, k, n)];
  c[row * p.n + column] = sum;
}

const Registration double_sum(faulty("FaultyDoubleSum", "Slow: sums in FP64.",
                                     by_elements<faulty_double_sum>));
const Registration double_literal(faulty("FaultyDoubleLiteral", "Slow: literals are doubles.",
                                         by_elements<faulty_double_literal>));
const Registration conversions(faulty("FaultyConversions", "Slow: conversions in each product.",
                                      by_elements<faulty_conversions>));
const Registration division(faulty("FaultyDivision", "Slow: a division in each product.",
                                   [](const Problem& p, const Device&,
                                      const Operands& o) -> Launch {
                                     const std::int64_t blocks = pieces(p.n, 32) * pieces(p.m, 32);
                                     return [=](Stream stream) {
                                       start(faulty_division, blocks, dim3(32, 32), p, o, stream,
                                             std::int64_t{3});
                                     };
                                   }));
const Registration index_function(faulty("FaultyIndexFunction", "Slow: four modulos a product.",
                                         by_elements<faulty_index_function>));

}  // namespace
}  // namespace gemm::bench
