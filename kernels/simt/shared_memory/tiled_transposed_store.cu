// Tiles stored turned, with rows of 32 words: a column lies in one bank. Both stores and the read
// of B then take 32 wavefronts where one would do; the read does so for four words at a time, as
// far as the compiler can join them. So tiling gains little here, and not because of the card: the
// kernel waits for shared memory as the naive one waits for the L1. TiledPadded is this kernel with
// one number changed.
#include "kernels/common/tile_launch.cuh"
#include "kernels/registry.hpp"
#include "kernels/simt/shared_memory/turned_tiles.cuh"

namespace gemm::simt {
namespace {

constexpr int kPitch = kTurnedTile;

const Registration registration{{
    .name = "TiledTransposedStore",
    .idea =
        "Tiles stored turned: a warp walks down columns of shared memory, 32 lanes in one bank.",
    .source =
        "course report on CUDA matrix multiplication (Quadro RTX 5000), shared memory tiling, "
        "block 32 x 32",
    .rung = 15,
    .precisions = {Precision::f32},
    .traffic = turned_traffic<kPitch>,
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      return tile_launch<float, TurnedGrid>(turned_tiles<kPitch>, dim3(kTurnedTile, kTurnedTile), p,
                                            o);
    },
}};

}  // namespace
}  // namespace gemm::simt
