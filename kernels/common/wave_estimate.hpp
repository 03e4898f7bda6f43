// How long a grid of equal tiles takes, from what was measured of one tile.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/gemm.hpp"

namespace gemm::simt {

// A block computes rows x columns of C; so many blocks fit an SM.
struct TileRate {
  int rows, columns, blocks;
  double full, alone;  // FLOP/s of an SM that is full of blocks, and of one that has a single one
};

// Rates are of an H200 and of rows that begin at multiples of 16 bytes; on another device they tell
// kernels apart, not how long they take.
inline double wave_estimate(const Problem& p, const Device& device, const TileRate& rate) {
  constexpr double kLaunchSeconds = 4e-6;  // from the first block to the last, with nothing to do
  const auto pieces = [](double whole, double piece) { return std::ceil(whole / piece); };
  const double tiles =
      pieces(static_cast<double>(p.m), rate.rows) * pieces(static_cast<double>(p.n), rate.columns);
  const double tile = 2.0 * rate.rows * rate.columns * static_cast<double>(p.k);
  const double slots = 1.0 * device.sm_count * rate.blocks;
  const double waves = std::floor(tiles / slots);
  const double last = pieces(tiles - waves * slots, device.sm_count);  // blocks an SM
  const double rest = last > 0 ? std::max(last * tile / rate.full, tile / rate.alone) : 0;
  return kLaunchSeconds + waves * rate.blocks * tile / rate.full + rest;
}

}  // namespace gemm::simt
