// Rasterization: the same tiles in another order. The blocks of a wave compute tiles of C that form
// compact groups instead of long rows, so that together they read fewer rows of A and columns of B
// and share them in the L2. Faster once A and B outgrow the L2; for smaller problems it saves
// energy. Cost: a few integer instructions per block.

#include "kernels/ladder/fp32/async_tile.cuh"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/parts/wave_estimate.hpp"
#include "kernels/registry.hpp"

namespace gemm::simt::rasterized {
namespace {

template <typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    rasterized(Problem p, GroupedGrid<Tile::kBM, Tile::kBN> grid, const float* __restrict__ a,
               const float* __restrict__ b, float* __restrict__ c) {
  extern __shared__ __align__(16) float shared[];
  const auto place = grid.place();
  Tile tile(p, place.first_row, place.first_column, a, b, shared);
  tile.multiply();
  tile.store(c);
}

template <typename Tile, int kGroup>
Launch prepare(const Problem& p, const Operands& o) {
  const GroupedGrid<Tile::kBM, Tile::kBN> grid{TileGrid<Tile::kBM, Tile::kBN>(p), kGroup};
  return tile_launch<float>(rasterized<Tile>, Tile::kThreads, p, o, grid, Tile::kSharedBytes, true);
}

// The default tile of AsyncCopy, for rows that begin at multiples of 16 bytes and for any.
using Aligned = AsyncTile<64, 128, 16, 32, 64, 3, 4, 4>;
using Any = AsyncTile<64, 128, 16, 32, 64, 3, 4, 1>;

template <int kGroup>
Kernel point() {
  return {
      .name = "Rasterized",
      .parameters = numbers({{"group", kGroup}}),
      .idea = "Rasterization: tiles in compact groups, so that the blocks of a wave share the L2.",
      .source = "CUTLASS, threadblock rasterization; Triton's matrix multiplication tutorial",
      .rung = 30,
      .precisions = {Precision::f32},
      .unsupported = [](const Problem&,
                        const Device& device) { return async_tile_unsupported<Aligned>(device); },
      .traffic =
          [](const Problem& p, const Device&) {
            return tile_traffic(p, Aligned::kBM, Aligned::kBN, Aligned::kBK, Aligned::kWavefronts);
          },
      .estimate =
          [](const Problem& p, const Device& device) {
            return wave_estimate(p, device,
                                 {Aligned::kBM, Aligned::kBN, Aligned::kBlocks,
                                  Aligned::kThreads / 32, 386e9, 329e9},
                                 p.n % 4 == 0);
          },
      .prepare =
          [](const Problem& p, const Device&, const Operands& o) {
            return p.n % 4 == 0 ? prepare<Aligned, kGroup>(p, o) : prepare<Any, kGroup>(p, o);
          },
  };
}

const TunableRegistration registration({point<8>(), point<4>(), point<16>(), point<32>()});

}  // namespace
}  // namespace gemm::simt::rasterized
