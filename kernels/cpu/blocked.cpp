// Cache blocking and register blocking on all cores, as in BLIS. A kDepth x kWidth panel of B is
// packed and stays in the L2 while all rows of A stream past it; a kRows x kWidth block of C is
// accumulated in vector registers. Each element of B is then loaded from memory once per panel
// instead of once per row of A. Cost: the packing, and edges need care.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/clones.hpp"
#include "kernels/registry.hpp"
#include "kernels/tokens.hpp"

namespace gemm {
namespace {

constexpr int kRows = 4;     // rows of C held in registers
constexpr int kWidth = 32;   // columns of C held in registers: two AVX-512 or four AVX vectors
constexpr int kDepth = 256;  // rows of a B panel: kDepth * kWidth floats are 32 KiB

// acc[rows][kWidth] += a[rows][depth] * panel[depth][kWidth]. kRowCount is a constant so that the
// compiler keeps the accumulators in registers.
template <int kRowCount>
[[gnu::always_inline]] inline void accumulate(const float* a, std::int64_t a_stride,
                                              const float* panel, std::int64_t depth,
                                              float (&acc)[kRows][kWidth]) {
  for (std::int64_t l = 0; l < depth; ++l) {
    const float* b = panel + l * kWidth;
#pragma GCC unroll 8
    for (int r = 0; r < kRowCount; ++r) {
      const float scale = a[r * a_stride + l];
#pragma omp simd
      for (int j = 0; j < kWidth; ++j) acc[r][j] += scale * b[j];
    }
  }
}

GEMM_CLONES void multiply_panel(const Problem& p, const float* a, const float* b, float* c,
                                std::int64_t column, std::vector<float>& panel) {
  const int width = static_cast<int>(std::min<std::int64_t>(kWidth, p.n - column));
  for (std::int64_t depth_start = 0; depth_start < p.k; depth_start += kDepth) {
    const std::int64_t depth = std::min<std::int64_t>(kDepth, p.k - depth_start);
    for (std::int64_t l = 0; l < depth; ++l) {
      const float* from = b + (depth_start + l) * p.n + column;
      float* to = panel.data() + l * kWidth;
      std::copy_n(from, width, to);
      std::fill(to + width, to + kWidth, 0.0F);
    }
    for (std::int64_t row = 0; row < p.m; row += kRows) {
      const int rows = static_cast<int>(std::min<std::int64_t>(kRows, p.m - row));
      float acc[kRows][kWidth] = {};
      const float* a_block = a + row * p.k + depth_start;
      if (rows == kRows) {
        accumulate<kRows>(a_block, p.k, panel.data(), depth, acc);
      } else {
        for (int r = 0; r < rows; ++r) {
          float single[kRows][kWidth] = {};
          accumulate<1>(a_block + r * p.k, p.k, panel.data(), depth, single);
          std::copy_n(single[0], kWidth, acc[r]);
        }
      }
      for (int r = 0; r < rows; ++r) {
        float* to = c + (row + r) * p.n + column;
        for (int j = 0; j < width; ++j) to[j] = depth_start == 0 ? acc[r][j] : to[j] + acc[r][j];
      }
    }
  }
}

const Registration blocked{{
    .name = "CpuBlocked",
    .idea =
        "Register and cache blocking, vectorised by the compiler, columns shared among all cores.",
    .source = "Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008)",
    .rung = 2,
    .precisions = {Precision::f32},
    .batches = Batches::also,
    .prepare = [](const Problem& p, const Device& device, const Operands& o) -> Launch {
      return [=, all = Products(p), cores = std::max(1, device.cores)](Stream) {
        const std::int64_t panels = ceil_div(p.n, kWidth);  // of each product
#pragma omp parallel num_threads(cores)
        {
          std::vector<float> panel(static_cast<std::size_t>(kDepth) * kWidth);
#pragma omp for schedule(dynamic)
          for (std::int64_t which = 0; which < p.batch * panels; ++which) {
            const Problem product = all.product(which / panels);
            const Operands one = all.operands(o, which / panels);
            multiply_panel(product, static_cast<const float*>(one.a),
                           static_cast<const float*>(one.b), static_cast<float*>(one.c),
                           which % panels * kWidth, panel);
          }
        }
      };
    },
}};

}  // namespace
}  // namespace gemm
