// The outer product with its 16 steps along a tile unrolled. The branch and the counting it saves
// are the smaller part: with the steps side by side the compiler moves the loads of B's elements
// ahead of the multiplications, so that a warp waits for many of them at once instead of for each
// in turn.
#include "kernels/common/tile_launch.cuh"
#include "kernels/registry.hpp"
#include "kernels/simt/register_tiles/outer_product.cuh"

namespace gemm::simt {
namespace {

const Registration registration{{
    .name = "OuterProductUnrolled",
    .idea = "The outer product with the loop along k unrolled: many loads of B under way at once.",
    .source = kOuterSource,
    .rung = 22,
    .precisions = {Precision::f32},
    .traffic = outer_traffic,
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      return tile_launch<float, OuterGrid>(outer_product<kOuterDepth>, kOuterThreads, p, o);
    },
}};

}  // namespace
}  // namespace gemm::simt
