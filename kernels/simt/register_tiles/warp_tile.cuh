// Which results a thread has when a warp computes a rectangle of its own, for the kernels from
// WarpTile to SharedDoubleBuffer.
#pragma once

#include <string>
#include <vector>

#include "kernels/common/tile_grid.cuh"
#include "kernels/common/tile_launch.cuh"
#include "kernels/common/tile_traffic.hpp"
#include "kernels/common/warp_access.hpp"
#include "kernels/gemm.hpp"
#include "kernels/simt/register_tiles/vector_tile.cuh"

namespace gemm::simt {

// A block computes kBM x kBN of C in slices of kBK, a warp kWM x kWN of it, a thread 8 x 8: its
// lanes lie 4 or 8 along m and 8 or 4 along n.
template <int kBM_, int kBN_, int kBK_, int kWM_, int kWN_>
struct WarpTiling {
  static constexpr int kBM = kBM_, kBN = kBN_, kBK = kBK_, kWM = kWM_, kWN = kWN_;
  static constexpr int kTM = 8, kTN = 8;
  static constexpr int kLanesAcross = kWN / kTN, kWarpsAcross = kBN / kWN;
  static constexpr int kThreads = 32 * (kBM / kWM) * kWarpsAcross;
  static constexpr int kRowStride = kWM / 2, kColumnStride = kWN / 2;
  static_assert(kWM * kWN == 32 * kTM * kTN, "32 lanes fill the warp's tile");
  static_assert(kBM % kWM == 0 && kBN % kWN == 0, "warps divide the block's tile");

  using Lanes = PairedLanes<kLanesAcross>;
  using Grid = TileGrid<kBM, kBN>;
  using Slice = SharedSlice<kBM, kBN, kBK>;
  template <bool kAligned>
  using Carried = CarriedSlice<kBM, kBN, kBK, kThreads, kAligned>;
  using Factors = Fragment<kTM, kTN, kRowStride, kColumnStride>;

  // Of the thread's first result within the block's tile.
  static __device__ int row() {
    return threadIdx.x / 32 / kWarpsAcross * kWM + Lanes::down(threadIdx.x % 32) * 4;
  }
  static __device__ int column() {
    return threadIdx.x / 32 % kWarpsAcross * kWN + Lanes::across(threadIdx.x % 32) * 4;
  }
  template <bool kAligned>
  static __device__ void store(const Problem& p, const Grid& grid, const float (&sum)[kTM][kTN],
                               float* c) {
    store_results<kAligned, kRowStride, kColumnStride>(p, grid.first_row() + row(),
                                                       grid.first_column() + column(), sum, c);
  }

  static Traffic traffic(const Problem& p, const Device&) {
    constexpr int kWavefronts =
        slice_wavefronts<kBM, kBN, kBK, kTM, kTN>(Lanes::down, Lanes::across);
    return tile_traffic(p, kBM, kBN, kBK, kWavefronts);
  }
  static std::vector<Parameter> parameters() {
    return {{"BM", std::to_string(kBM)},
            {"BN", std::to_string(kBN)},
            {"BK", std::to_string(kBK)},
            {"WM", std::to_string(kWM)},
            {"WN", std::to_string(kWN)}};
  }
};

}  // namespace gemm::simt
