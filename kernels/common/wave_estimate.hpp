// Time of a grid of equal tiles, from the measured rate of one tile.
#pragma once

#include <cmath>

#include "kernels/common/tile_grid.cuh"
#include "kernels/gemm.hpp"

namespace gemm::simt {

// A block computes rows x columns of C; `blocks` of them fit an SM.
struct TileRate {
  int rows, columns, blocks;
  double full, alone;  // FLOP/s of a full SM, and of an SM with a single block
};

// Rates were measured on an H200 with rows that begin at multiples of 16 bytes, and scale with the
// SM clock. With other rows elements are copied singly, which is slower, most of all where no other
// block hides it. On other architectures the rates rank kernels but do not predict times.
inline double wave_estimate(const Problem& p, const Device& device, const TileRate& rate) {
  constexpr double kLaunchSeconds = 3e-6;                  // of a graph of launches
  constexpr double kSinglyFull = 0.9, kSinglyAlone = 0.8;  // of the rates
  const auto pieces = [](double whole, double piece) { return std::ceil(whole / piece); };
  const double tiles =
      pieces(static_cast<double>(p.m), rate.rows) * pieces(static_cast<double>(p.n), rate.columns);
  const double tile = 2.0 * rate.rows * rate.columns * static_cast<double>(p.k);
  const double slots = 1.0 * device.sm_count * rate.blocks;
  const double waves = std::floor(tiles / slots);
  const double last = pieces(tiles - waves * slots, device.sm_count);  // blocks per SM
  const bool vectors = rows_of_16_bytes(p);
  const double full = rate.full * (vectors ? 1 : kSinglyFull),
               alone = rate.alone * (vectors ? 1 : kSinglyAlone);
  const double of_last =
      rate.blocks > 1 ? alone + (full - alone) * (last - 1) / (rate.blocks - 1) : full;
  // A block stores its tile after all products, and most blocks do so at the same time.
  const double stores = 1.0 * traits_of(p.precision).output_bytes * static_cast<double>(p.m) *
                        static_cast<double>(p.n) / device.dram_bytes_per_second;
  return kLaunchSeconds + stores +
         device.clock_ratio() * tile * (waves * rate.blocks / full + last / of_last);
}

}  // namespace gemm::simt
