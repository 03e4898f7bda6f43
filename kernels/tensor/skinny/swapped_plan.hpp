// How a GEMM with a short side is divided among blocks: plans with a small model of their time, the
// larger of DRAM time for the long side and L2 time for both sides.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/gemm.hpp"

namespace gemm::tensor {

// Sizes in elements, and bytes per element.
struct SwappedShape {
  std::int64_t rows, tokens, k;
  int element_bytes;
  bool promoted = false;         // accumulators are promoted every 128 products
  bool tokens_mn_major = false;  // else K-major
  bool tokens_adjacent = false;  // in C, else rows
};

// A block computes `tile_rows` of the long side by `tile_tokens` of the short side, over a share of
// k. `splits` blocks share a tile; `per_sm` blocks shall fit an SM.
struct SwappedPlan {
  int tile_rows, tile_tokens, splits, per_sm;
  std::int64_t tiles, token_tiles, k_tiles;
  double weight_bytes;
  double seconds = std::numeric_limits<double>::infinity();  // by the model

  std::int64_t blocks() const { return tiles * token_tiles * splits; }
};

// A K tile is a line of 128 bytes along k of 128 rows, or two such lines of 64 rows.
inline constexpr int kStageLineBytes = 128, kStageRows = 128;
inline constexpr int kMostSplits = 8;  // larger clusters are not portable

// The N of wgmma, and which fit: with more than 64 tokens two lines of 64 rows would leave too few
// stages, accumulators must fit 168 registers, of which promoted ones take twice as many, and
// MN-major tokens are loaded in groups of 64.
inline constexpr int kTokenSizes[] = {8, 16, 32, 64, 96, 128, 160, 192, 256};
struct TokenKind {
  bool promoted = false, mn_major = false;
};
constexpr bool token_tile_fits(int rows, int tokens, TokenKind kind) {
  return tokens <= (rows == 64      ? 64
                    : kind.promoted ? 128
                                    : 256) &&
         (!kind.mn_major || (tokens % 64 == 0 && tokens > 64));
}
// Fewer MN-major tokens are packed K-major: a group that they do not fill is slow to load.
inline constexpr int kPackedTokens = 64;

// The size of tiles with which so many tokens need the fewest, and of those the smallest; 0 if none
// fits.
constexpr int token_tile(int rows, std::int64_t tokens, TokenKind kind) {
  int most = 0;
  for (const int size : kTokenSizes)
    if (token_tile_fits(rows, size, kind)) most = size;
  if (most == 0) return 0;
  const std::int64_t each = ceil_div(tokens, ceil_div(tokens, most));
  for (const int size : kTokenSizes)
    if (size >= each && token_tile_fits(rows, size, kind)) return size;
  return most;
}

// Measured on an H200 (NOTES.md): shares of the rates of DRAM, L2 and the tensor cores, bytes per
// second of one SM, and seconds.
inline constexpr double kSwappedOfDram = 4.35e12 / Device::kH200Dram,
                        kSwappedOfL2 = 9.5e12 / Device::kH200L2, kSwappedSm = 0.105e12,
                        kSwappedSmPromoted = 0.085e12, kSwappedOfClock = 0.6;
inline constexpr double kSwappedLaunch = 2.6e-6, kSwappedAdd = 0.3e-6,  // per block of a cluster
    kSwappedStore = 40e-12, kSwappedStoreTokens = 100e-12;  // per byte of a block's accumulators

// Blocks per SM. With 8 tokens one more than needed, so that blocks of the next launch can start
// early; with more tokens the shared memory is better used for stages: two blocks, or one.
inline int blocks_per_sm(const SwappedPlan& plan, std::int64_t tokens, int sm_count) {
  const std::int64_t each = ceil_div(plan.blocks(), sm_count);
  if (tokens <= 8) return static_cast<int>(std::min<std::int64_t>(each + 1, 4));
  return plan.tile_tokens > 128 || (each == 1 && tokens > 16) ? 1 : 2;
}

// How many blocks an SM computes, if any computes as many as possible.
inline double blocks_of_sm(const SwappedPlan& plan, const Device& device) {
  const double clusters = std::max(1, device.clusters(plan.splits) * plan.per_sm);
  const double rounds = std::ceil(static_cast<double>(plan.blocks()) / (clusters * plan.splits));
  return std::min(rounds * plan.per_sm,
                  static_cast<double>(ceil_div(plan.blocks(), device.sm_count)) + rounds - 1);
}

// All of them, at least one.
inline std::vector<SwappedPlan> swapped_plans(const SwappedShape& shape, const Device& device) {
  std::vector<SwappedPlan> plans;
  const double depth = 1.0 * static_cast<double>(shape.k) * shape.element_bytes;
  const double sm_rate = (shape.promoted ? kSwappedSmPromoted : kSwappedSm) / device.clock_ratio();
  for (const int tile_rows : {64, 128}) {
    SwappedPlan plan{
        .tile_rows = tile_rows,
        .tile_tokens = token_tile(tile_rows, shape.tokens, {shape.promoted, shape.tokens_mn_major}),
        .splits = 1,
        .per_sm = 1};
    if (plan.tile_tokens == 0 || (plan.tile_tokens < shape.tokens && tile_rows == 64)) continue;
    plan.tiles = ceil_div(shape.rows, tile_rows);
    plan.token_tiles = ceil_div(shape.tokens, plan.tile_tokens);
    plan.k_tiles =
        ceil_div(shape.k * shape.element_bytes, kStageLineBytes * kStageRows / tile_rows);
    plan.weight_bytes = depth * static_cast<double>(shape.rows);
    const double token_bytes = depth * static_cast<double>(shape.tokens * plan.tiles);
    const double l2_bytes = plan.weight_bytes * static_cast<double>(plan.token_tiles) + token_bytes;
    const auto tokens = static_cast<double>(std::min<std::int64_t>(shape.tokens, plan.tile_tokens));
    const double store = (shape.tokens_adjacent ? kSwappedStoreTokens : kSwappedStore) * 4 *
                         tile_rows * plan.tile_tokens;
    for (; plan.splits <= std::min<std::int64_t>(kMostSplits, plan.k_tiles); ++plan.splits) {
      plan.per_sm = blocks_per_sm(plan, shape.tokens, device.sm_count);
      const double blocks = blocks_of_sm(plan, device);
      const double loads = depth * (tile_rows + tokens) / plan.splits / sm_rate;
      // Four MMAs of 64 rows a line, each of N / 2 cycles.
      const double mmas = depth / kStageLineBytes / plan.splits * 4 * tile_rows / 64 *
                          plan.tile_tokens / 2 / (kSwappedOfClock * device.sm_hz);
      plan.seconds = kSwappedLaunch + (plan.splits > 1 ? kSwappedAdd * plan.splits : 0) +
                     store * blocks +
                     std::max({plan.weight_bytes / (kSwappedOfDram * device.dram_bytes_per_second),
                               l2_bytes / (kSwappedOfL2 * device.l2_bytes_per_second),
                               blocks * std::max(loads, mmas)});
      plans.push_back(plan);
    }
  }
  return plans;
}

}  // namespace gemm::tensor
