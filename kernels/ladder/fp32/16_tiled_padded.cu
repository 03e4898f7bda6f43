// TiledTransposedStore with rows padded from 32 to 33 words: consecutive elements of a column are
// in consecutive banks, and every access takes one wavefront. Cost: 3 % more shared memory, and
// rows no longer begin at multiples of 16 bytes, which rules out vector loads. The bottleneck is
// the number of shared-memory loads: two per FMA.
#include "kernels/ladder/fp32/transposed_tiles.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::tiled_padded {
namespace {

constexpr int kPitch = kTransposedTile + 1;

const Registration registration{{
    .name = "TiledPadded",
    .idea = "The transposed tiles with rows padded by one word: no bank conflicts.",
    .source =
        "course report on CUDA matrix multiplication (Quadro RTX 5000), bank conflicts left as "
        "future work, block 32 x 32",
    .rung = 16,
    .precisions = {Precision::f32},
    .traffic = transposed_traffic<kPitch>,
    .prepare = prepare_tiles(transposed_tiles<kPitch>, dim3(kTransposedTile, kTransposedTile)),
}};

}  // namespace
}  // namespace gemm::simt::tiled_padded
