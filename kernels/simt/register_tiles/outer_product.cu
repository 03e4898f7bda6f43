// Each thread keeps a column of 16 results and multiplies one element of B, straight from global
// memory, with a column of A's tile: 16 multiplications for one load of B and four reads of shared
// memory, where Tiled reads twice for each. The loop along k is kept a loop here, on purpose, so
// that the next rung can show what unrolling it brings; the loop over the 16 results must be
// unrolled, since registers have no index. So each step waits for its own element of B, and only
// other warps hide that: latency binds.
//
// The idea was first sold with an argument about instructions, one operand of which came from
// shared memory for free. No GPU since 2014 has such operands; what remains is fewer reads.
#include <cstdint>

#include "kernels/common/tile_launch.cuh"
#include "kernels/registry.hpp"
#include "kernels/simt/register_tiles/outer_product.cuh"

namespace gemm::simt {
namespace {

__global__ void __launch_bounds__(kOuterThreads)
    outer_product(Problem p, OuterGrid grid, const float* __restrict__ a,
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
    add_step<1>(sums, tile, own_column, p, step);
    __syncthreads();
  }
  store_column(p, c, first_row, column, sums);
}

const Registration registration{{
    .name = "OuterProduct",
    .idea =
        "A column of 16 results in registers, one element of B from global memory for all of them.",
    .source = kOuterSource,
    .rung = 21,
    .precisions = {Precision::f32},
    .traffic = outer_traffic,
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      return tile_launch<float, OuterGrid>(outer_product, kOuterThreads, p, o);
    },
}};

}  // namespace
}  // namespace gemm::simt
