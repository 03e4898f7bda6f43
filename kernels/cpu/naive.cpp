// The definition: three nested loops on one core. k is the middle loop so that the innermost loop
// reads B and writes C along rows, and can be vectorised; with k innermost, B would be read down a
// column.
#include <cmath>
#include <cstdint>

#include "kernels/cpu/clones.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/registry.hpp"
#include "kernels/tokens.hpp"

namespace gemm {
namespace {

GEMM_CLONES void multiply(const Problem& p, const float* a, const float* b, float* c) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    float* row = c + i * p.n;
    for (std::int64_t j = 0; j < p.n; ++j) row[j] = 0;
    for (std::int64_t l = 0; l < p.k; ++l) {
      const float scale = a[i * p.k + l];
      for (std::int64_t j = 0; j < p.n; ++j) row[j] += scale * b[l * p.n + j];
    }
  }
}

float gelu(float x) {
  return 0.5F * x * (1 + std::tanh(0.7978845608F * (x + 0.044715F * x * x * x)));
}

void apply_epilogue(const Problem& p, const Operands& o) {
  const auto *bias = static_cast<const float*>(o.bias),
             *residual = static_cast<const float*>(o.residual);
  auto* c = static_cast<float*>(o.c);
  for (std::int64_t i = 0; i < p.m * p.n; ++i) {
    c[i] += residual != nullptr ? residual[i] : bias[i % p.n];
    if (p.activation == Activation::bias_gelu) c[i] = gelu(c[i]);
  }
}

const Registration naive{{
    .name = "CpuNaive",
    .idea = "Three nested loops on one core: the definition of the product.",
    .source = "textbook; the serial baseline of the CUDA tutorials",
    .rung = 1,
    .precisions = {Precision::f32},
    .batches = Batches::also,
    .activations = {kActivations.begin(), kActivations.end()},
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      return [=, all = Products(p)](Stream) {
        for (std::int64_t which = 0; which < p.batch; ++which) {
          const Operands one = all.operands(o, which);
          multiply(all.product(which), static_cast<const float*>(one.a),
                   static_cast<const float*>(one.b), static_cast<float*>(one.c));
        }
        if (p.activation != Activation::none) apply_epilogue(p, o);
      };
    },
}};

}  // namespace
}  // namespace gemm
