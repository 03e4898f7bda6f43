// TiledTransposedStore with rows of 33 words instead of 32: neighbours in a column now lie in
// neighbouring banks, and every access takes one wavefront. The unused word costs 3 % more shared
// memory, and that rows no longer begin at multiples of 16 bytes, so that no four words can be read
// at once. What binds is the number of reads, two for every multiplication.
#include "kernels/common/tile_launch.cuh"
#include "kernels/registry.hpp"
#include "kernels/simt/shared_memory/turned_tiles.cuh"

namespace gemm::simt {
namespace {

constexpr int kPitch = kTurnedTile + 1;

const Registration registration{{
    .name = "TiledPadded",
    .idea = "The turned tiles with rows padded by one word, which spreads a column over all banks.",
    .source =
        "course report on CUDA matrix multiplication (Quadro RTX 5000), bank conflicts left as "
        "future work, block 32 x 32",
    .rung = 16,
    .precisions = {Precision::f32},
    .traffic = turned_traffic<kPitch>,
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      return tile_launch<float, TurnedGrid>(turned_tiles<kPitch>, dim3(kTurnedTile, kTurnedTile), p,
                                            o);
    },
}};

}  // namespace
}  // namespace gemm::simt
