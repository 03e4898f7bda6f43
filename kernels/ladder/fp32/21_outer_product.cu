// Outer products: each thread accumulates a column of 16 elements of C, and multiplies one element
// of B, directly from global memory, by a column of A's tile: 16 FMAs per load of B and four vector
// loads of A. The loop along k is deliberately not unrolled, for comparison with the next rung:
// each step waits for its own element of B, and only other warps hide that latency.
//
// The source argued with instructions that take one operand from shared memory for free. No GPU
// since 2014 has them; what remains is fewer loads.

#include <cstdint>

#include "kernels/ladder/fp32/outer_product.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::outer_product {
namespace {

__global__ void __launch_bounds__(kOuterThreads)
    outer_product(Problem p, OuterGrid grid, const float* __restrict__ a,
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
    add_step<1>(acc, tile, own_column, p, step);
    __syncthreads();
  }
  store_column(p, c, first_row, column, acc);
}

const Registration registration(outer_kernel(
    outer_product,
    {
        .name = "OuterProduct",
        .idea =
            "Outer products: 16 accumulators per thread, each element of B loaded once for all of "
            "them.",
        .rung = 21,
    }));

}  // namespace
}  // namespace gemm::simt::outer_product
