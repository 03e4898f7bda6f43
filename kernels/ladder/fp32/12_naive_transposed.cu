// The naive kernel on a transposed copy of A: a common misconception about coalescing. All lanes of
// a warp need the same element of A, which is one sector (a broadcast) in either layout, so there
// is nothing to gain. There is a loss: in A the next element along k is in the sector that the L1
// already holds, in the transpose it is one row further. `transpose:timed` includes the transpose
// in every launch, `transpose:apart` does not.
#include <cstdint>

#include "kernels/ladder/fp32/naive_launch.cuh"
#include "kernels/parts/transpose.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::naive_transposed {
namespace {

// a_transposed is A^T, k x m.
template <typename Offset>
__global__ void naive_transposed(Problem p, NaiveGrid grid, const float* __restrict__ a_transposed,
                                 const float* __restrict__ b, float* __restrict__ c) {
  const Offset m = p.m, n = p.n, k = p.k;
  const Offset row = grid.first_row() + threadIdx.y;
  const Offset column = grid.first_column() + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (Offset l = 0; l < k; ++l) sum += a_transposed[l * m + row] * b[l * n + column];
  c[row * n + column] = sum;
}

Launch multiply(const Problem& p, const float* a_transposed, const Operands& o) {
  return naive_launch<float>(naive_transposed<int>, naive_transposed<std::int64_t>, p,
                             {a_transposed, o.b, o.c});
}

Launch prepare_timed(const Problem& p, const Operands& o) {
  const auto a_transposed = device_array<float>(p.m * p.k);
  return [=, multiply = multiply(p, a_transposed.get(), o)](Stream stream) {
    enqueue_transpose(static_cast<const float*>(o.a), a_transposed.get(), p.m, p.k, stream);
    multiply(stream);
  };
}

Launch prepare_apart(const Problem& p, const Operands& o) {
  const auto a_transposed = transposed<float>(o.a, p.m, p.k);
  return keeping(a_transposed, multiply(p, a_transposed.get(), o));
}

Kernel row(bool timed) {
  return {
      .name = "NaiveTransposed",
      .parameters = {{"transpose", timed ? "timed" : "apart"}},
      .idea = "The naive kernel on A^T: no gain, since its loads of A are broadcasts already.",
      .source =
          "course report on CUDA matrix multiplication (Quadro RTX 5000), transposing A first, "
          "block 32 x 32",
      .rung = 12,
      .rearranges = !timed,
      .precisions = {Precision::f32},
      .traffic =
          [=](const Problem& p, const Device&) {
            const auto [dram, l2, shared] = naive_traffic(p, p.n, p.m, {.a = 0, .b = 1, .c = 1});
            const double transpose = timed ? 2.0 * sizeof(float) * p.m * p.k : 0;
            return Traffic{dram + transpose, l2 + transpose, shared + transpose};
          },
      .prepare =
          [=](const Problem& p, const Device&, const Operands& o) {
            return timed ? prepare_timed(p, o) : prepare_apart(p, o);
          },
  };
}

const Registration timed(row(true));
const Registration apart(row(false));

}  // namespace
}  // namespace gemm::simt::naive_transposed
