// The naive kernel with its thread indices swapped: lanes of a warp take neighbouring rows, so that
// every read of A and every write of C touches 32 cache lines. It shows what coalescing is worth.
#include "kernels/registry.hpp"
#include "kernels/simt/tile_grid.cuh"

namespace gemm::simt {
namespace {

constexpr int kBlock = 32;
using Grid = TileGrid<kBlock, kBlock>;

template <typename Offset>
__global__ void naive_uncoalesced(Problem p, Grid grid, const float* __restrict__ a,
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
    .idea = "The naive kernel with row and column swapped: a warp walks down A and C.",
    .source = "the classic mistake, shown on purpose; block 32 x 32",
    .rung = 10,
    .precisions = {Precision::f32},
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      const Grid grid(p);
      const auto kernel =
          offsets_fit_int(p) ? naive_uncoalesced<int> : naive_uncoalesced<std::int64_t>;
      return [=, blocks = grid.blocks()](Stream stream) {
        kernel<<<blocks, dim3(kBlock, kBlock), 0, stream>>>(p, grid, static_cast<const float*>(o.a),
                                                            static_cast<const float*>(o.b),
                                                            static_cast<float*>(o.c));
      };
    },
}};

}  // namespace
}  // namespace gemm::simt
