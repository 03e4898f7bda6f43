// The naive kernel with swapped thread indices: the lanes of a warp compute consecutive rows, so
// that every load of A and store of C touches 32 cache lines, and the loads of B become broadcasts.
// It shows the price of uncoalesced access: 33 sectors per step of a warp instead of 5, each of
// which takes its own L1 cycles.
#include <cstdint>

#include "kernels/ladder/fp32/naive_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::naive_uncoalesced {
namespace {

template <typename Offset>
__global__ void naive_uncoalesced(Problem p, NaiveGrid grid, const float* __restrict__ a,
                                  const float* __restrict__ b, float* __restrict__ c) {
  const Offset m = p.m, n = p.n, k = p.k;
  const Offset row = grid.first_row() + threadIdx.x;
  const Offset column = grid.first_column() + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (Offset l = 0; l < k; ++l) sum += a[row * k + l] * b[l * n + column];
  c[row * n + column] = sum;
}

const Registration registration{{
    .name = "NaiveUncoalesced",
    .idea = "The naive kernel with row and column swapped: uncoalesced loads of A and stores of C.",
    .source = "course report on CUDA matrix multiplication (Quadro RTX 5000), swapped indices, "
              "block 32 x 32; "
              "Numba documentation, matmul",
    .rung = 10,
    .precisions = {Precision::f32},
    .traffic =
        [](const Problem& p, const Device&) {
          return naive_traffic(p, p.m, p.n, {.a = p.k, .b = 0, .c = p.n});
        },
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      return naive_launch<float>(naive_uncoalesced<int>, naive_uncoalesced<std::int64_t>, p, o);
    },
}};

}  // namespace
}  // namespace gemm::simt::naive_uncoalesced
