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

// A K tile is a line of 128 bytes along k, or two such lines of 64 rows with few tokens.
inline constexpr int kStageLineBytes = 128;
constexpr int lines_of_stage(int rows, int tokens) { return rows == 64 && tokens <= 64 ? 2 : 1; }
inline constexpr int kMostSplits = 16;  // the largest cluster

// The N of wgmma, and which fit: with more than 128 tokens 64 rows would load more tokens than
// weights by far, accumulators must fit 168 registers, of which promoted ones take twice as many,
// and MN-major tokens are loaded in groups of 64.
inline constexpr int kTokenSizes[] = {8, 16, 32, 64, 128, 192, 256};
struct TokenKind {
  bool promoted = false, mn_major = false;
};
constexpr bool token_tile_fits(int rows, int tokens, TokenKind kind) {
  return tokens <= (rows == 64 || kind.promoted ? 128 : 256) &&
         (!kind.mn_major || (tokens % 64 == 0 && tokens > 64));
}
// Fewer MN-major tokens are packed K-major: a group that they do not fill is slow to load.
inline constexpr int kPackedTokens = 64;

// The smallest size for so many tokens; 0 if none fits.
constexpr int token_tile(int rows, std::int64_t tokens, TokenKind kind) {
  for (const int size : kTokenSizes)
    if (size >= tokens && token_tile_fits(rows, size, kind)) return size;
  return 0;
}
// Smaller tiles of more than so many tokens are no choice: weights are read once for each.
inline constexpr int kTokensOfFewTiles = 128;

// Measured on an H200 (NOTES.md): shares of the rates of DRAM, L2 and the tensor cores, bytes per
// second of one SM, and seconds.
inline constexpr double kSwappedOfDram = 4.35e12 / Device::kH200Dram,
                        kSwappedOfL2 = 9.5e12 / Device::kH200L2, kSwappedSm = 0.118e12,
                        kSwappedSmPromoted = 0.079e12, kSwappedOfClock = 0.78;
inline constexpr double kSwappedLaunch = 2.6e-6, kSwappedAdd = 0.144e-6;  // per block of a cluster
// Per byte of a block's accumulators: to store them, the same where tokens are adjacent in C, and
// to read them from other blocks.
inline constexpr double kSwappedStore = 42e-12, kSwappedStoreTokens = 109e-12,
                        kSwappedRead = 12e-12;

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

// All plans with these tiles: one for each number of blocks that share a tile.
inline void add_plans(std::vector<SwappedPlan>& plans, const SwappedShape& shape,
                      const Device& device, int tile_rows, int tile_tokens) {
  const double depth = 1.0 * static_cast<double>(shape.k) * shape.element_bytes;
  const double sm_rate = (shape.promoted ? kSwappedSmPromoted : kSwappedSm) / device.clock_ratio();
  SwappedPlan plan{.tile_rows = tile_rows,
                   .tile_tokens = tile_tokens,
                   .splits = 1,
                   .per_sm = 1,
                   .tiles = ceil_div(shape.rows, tile_rows),
                   .token_tiles = ceil_div(shape.tokens, tile_tokens),
                   .k_tiles = ceil_div(shape.k * shape.element_bytes,
                                       kStageLineBytes * lines_of_stage(tile_rows, tile_tokens)),
                   .weight_bytes = depth * static_cast<double>(shape.rows)};
  const double token_bytes = depth * static_cast<double>(shape.tokens * plan.tiles);
  const double l2_bytes = plan.weight_bytes * static_cast<double>(plan.token_tiles) + token_bytes;
  const auto tokens = static_cast<double>(std::min<std::int64_t>(shape.tokens, tile_tokens));
  const double sums = 4.0 * tile_rows * tile_tokens;  // bytes
  const double store = (shape.tokens_adjacent ? kSwappedStoreTokens : kSwappedStore) * sums;
  for (; plan.splits <= std::min<std::int64_t>(kMostSplits, plan.k_tiles); ++plan.splits) {
    // Large clusters are for few tiles.
    if (plan.splits > Device::kPortableCluster &&
        plan.tiles * plan.token_tiles > device.clusters(plan.splits))
      break;
    plan.per_sm = blocks_per_sm(plan, shape.tokens, device.sm_count);
    const double blocks = blocks_of_sm(plan, device);
    const double loads = depth * (tile_rows + tokens) / plan.splits / sm_rate;
    // Four MMAs of 64 rows a line, each of N / 2 cycles.
    const double mmas = depth / kStageLineBytes / plan.splits * 4 * tile_rows / 64 * tile_tokens /
                        2 / (kSwappedOfClock * device.sm_hz);
    const double read = kSwappedRead * sums * (plan.splits - 1) / plan.splits;
    plan.seconds = kSwappedLaunch + (plan.splits > 1 ? kSwappedAdd * plan.splits : 0) +
                   (store + read) * blocks +
                   std::max({plan.weight_bytes / (kSwappedOfDram * device.dram_bytes_per_second),
                             l2_bytes / (kSwappedOfL2 * device.l2_bytes_per_second),
                             blocks * std::max(loads, mmas)});
    plans.push_back(plan);
  }
}

// All of them, at least one: tokens are divided evenly among as few tiles as possible, or among
// more of no less than kTokensOfFewTiles. Tiles of 64 rows have all tokens.
inline std::vector<SwappedPlan> swapped_plans(const SwappedShape& shape, const Device& device) {
  std::vector<SwappedPlan> plans;
  for (const int tile_rows : {64, 128})
    for (int tiles = 1, before = 0;; ++tiles) {
      const int tile_tokens = token_tile(tile_rows, ceil_div(shape.tokens, tiles),
                                         {shape.promoted, shape.tokens_mn_major});
      if (tile_tokens != before) add_plans(plans, shape, device, tile_rows, tile_tokens);
      before = tile_tokens;
      if (tile_rows == 64 || (tile_tokens > 0 && tile_tokens <= kTokensOfFewTiles)) break;
    }
  return plans;
}

}  // namespace gemm::tensor
