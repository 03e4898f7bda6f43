// Time of a grid of equal tiles, from the measured rate of one tile.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/gemm.hpp"
#include "kernels/parts/tile_schedule.hpp"

namespace gemm::simt {

// A block of `warps` warps computes rows x columns of C; `blocks` of them fit an SM. FLOP/s of an
// SM: full, and with one warp per scheduler. `stores`: the time of storing C, relative to that with
// warps that store 256 bytes of a row.
struct TileRate {
  int rows, columns, blocks, warps;
  double full, alone, stores = 1;
};

// Constants and rates were fitted on an H100 and an H200, those of SharedDoubleBuffer measured on
// an H200 (kernels/ladder/fp32/NOTES.md), with rows that begin at multiples of 16 bytes
// (`vectors`). They scale with the SM clock. With other rows elements of B are copied singly. That
// costs more per FMA if a tile has few rows. On other architectures the rates rank kernels but do
// not predict times.
inline double wave_estimate(const Problem& p, const Device& device, const TileRate& rate,
                            bool vectors) {
  constexpr double kWaveSeconds = 1.8e-6;  // a wave's begin, and the launch with the first one
  // Seconds of an SM per element that is copied singly: of a full one, and of one with one warp per
  // scheduler.
  constexpr double kSinglyFull = 29e-12, kSinglyAlone = 39e-12;
  constexpr int kSchedulers = 4;  // of an SM
  // Storing C, relative to its bytes at the read rate of DRAM: the least time; and what follows the
  // FMAs of the last wave.
  const double stores = vectors ? 0.9 : 1.2, last_stores = vectors ? 1.25 : 3.45;
  const auto pieces = [](double whole, double piece) { return std::ceil(whole / piece); };
  const double tiles =
      pieces(static_cast<double>(p.m), rate.rows) * pieces(static_cast<double>(p.n), rate.columns);
  const double tile = 2.0 * rate.rows * rate.columns * static_cast<double>(p.k);
  const double slots = 1.0 * device.sm_count * rate.blocks;
  const double waves = std::floor(tiles / slots), all_waves = pieces(tiles, slots);
  const auto with_copies = [&](double flop_per_second, double singly) {
    return vectors ? flop_per_second : 1 / (1 / flop_per_second + singly / (2 * rate.rows));
  };
  const double full = with_copies(rate.full, kSinglyFull),
               alone = with_copies(rate.alone, kSinglyAlone);
  // An SM takes as long as its schedulers with most warps.
  const double last = pieces(tiles - waves * slots, device.sm_count);  // blocks per SM
  const double warps = pieces(last * rate.warps, kSchedulers),         // per scheduler
      most = 1.0 * rate.blocks * rate.warps / kSchedulers;
  const double of_last =
      most > 1 ? alone + (full - alone) * std::min(1.0, (warps - 1) / (most - 1)) : full;
  const double multiply = device.clock_ratio() * tile *
                          (waves * rate.blocks / full + warps * kSchedulers / rate.warps / of_last);
  const double c_seconds = rate.stores * traits_of(p.precision).output_bytes *
                           static_cast<double>(p.m) * static_cast<double>(p.n) /
                           device.dram_bytes_per_second;
  return all_waves * kWaveSeconds + limited_by(multiply, stores * c_seconds) +
         last_stores * c_seconds / all_waves;
}

}  // namespace gemm::simt
