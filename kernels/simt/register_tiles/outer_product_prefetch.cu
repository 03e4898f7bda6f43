// The unrolled outer product with two tiles of A: while one is multiplied, the next is on its way
// from global memory into registers, from where it goes into the other. Who writes one tile while
// the other is read needs one barrier a step instead of two. What was not prefetched, the elements
// of B, still has to be waited for.
#include <cstdint>

#include "kernels/common/tile_launch.cuh"
#include "kernels/registry.hpp"
#include "kernels/simt/register_tiles/outer_product.cuh"

namespace gemm::simt {
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

  float sums[kOuterRows] = {};
  int current = 0;
  for (std::int64_t step = 0; step < p.k; step += kOuterDepth) {
    const bool has_next = step + kOuterDepth < p.k;  // the last step fetches nothing
    if (has_next) load_a(from_a, p, a, first_row, step + kOuterDepth);
    add_step<kOuterDepth>(sums, tiles[current], own_column, p, step);
    current ^= 1;
    if (has_next) store_a(tiles[current], from_a);
    __syncthreads();  // the next tile is complete, and nobody reads the one before any more
  }
  store_column(p, c, first_row, column, sums);
}

const Registration registration{{
    .name = "OuterProductPrefetch",
    .idea = "Two tiles of A in turns: the next is fetched during the multiplication, one barrier a "
            "step.",
    .source = kOuterSource,
    .rung = 23,
    .precisions = {Precision::f32},
    .traffic = outer_traffic,
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      return tile_launch<float, OuterGrid>(outer_product_prefetch, kOuterThreads, p, o);
    },
}};

}  // namespace
}  // namespace gemm::simt
