// Each thread keeps a column of 16 results and multiplies one element of B, straight from global
// memory, with a column of A's tile: 16 multiplications for one load of B and four reads of shared
// memory, where Tiled reads twice for each. The loop along k is kept a loop here, on purpose, so
// that the next rung can show what unrolling it brings; the loop over the 16 results must be
// unrolled, since registers have no index. So each step waits for its own element of B, and only
// other warps hide that: latency binds.
//
// The idea was first sold with an argument about instructions, one operand of which came from
// shared memory for free. No GPU since 2014 has such operands; what remains is fewer reads.
#include "kernels/common/tile_launch.cuh"
#include "kernels/registry.hpp"
#include "kernels/simt/register_tiles/outer_product.cuh"

namespace gemm::simt {
namespace {

const Registration registration{{
    .name = "OuterProduct",
    .idea =
        "A column of 16 results in registers, one element of B from global memory for all of them.",
    .source = kOuterSource,
    .rung = 21,
    .precisions = {Precision::f32},
    .traffic = outer_traffic,
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      return tile_launch<float, OuterGrid>(outer_product<1>, kOuterThreads, p, o);
    },
}};

}  // namespace
}  // namespace gemm::simt
