// How a GEMM with a short side is divided among blocks: plans with a small model of their time, the
// larger of DRAM time for the long side and L2 time for both sides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/gemm.hpp"

namespace gemm::tensor {

// Sizes in elements, and bytes per element.
struct SwappedShape {
  std::int64_t rows, tokens, k;
  int element_bytes;
  bool promoted = false;  // accumulators are promoted every 128 products
};

// A block computes `tile_rows` of the long side by all of the short side, over a share of k.
// `splits` blocks share a tile; `per_sm` blocks shall fit an SM.
struct SwappedPlan {
  int tile_rows, splits, per_sm;
  std::int64_t tiles, k_tiles;
  double weight_bytes;
  double seconds = std::numeric_limits<double>::infinity();  // by the model

  std::int64_t blocks() const { return tiles * splits; }
};

// A K tile is a line of 128 bytes along k of 128 rows, or two such lines of 64 rows.
inline constexpr int kStageLineBytes = 128, kStageRows = 128;
inline constexpr int kMostSplits = 8;  // larger clusters are not portable

// The N of wgmma: 8, 16, 32, 64 or 128.
constexpr std::int64_t padded_tokens(std::int64_t tokens) {
  return tokens <= 8 ? 8 : tokens <= 16 ? 16 : tokens <= 32 ? 32 : tokens <= 64 ? 64 : 128;
}

// Measured on an H200 (NOTES.md): shares of the rates of DRAM and L2, bytes per second of one SM,
// and seconds.
inline constexpr double kSwappedOfDram = 4.35e12 / Device::kH200Dram,
                        kSwappedOfL2 = 9.5e12 / Device::kH200L2, kSwappedSm = 0.105e12,
                        kSwappedSmPromoted = 0.085e12;
inline constexpr double kSwappedLaunch = 2.6e-6, kSwappedAdd = 0.3e-6,  // per block of a cluster
    kSwappedStore = 75e-12;  // per byte of a block's accumulators

// Blocks per SM. With 8 tokens one more than needed, so that blocks of the next launch can start
// early; with more tokens the shared memory is better used for stages: two blocks, or one.
inline int blocks_per_sm(const SwappedPlan& plan, std::int64_t tokens, int sm_count) {
  const std::int64_t each = ceil_div(plan.blocks(), sm_count);
  if (tokens <= 8) return static_cast<int>(std::min<std::int64_t>(each + 1, 4));
  return each == 1 && tokens > 16 ? 1 : 2;
}

// All of them, at least one.
inline std::vector<SwappedPlan> swapped_plans(const SwappedShape& shape, const Device& device) {
  std::vector<SwappedPlan> plans;
  const double depth = 1.0 * static_cast<double>(shape.k) * shape.element_bytes;
  const double sm_rate = (shape.promoted ? kSwappedSmPromoted : kSwappedSm) / device.clock_ratio();
  for (const int tile_rows : {64, 128}) {
    SwappedPlan plan{.tile_rows = tile_rows, .splits = 1, .per_sm = 1};
    plan.tiles = ceil_div(shape.rows, tile_rows);
    plan.k_tiles =
        ceil_div(shape.k * shape.element_bytes, kStageLineBytes * kStageRows / tile_rows);
    plan.weight_bytes = depth * static_cast<double>(shape.rows);
    const double token_bytes = depth * static_cast<double>(shape.tokens * plan.tiles);
    for (; plan.splits <= std::min<std::int64_t>(kMostSplits, plan.k_tiles); ++plan.splits) {
      const double of_block = depth * static_cast<double>(tile_rows + shape.tokens) / plan.splits;
      const double of_sm = of_block * static_cast<double>(ceil_div(plan.blocks(), device.sm_count));
      const double store =
          kSwappedStore * 4 * tile_rows * static_cast<double>(padded_tokens(shape.tokens));
      plan.seconds =
          kSwappedLaunch + (plan.splits > 1 ? kSwappedAdd * plan.splits : 0) + store +
          std::max({plan.weight_bytes / (kSwappedOfDram * device.dram_bytes_per_second),
                    (plan.weight_bytes + token_bytes) / (kSwappedOfL2 * device.l2_bytes_per_second),
                    of_sm / sm_rate});
      plan.per_sm = blocks_per_sm(plan, shape.tokens, device.sm_count);
      plans.push_back(plan);
    }
  }
  return plans;
}

}  // namespace gemm::tensor
