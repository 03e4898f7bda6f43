// Chooses a tile for a C with few rows or columns, and over how many blocks k is split: by a small
// model of the time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "kernels/gemm.hpp"

namespace gemm::simt {

// A block computes rows x columns of C in steps of `step` along k; `blocks` of them fit an SM.
// flop_per_second is the rate of an SM of an H200. `sums` is the number of accumulators that a
// block adds through shared memory at the end of a tile.
struct SplitTile {
  int rows, columns, step, blocks;
  double flop_per_second;
  int sums;
};

// The steps of all tiles form one sequence, tile by tile; each block gets an equal share of it.
struct SplitPlan {
  std::int64_t tile_columns = 0, tiles = 0, tile_steps = 0, blocks = 0;
  double seconds = std::numeric_limits<double>::infinity();  // by the model

  // The first step of a block, and the block of a step.
  constexpr std::int64_t begin(std::int64_t block) const {
    return block * (tiles * tile_steps) / blocks;
  }
  constexpr std::int64_t block_of(std::int64_t step) const {
    return ((step + 1) * blocks - 1) / (tiles * tile_steps);
  }
  // Number of pieces of shared tiles; slightly too high where a cut coincides with the end of a
  // tile.
  std::int64_t pieces() const {
    return tiles % blocks == 0 ? 0 : std::min(2 * blocks, blocks + tiles - std::gcd(blocks, tiles));
  }
};

// Fitted to measurements on an H200 and an H100 (NOTES.md): shares of the read rates of DRAM and
// L2; a launch with a block's first tile; another tile; an accumulator of a tile's end; the launch
// that reduces partial sums.
inline constexpr double kOfDram = 0.832, kOfL2 = 0.522;
inline constexpr double kLaunchSeconds = 4e-6, kNextTileSeconds = 0.97e-6, kSumSeconds = 70e-12,
                        kAddSeconds = 2.15e-6;
inline constexpr double kSmsThatSaturateDram = 0.8;  // as a fraction

inline SplitPlan split_plan(std::int64_t m, std::int64_t n, std::int64_t k, const SplitTile& tile,
                            const Device& device) {
  const int sm_count = device.sm_count;
  const double dram_rate = kOfDram * device.dram_bytes_per_second,
               l2_rate = kOfL2 * device.l2_bytes_per_second;
  SplitPlan plan;
  plan.tile_columns = ceil_div(n, tile.columns);
  const std::int64_t tile_rows = ceil_div(m, tile.rows);
  plan.tiles = tile_rows * plan.tile_columns;
  plan.tile_steps = ceil_div(k, tile.step);
  const std::int64_t steps = plan.tiles * plan.tile_steps;
  const std::int64_t slots = std::int64_t{sm_count} * tile.blocks;

  const auto seconds = [&](std::int64_t blocks) {
    plan.blocks = blocks;
    const double cut = static_cast<double>(plan.pieces());
    const double each = static_cast<double>(ceil_div(steps, blocks));
    const double per_sm = static_cast<double>(ceil_div(blocks, sm_count));  // blocks per SM
    const double multiply = each * 2 * tile.rows * tile.columns * tile.step * per_sm *
                            device.clock_ratio() / tile.flop_per_second;
    // In floating point: for sizes near 2^31 the products overflow integers.
    const double a = 4.0 * m * k, b = 4.0 * k * n, c = 4.0 * m * n;
    const double dram = (a + b + c) / dram_rate;
    const double l2 = (a * plan.tile_columns + b * tile_rows) / l2_rate;
    const double sms = static_cast<double>(std::min<std::int64_t>(blocks, sm_count)) / sm_count;
    const double read = std::max(dram, l2) / std::min(1.0, sms / kSmsThatSaturateDram);
    // A block whose share does not end with a tile starts another tile.
    const bool whole = plan.tiles % blocks == 0 || blocks % plan.tiles == 0;
    const double tiles =
        std::max(1.0, each / plan.tile_steps) * ceil_div(blocks, slots) + (whole ? 0 : 1);
    const double sums =
        cut == 0 ? 0 : kAddSeconds + 2.0 * 4 * tile.rows * tile.columns * cut / l2_rate;
    return kLaunchSeconds + std::max(multiply, read) + (tiles - 1) * kNextTileSeconds +
           tiles * tile.sums * kSumSeconds * device.clock_ratio() + sums;
  };
  // Candidates: as many blocks as run at once, a multiple of the tiles, or one per tile.
  SplitPlan best;
  const std::int64_t all = std::min(slots, steps);
  for (const std::int64_t blocks : {all, all / plan.tiles * plan.tiles, plan.tiles})
    if (const double time = blocks > 0 ? seconds(blocks) : best.seconds; time < best.seconds) {
      best = plan;
      best.seconds = time;
    }
  return best;
}

}  // namespace gemm::simt
