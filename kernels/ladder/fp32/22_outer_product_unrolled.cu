// The outer product with the 16 steps of a tile unrolled. Saved branches and counters are the
// smaller gain: the compiler can now hoist the loads of B ahead of the FMAs, so that many are in
// flight at once and a warp waits once instead of 16 times.
#include <cstdint>

#include "kernels/ladder/fp32/outer_product.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::outer_product_unrolled {
namespace {

__global__ void __launch_bounds__(kOuterThreads)
    outer_product_unrolled(Problem p, OuterGrid grid, const float* __restrict__ a,
                           const float* __restrict__ b, float* __restrict__ c) {
  __shared__ OuterTile tile;
  const std::int64_t first_row = grid.first_row();
  const std::int64_t column = grid.first_column() + threadIdx.x;
  const float* const own_column = column_of_b(p, b, column);

  float acc[kOuterRows] = {};
  for (std::int64_t step = 0; step < p.k; step += kOuterDepth) {
    float from_a[kOuterLoads];
    load_a(from_a, p, a, first_row, step);
    store_a(tile, from_a);
    __syncthreads();
    add_step<kOuterDepth>(acc, tile, own_column, p, step);
    __syncthreads();
  }
  store_column(p, c, first_row, column, acc);
}

const Registration registration(outer_kernel(
    outer_product_unrolled,
    {
        .name = "OuterProductUnrolled",
        .idea = "The outer product with the loop along k unrolled: many loads of B in flight.",
        .rung = 22,
    }));

}  // namespace
}  // namespace gemm::simt::outer_product_unrolled
