// The mapping of threads to elements of C with warp tiles, for the kernels from WarpTile to
// SharedDoubleBuffer.
#pragma once

#include <vector>

#include "kernels/common/tile_grid.cuh"
#include "kernels/common/tile_launch.cuh"
#include "kernels/common/tile_traffic.hpp"
#include "kernels/common/warp_access.hpp"
#include "kernels/gemm.hpp"
#include "kernels/simt/register_tiles/vector_tile.cuh"

namespace gemm::simt {

// Block tile kBM x kBN with K tiles of kBK, warp tile kWM x kWN, thread tile 8 x 8: 4 or 8 lanes
// along m and 8 or 4 along n.
template <int kBM_, int kBN_, int kBK_, int kWM_, int kWN_>
struct WarpTiling {
  static constexpr int kBM = kBM_, kBN = kBN_, kBK = kBK_, kWM = kWM_, kWN = kWN_;
  static constexpr int kTM = 8, kTN = 8;
  static constexpr int kLanesAcross = kWN / kTN, kWarpsAcross = kBN / kWN;
  static constexpr int kThreads = 32 * (kBM / kWM) * kWarpsAcross;
  static constexpr int kRowStride = kWM / 2, kColumnStride = kWN / 2;
  static_assert(kWM * kWN == 32 * kTM * kTN, "32 thread tiles must fill the warp tile");
  static_assert(kBM % kWM == 0 && kBN % kWN == 0, "warp tiles must divide the block tile");

  using Lanes = PairedLanes<kLanesAcross>;
  using Grid = TileGrid<kBM, kBN>;
  using KTile = SharedKTile<kBM, kBN, kBK>;
  template <bool kAligned>
  using Loader = KTileLoader<kBM, kBN, kBK, kThreads, kAligned>;
  using Fragments = Fragments<kTM, kTN, kRowStride, kColumnStride>;

  // The first row and column of the thread tile in the block tile.
  static __device__ int row() {
    return threadIdx.x / 32 / kWarpsAcross * kWM + Lanes::down(threadIdx.x % 32) * 4;
  }
  static __device__ int column() {
    return threadIdx.x / 32 % kWarpsAcross * kWN + Lanes::across(threadIdx.x % 32) * 4;
  }
  template <bool kAligned>
  static __device__ void store(const Problem& p, const Grid& grid, const float (&acc)[kTM][kTN],
                               float* c) {
    store_results<kAligned, kRowStride, kColumnStride>(p, grid.first_row() + row(),
                                                       grid.first_column() + column(), acc, c);
  }

  static Traffic traffic(const Problem& p, const Device&) {
    constexpr int kWavefronts =
        k_tile_wavefronts<kBM, kBN, kBK, kTM, kTN>(Lanes::down, Lanes::across);
    return tile_traffic(p, kBM, kBN, kBK, kWavefronts);
  }
  static std::vector<Parameter> parameters() {
    return numbers({{"BM", kBM}, {"BN", kBN}, {"BK", kBK}, {"WM", kWM}, {"WN", kWN}});
  }
};

}  // namespace gemm::simt
