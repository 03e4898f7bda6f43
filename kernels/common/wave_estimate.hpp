// Time of a grid of equal tiles, from the measured rate of one tile.
#pragma once

#include <cmath>

#include "kernels/gemm.hpp"

namespace gemm::simt {

// A block computes rows x columns of C; `blocks` of them fit an SM. FLOP/s of an SM: full, and with
// a single block of four warps; a single block of two warps reaches little more than half of that.
struct TileRate {
  int rows, columns, blocks, warps;
  double full, alone;
};

// Rates were fitted on an H200 and an H100, those of SharedDoubleBuffer measured on an H200
// (kernels/simt/NOTES.md), with rows that begin at multiples of 16 bytes (`vectors`). They scale
// with the SM clock. With other rows elements are copied singly, which is slower. On other
// architectures the rates rank kernels but do not predict times. `stores`: the time of storing the
// C of a last wave, relative to its bytes at the read rate of DRAM.
inline double wave_estimate(const Problem& p, const Device& device, const TileRate& rate,
                            bool vectors, double stores = 1.5) {
  constexpr double kLaunchSeconds = 1.1e-6, kWaveSeconds = 0.7e-6;
  constexpr double kSinglyFull = 0.82, kSinglyAlone = 0.91;  // of the rates
  constexpr double kTwoWarps = 0.57;                         // of `alone`
  constexpr double kHiddenStores = 0.8;                      // of waves that others follow
  const auto pieces = [](double whole, double piece) { return std::ceil(whole / piece); };
  const double tiles =
      pieces(static_cast<double>(p.m), rate.rows) * pieces(static_cast<double>(p.n), rate.columns);
  const double tile = 2.0 * rate.rows * rate.columns * static_cast<double>(p.k);
  const double slots = 1.0 * device.sm_count * rate.blocks;
  const double waves = std::floor(tiles / slots), all_waves = pieces(tiles, slots);
  const double last = pieces(tiles - waves * slots, device.sm_count);  // blocks per SM
  const double full = rate.full * (vectors ? 1 : kSinglyFull),
               alone = rate.alone * (vectors ? 1 : kSinglyAlone);
  const double of_last = rate.blocks == 1 ? full
                         : last == 1 && rate.warps < 4
                             ? kTwoWarps * alone
                             : alone + (full - alone) * (last - 1) / (rate.blocks - 1);
  // A block stores its tile after all products, and most blocks of a wave do so at the same time.
  const double c_seconds = 1.0 * traits_of(p.precision).output_bytes * static_cast<double>(p.m) *
                           static_cast<double>(p.n) / device.dram_bytes_per_second;
  return kLaunchSeconds + all_waves * kWaveSeconds +
         c_seconds * (kHiddenStores + (stores - kHiddenStores) / all_waves) +
         device.clock_ratio() * tile * (waves * rate.blocks / full + last / of_last);
}

}  // namespace gemm::simt
