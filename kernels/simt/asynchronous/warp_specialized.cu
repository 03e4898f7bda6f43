// Warps with two jobs: one warpgroup has the copy engine (TMA) fill a ring of stages, from operands
// that are laid along m or n beforehand if need be; two do nothing but multiply. Addresses, limits
// and copies are no longer among the instructions of those who multiply, and with 232 registers
// each of these has 16 x 8 results and its factors loaded ahead.
#include "kernels/registry.hpp"
#include "kernels/simt/asynchronous/specialized_tile.cuh"

namespace gemm::simt {
namespace {

using Tile = SpecializedTile<128, 256, 8>;

__global__ void __launch_bounds__(Tile::kThreads, 1)
    warp_specialized(const __grid_constant__ SpecializedWork work,
                     const __grid_constant__ CUtensorMap a_map,
                     const __grid_constant__ CUtensorMap b_map) {
  specialized_block<Tile>(work, a_map, b_map, StoreOrLeave<Tile>{});
}

constexpr int kGroup = 8;

const Registration registration({
    .name = "WarpSpecialized",
    .idea = "One warpgroup copies slices into a ring (TMA), two only multiply.",
    .source = "CUTLASS, warp specialization; Bauer et al., CudaDMA (2011)",
    .rung = 31,
    .precisions = {Precision::f32},
    .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
    .unsupported =
        [](const Problem& p, const Device& device) {
          return specialized_unsupported<Tile>(warp_specialized, p, device);
        },
    .traffic = [](const Problem& p, const Device&) { return specialized_traffic<Tile>(p); },
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      const TileSchedule schedule = whole_tiles(p, Tile::kBM, Tile::kBN, Tile::kBK);
      return specialized_launch<Tile>(warp_specialized, p, o, schedule, kGroup);
    },
});

}  // namespace
}  // namespace gemm::simt
