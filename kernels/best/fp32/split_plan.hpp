// Over how many blocks the work of a C with few rows or columns is split.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "kernels/gemm.hpp"
#include "kernels/parts/cost.hpp"

namespace gemm::simt {

// A block computes rows x columns of C in steps of `step` along k; `blocks` of them fit an SM.
// `sums` is the number of accumulators that a block adds through shared memory at the end of a
// tile.
struct SplitTile {
  int rows, columns, step, blocks;
  int sums;
};

// The steps of all tiles form one sequence, tile by tile; each block gets an equal share of it.
struct SplitPlan {
  std::int64_t tile_columns = 0, tiles = 0, tile_steps = 0, blocks = 0;

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

// The numbers of blocks worth a look: as many as run at once, a multiple of the tiles, one per
// tile.
inline std::vector<SplitPlan> split_plans(std::int64_t m, std::int64_t n, std::int64_t k,
                                          const SplitTile& tile, const Device& device) {
  SplitPlan plan;
  plan.tile_columns = ceil_div(n, tile.columns);
  plan.tiles = ceil_div(m, tile.rows) * plan.tile_columns;
  plan.tile_steps = ceil_div(k, tile.step);
  const std::int64_t most =
      std::min(std::int64_t{device.sm_count} * tile.blocks, plan.tiles * plan.tile_steps);
  std::vector<SplitPlan> all;
  for (const std::int64_t blocks : std::set{most, most / plan.tiles * plan.tiles, plan.tiles})
    if (plan.blocks = blocks; blocks > 0) all.push_back(plan);
  return all;
}

// Of a plan for a problem with so many multiply-adds, with the traffic of all but partial sums. The
// second launch adds partial sums.
inline Work split_work(const SplitPlan& plan, const SplitTile& tile, double k, Traffic traffic,
                       const Device& device) {
  const double sum_bytes = sizeof(float) * tile.rows * tile.columns,
               partials = 2 * sum_bytes * static_cast<double>(plan.pieces()),
               blocks = static_cast<double>(plan.blocks), tiles = static_cast<double>(plan.tiles),
               sms = device.sm_count, each = tiles / blocks;
  const bool even = plan.tiles % plan.blocks == 0 || plan.blocks % plan.tiles == 0;
  traffic.dram += partials;
  traffic.l2 += partials;
  const double of_sm = std::ceil(blocks / sms);  // blocks, of which so many run one after another:
  const double waves = std::ceil(of_sm / tile.blocks),
               ends = (std::ceil(each) + (even ? 0 : 1)) * waves;
  return {.traffic = traffic,
          .cycles = fp32_cycles(tiles * tile.rows * tile.columns * k, device),
          .busiest = of_sm * sms / blocks,
          .launches = partials > 0 ? 2.0 : 1.0,
          .tiles = ends,
          .tail = ends * sizeof(float) * tile.sums};
}

}  // namespace gemm::simt
