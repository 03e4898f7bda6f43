// Tiles stored transposed, in rows of 32 words: a column is in a single bank, so both stores and
// the loads of B are 32-way bank conflicts (the loads partly vectorized by the compiler). Tiling
// then gains little: the kernel waits for shared memory as the naive one waits for the L1.
// TiledPadded differs in one number.
#include "kernels/ladder/fp32/transposed_tiles.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::tiled_transposed_store {
namespace {

constexpr int kPitch = kTransposedTile;

const Registration registration{{
    .name = "TiledTransposedStore",
    .idea = "Tiles stored transposed in shared memory: 32-way bank conflicts.",
    .source =
        "course report on CUDA matrix multiplication (Quadro RTX 5000), shared memory tiling, "
        "block 32 x 32",
    .rung = 15,
    .precisions = {Precision::f32},
    .traffic = transposed_traffic<kPitch>,
    .prepare = prepare_tiles(transposed_tiles<kPitch>, dim3(kTransposedTile, kTransposedTile)),
}};

}  // namespace
}  // namespace gemm::simt::tiled_transposed_store
