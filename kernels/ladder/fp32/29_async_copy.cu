// A multistage pipeline with cp.async: asynchronous copies fill a ring of stages in shared memory
// without a detour through registers, several K tiles ahead, while the warps do nothing but FMAs.
// Global-memory latency is spread over several K tiles, and the registers of the double buffer are
// free for larger thread tiles. Cost: shared memory for the stages. The bottleneck now is the share
// of FMAs among the issued instructions.
#include "kernels/ladder/fp32/async_tile.cuh"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/parts/wave_estimate.hpp"
#include "kernels/registry.hpp"

namespace gemm::simt::async_copy {
namespace {

template <typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    async_copy(Problem p, TileGrid<Tile::kBM, Tile::kBN> grid, const float* __restrict__ a,
               const float* __restrict__ b, float* __restrict__ c) {
  extern __shared__ __align__(16) float shared[];
  Tile tile(p, grid.first_row(), grid.first_column(), a, b, shared);
  tile.multiply();
  tile.store(c);
}

template <typename Tile>
Launch launch(const Problem& p, const Operands& o) {
  const TileGrid<Tile::kBM, Tile::kBN> grid(p);
  return tile_launch<float>(async_copy<Tile>, Tile::kThreads, p, o, grid, Tile::kSharedBytes, true);
}

constexpr double kStoresOfNarrowWarps = 1.25;

// kFull, kAlone: GFLOP/s of an SM that is full and of one with one warp per scheduler (NOTES.md).
template <int kBM, int kBN, int kBK, int kWM, int kWN, int kStages, int kBlocks, int kFull,
          int kAlone>
Kernel point() {
  using Tile = AsyncTile<kBM, kBN, kBK, kWM, kWN, kStages, kBlocks, 4>;
  return {
      .name = "AsyncCopy",
      .parameters = numbers(
          {{"BM", kBM}, {"BN", kBN}, {"BK", kBK}, {"WM", kWM}, {"WN", kWN}, {"stages", kStages}}),
      .idea = "A multistage cp.async pipeline: copies bypass the registers and overlap the FMAs.",
      .source = "CUTLASS, Efficient GEMM; the SGEMM of cuBLAS on compute capability 8.0",
      .rung = 29,
      .precisions = {Precision::f32},
      .unsupported = [](const Problem&,
                        const Device& device) { return async_tile_unsupported<Tile>(device); },
      .traffic = [](const Problem& p,
                    const Device&) { return tile_traffic(p, kBM, kBN, kBK, Tile::kWavefronts); },
      .estimate =
          [](const Problem& p, const Device& device) {
            return wave_estimate(p, device,
                                 {kBM, kBN, kBlocks, Tile::kThreads / 32, 1e9 * kFull, 1e9 * kAlone,
                                  kWN < 64 ? kStoresOfNarrowWarps : 1},
                                 p.n % 4 == 0);
          },
      .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
        using Any = AsyncTile<kBM, kBN, kBK, kWM, kWN, kStages, kBlocks, 1>;
        return p.n % 4 == 0 ? launch<Tile>(p, o) : launch<Any>(p, o);
      },
  };
}

const TunableRegistration registration({
    point<64, 128, 16, 32, 64, 3, 4, 386, 329>(),
    point<64, 64, 16, 32, 32, 4, 4, 360, 268>(),
    point<64, 64, 16, 32, 64, 4, 6, 360, 307>(),
    point<32, 128, 16, 32, 64, 3, 7, 385, 344>(),
});

}  // namespace
}  // namespace gemm::simt::async_copy
