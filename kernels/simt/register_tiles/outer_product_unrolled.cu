// The outer product with its 16 steps along a tile unrolled. The branch and the counting it saves
// are the smaller part: with the steps side by side the compiler moves the loads of B's elements
// ahead of the multiplications, so that a warp waits for many of them at once instead of for each
// in turn.
#include <cstdint>

#include "kernels/common/tile_launch.cuh"
#include "kernels/registry.hpp"
#include "kernels/simt/register_tiles/outer_product.cuh"

namespace gemm::simt {
namespace {

__global__ void __launch_bounds__(kOuterThreads)
    outer_product_unrolled(Problem p, OuterGrid grid, const float* __restrict__ a,
                           const float* __restrict__ b, float* __restrict__ c) {
  __shared__ OuterTile tile;
  const std::int64_t first_row = grid.first_row();
  const std::int64_t column = grid.first_column() + threadIdx.x;
  const float* const own_column = column_of_b(p, b, column);

  float sums[kOuterRows] = {};
  for (std::int64_t step = 0; step < p.k; step += kOuterDepth) {
    float from_a[kOuterLoads];
    load_a(from_a, p, a, first_row, step);
    store_a(tile, from_a);
    __syncthreads();
    add_step<kOuterDepth>(sums, tile, own_column, p, step);
    __syncthreads();
  }
  store_column(p, c, first_row, column, sums);
}

const Registration registration{{
    .name = "OuterProductUnrolled",
    .idea = "The outer product with the loop along k unrolled: many loads of B under way at once.",
    .source = kOuterSource,
    .rung = 22,
    .precisions = {Precision::f32},
    .traffic = outer_traffic,
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      return tile_launch<float, OuterGrid>(outer_product_unrolled, kOuterThreads, p, o);
    },
}};

}  // namespace
}  // namespace gemm::simt
