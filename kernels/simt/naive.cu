// One thread computes one element of C, straight from global memory. Lanes of a warp take
// neighbouring columns, so that they read B and write C in whole cache lines and share one element
// of A.
#include "kernels/registry.hpp"
#include "kernels/simt/tile_grid.cuh"

namespace gemm::simt {
namespace {

constexpr int kBlock = 32;
using Grid = TileGrid<kBlock, kBlock>;

template <typename Offset>
__global__ void naive(Problem p, Grid grid, const float* __restrict__ a,
                      const float* __restrict__ b, float* __restrict__ c) {
  const Offset m = p.m, n = p.n, k = p.k;
  const Offset row = grid.first_row() + threadIdx.y;
  const Offset column = grid.first_column() + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (Offset l = 0; l < k; ++l) sum += a[row * k + l] * b[l * n + column];
  c[row * n + column] = sum;
}

const Registration registration{{
    .name = "Naive",
    .idea = "One thread per element of C; a warp reads whole cache lines of B.",
    .source = "the first CUDA kernel of every tutorial; block 32 x 32",
    .rung = 11,
    .precisions = {Precision::f32},
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      const Grid grid(p);
      const auto kernel = offsets_fit_int(p) ? naive<int> : naive<std::int64_t>;
      return [=, blocks = grid.blocks()](Stream stream) {
        kernel<<<blocks, dim3(kBlock, kBlock), 0, stream>>>(p, grid, static_cast<const float*>(o.a),
                                                            static_cast<const float*>(o.b),
                                                            static_cast<float*>(o.c));
      };
    },
}};

}  // namespace
}  // namespace gemm::simt
