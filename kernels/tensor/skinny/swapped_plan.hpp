// How a product with a short side is cut into blocks: by a small model of its time, which is that
// of the long side's way from DRAM, or of both sides' way from the L2.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace gemm::tensor {

// Elements of the sides, and bytes of an element.
struct SwappedShape {
  std::int64_t rows, tokens, k;
  int element_bytes;
  bool promoted = false;  // accumulators go to FP32 every 128 products
};

// A block computes `tile_rows` of the long side and all of the short one, along a share of k; so
// many blocks share a tile, and so many shall fit an SM.
struct SwappedPlan {
  int tile_rows, splits, together;
  std::int64_t tiles, k_tiles;
  double weight_bytes;
  double seconds = std::numeric_limits<double>::infinity();  // by the model

  std::int64_t blocks() const { return tiles * splits; }
};

// A K tile is a line of 128 bytes of k of 128 rows, or two of 64.
inline constexpr int kStageLineBytes = 128, kStageRows = 128;
inline constexpr int kMostSplits = 8;  // larger clusters are not portable

constexpr std::int64_t pieces(std::int64_t whole, std::int64_t piece) {
  return (whole + piece - 1) / piece;
}
// wgmma has 8, 16, 32 or 64 here.
constexpr std::int64_t padded_tokens(std::int64_t tokens) {
  return tokens <= 8 ? 8 : tokens <= 16 ? 16 : tokens <= 32 ? 32 : 64;
}

// Of an H200, by NOTES.md: bytes a second of all and of one SM, and seconds.
inline constexpr double kSwappedDram = 4.35e12, kSwappedL2 = 9.5e12, kSwappedSm = 0.105e12,
                        kSwappedSmPromoted = 0.085e12;
inline constexpr double kSwappedLaunch = 2.6e-6, kSwappedAdd = 0.5e-6,  // a block of a cluster
    kSwappedSum = 50e-12;                                               // a byte

// Blocks that shall fit an SM. With 8 tokens one more than there are, so that those of the next
// launch can begin before these have ended; more tokens take room from the ring, whose stages are
// worth more: two then, or one.
inline int together_for(const SwappedPlan& plan, std::int64_t tokens, int sm_count) {
  const std::int64_t each = pieces(plan.blocks(), sm_count);
  if (tokens <= 8) return static_cast<int>(std::min<std::int64_t>(each + 1, 4));
  return each == 1 && tokens > 16 ? 1 : 2;
}

inline SwappedPlan swapped_plan(const SwappedShape& shape, int sm_count) {
  SwappedPlan best;
  const double depth = 1.0 * static_cast<double>(shape.k) * shape.element_bytes;
  const double sm_rate = shape.promoted ? kSwappedSmPromoted : kSwappedSm;
  for (const int tile_rows : {64, 128}) {
    SwappedPlan plan{.tile_rows = tile_rows, .splits = 1, .together = 1};
    plan.tiles = pieces(shape.rows, tile_rows);
    plan.k_tiles = pieces(shape.k * shape.element_bytes, kStageLineBytes * kStageRows / tile_rows);
    plan.weight_bytes = depth * static_cast<double>(shape.rows);
    const double token_bytes = depth * static_cast<double>(shape.tokens * plan.tiles);
    for (; plan.splits <= std::min<std::int64_t>(kMostSplits, plan.k_tiles); ++plan.splits) {
      const double of_block = depth * static_cast<double>(tile_rows + shape.tokens) / plan.splits;
      const double of_sm = of_block * static_cast<double>(pieces(plan.blocks(), sm_count));
      const double add =
          kSwappedAdd * plan.splits +
          kSwappedSum * 4 * tile_rows * static_cast<double>(padded_tokens(shape.tokens));
      plan.seconds = kSwappedLaunch + (plan.splits > 1 ? add : 0) +
                     std::max({plan.weight_bytes / kSwappedDram,
                               (plan.weight_bytes + token_bytes) / kSwappedL2, of_sm / sm_rate});
      if (plan.seconds < best.seconds) best = plan;
    }
  }
  best.together = together_for(best, shape.tokens, sm_count);
  return best;
}

}  // namespace gemm::tensor
