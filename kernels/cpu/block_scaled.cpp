// FP8 with a factor for each block. Products of E4M3 numbers are added up over a block of 128 along
// k, and only that sum is multiplied by the factors of its blocks of A and B. This is the
// definition for kernels on tensor cores, which do the same where they promote their sums.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/layout.hpp"
#include "kernels/registry.hpp"
#include "kernels/small_floats.hpp"
#include "kernels/tokens.hpp"

namespace gemm {
namespace {

// Layout nt: rows of A and columns of B are contiguous along k. A's scales have rows of `pitch`.
void multiply(const Problem& p, const float* a, const float* b, const Operands& o,
              std::int64_t pitch) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (std::int64_t first = 0; first < p.k; first += kScaleBlock) {
        const std::int64_t block = first / kScaleBlock, end = std::min(first + kScaleBlock, p.k);
        float part = 0;
        for (std::int64_t l = first; l < end; ++l)
          part += a[index_in_a(p, i, l)] * b[index_in_b(p, l, j)];
        sum += part * o.a_scales[block * pitch + i] *
               o.b_scales[j / kScaleBlock * scales_of_b_stride(p.k) + block];
      }
      static_cast<Bf16*>(o.c)[i * p.n + j] = Bf16(sum);
    }
}

std::vector<float> as_floats(const void* matrix, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(static_cast<const E4m3*>(matrix)[i]));
  return values;
}

const Registration block_scaled{{
    .name = "CpuBlockScaled",
    .idea = "FP8 with an FP32 factor for each block: sums of a block are scaled as they are added.",
    .source = "DeepSeek-AI, DeepSeek-V3 Technical Report (2024), fine-grained quantization",
    .rung = 3,
    .precisions = {Precision::e4m3block},
    .layouts = {Layout::nt},
    .batches = Batches::also,
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      return [=, all = Products(p)](Stream) {
        for (std::int64_t which = 0; which < p.batch; ++which) {
          const Problem one = all.product(which);
          const Operands of = all.operands(o, which);
          multiply(one, as_floats(of.a, one.m * p.k).data(), as_floats(of.b, p.k * p.n).data(), of,
                   p.batch * p.m);
        }
      };
    },
}};

}  // namespace
}  // namespace gemm
