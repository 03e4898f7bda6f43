// As many blocks as there are SMs, and no more: each computes whole tiles as long as these fill
// waves, and an equal share of the slices that are left over. No SM is idle in a last wave, the
// feeders fill the ring for the next tile while the last one is stored, and a problem with fewer
// tiles than SMs is spread over all of them.
#include "kernels/registry.hpp"
#include "kernels/simt/asynchronous/specialized_tile.cuh"

namespace gemm::simt {
namespace {

using Tile = SpecializedTile<128, 256, 8>;

__global__ void __launch_bounds__(Tile::kThreads, 1)
    stream_k(const __grid_constant__ SpecializedWork work,
             const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map) {
  specialized_block<Tile>(work, a_map, b_map, StoreOrLeave<Tile>{});
}

// Of an H200, by NOTES.md.
constexpr TileCost kCost{.slice = 2.53e-6, .finish = 2e-6, .exchange = 3.5e-6};
constexpr double kLaunchSeconds = 4e-6;  // from the first block to the last, with nothing to do
constexpr int kGroup = 8;

TileSchedule schedule_of(const Problem& p, const Device& device) {
  return tile_schedule(p, Tile::kBM, Tile::kBN, Tile::kBK, device.sm_count, kCost);
}

const Registration registration({
    .name = "StreamK",
    .idea = "What does not fill a wave of tiles is cut along k into equal shares, one an SM.",
    .source = "Osama et al., Stream-K (2023); CUTLASS",
    .rung = 32,
    .precisions = {Precision::f32},
    .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
    .unsupported =
        [](const Problem& p, const Device& device) {
          return specialized_unsupported<Tile>(stream_k, p, device);
        },
    .traffic =
        [](const Problem& p, const Device& device) {
          return specialized_traffic<Tile>(p, continued_pieces(schedule_of(p, device)));
        },
    .estimate =
        [](const Problem& p, const Device& device) {
          return kLaunchSeconds + laid_seconds(p) + seconds(schedule_of(p, device), kCost);
        },
    .prepare = [](const Problem& p, const Device& device, const Operands& o) -> Launch {
      return specialized_launch<Tile>(stream_k, p, o, schedule_of(p, device), kGroup);
    },
});

}  // namespace
}  // namespace gemm::simt
