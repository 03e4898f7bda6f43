// The unrolled outer product with double-buffered tiles of A: while one tile is multiplied, the
// next is loaded from global memory into registers and then stored to the other buffer. One barrier
// per K tile instead of two. Cost: twice the shared memory. The loads of B, which are not
// prefetched, still stall the warps.
#include <cstdint>

#include "kernels/ladder/fp32/outer_product.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::outer_product_prefetch {
namespace {

__global__ void __launch_bounds__(kOuterThreads)
    outer_product_prefetch(Problem p, OuterGrid grid, const float* __restrict__ a,
                           const float* __restrict__ b, float* __restrict__ c) {
  __shared__ OuterTile tiles[2];
  const std::int64_t first_row = grid.first_row();
  const std::int64_t column = grid.first_column() + threadIdx.x;
  const float* const own_column = column_of_b(p, b, column);

  float from_a[kOuterLoads];
  load_a(from_a, p, a, first_row, 0);
  store_a(tiles[0], from_a);
  __syncthreads();

  float acc[kOuterRows] = {};
  int current = 0;
  for (std::int64_t step = 0; step < p.k; step += kOuterDepth) {
    const bool has_next = step + kOuterDepth < p.k;  // the last step loads nothing
    if (has_next) load_a(from_a, p, a, first_row, step + kOuterDepth);
    add_step<kOuterDepth>(acc, tiles[current], own_column, p, step);
    current ^= 1;
    if (has_next) store_a(tiles[current], from_a);
    __syncthreads();  // the next tile is complete, and the current one is free
  }
  store_column(p, c, first_row, column, acc);
}

const Registration registration(outer_kernel(
    outer_product_prefetch, {
                                .name = "OuterProductPrefetch",
                                .idea = "Double-buffered tiles of A: the next is loaded during the "
                                        "FMAs, one barrier per K tile.",
                                .rung = 23,
                            }));

}  // namespace
}  // namespace gemm::simt::outer_product_prefetch
