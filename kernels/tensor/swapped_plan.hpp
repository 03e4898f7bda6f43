// How a product with a short side is cut into blocks: by a small model of its time, which is that
// of the long side's way from DRAM.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace gemm::tensor {

// Elements of the sides, and bytes of an element. The short side is rounded up to what wgmma has.
struct SwappedShape {
  std::int64_t rows, tokens, k;
  int element_bytes;
};

// A block computes `tile_rows` of the long side and all of the short one, along a share of k; so
// many blocks share a tile, and so many fit an SM.
struct SwappedPlan {
  int tile_rows, splits, together;
  std::int64_t tiles, slices;
  double seconds = std::numeric_limits<double>::infinity();  // by the model
};

// A slice is 256 bytes of k.
inline constexpr int kSliceBytes = 256, kMostSplits = 8, kMostTogether = 3;
constexpr std::int64_t pieces(std::int64_t whole, std::int64_t piece) {
  return (whole + piece - 1) / piece;
}

// wgmma has 8, 16, 32 or 64 here.
constexpr std::int64_t padded_tokens(std::int64_t tokens) {
  return tokens <= 8 ? 8 : tokens <= 16 ? 16 : tokens <= 32 ? 32 : 64;
}

// Of an H200, by NOTES.md.
inline constexpr double kSwappedDram = 4.4e12, kSwappedL2 = 7e12;  // bytes a second
inline constexpr double kSwappedLaunch = 2.4e-6, kSwappedAdd = 1e-6;
inline constexpr double kSmsThatStream = 0.6;  // of all, as many as take all that DRAM has

inline SwappedPlan swapped_plan(const SwappedShape& shape, int sm_count) {
  SwappedPlan best;
  for (const int tile_rows : {64, 128}) {
    SwappedPlan plan{.tile_rows = tile_rows, .splits = 1, .together = 1};
    plan.tiles = pieces(shape.rows, tile_rows);
    plan.slices = pieces(shape.k * shape.element_bytes, kSliceBytes);
    const double depth = 1.0 * shape.k * shape.element_bytes;
    const double weights = depth * static_cast<double>(shape.rows);
    const double tokens = depth * static_cast<double>(shape.tokens * plan.tiles);
    const double read = std::max(weights / kSwappedDram, (weights + tokens) / kSwappedL2);
    for (; plan.splits <= std::min<std::int64_t>(kMostSplits, plan.slices); ++plan.splits) {
      const double blocks = static_cast<double>(plan.tiles * plan.splits);
      const double streaming = std::min(1.0, blocks / (kSmsThatStream * sm_count));
      plan.seconds = kSwappedLaunch + read / streaming + (plan.splits > 1 ? kSwappedAdd : 0);
      if (!(plan.seconds < best.seconds)) continue;
      best = plan;
    }
  }
  best.together = static_cast<int>(
      std::clamp<std::int64_t>(pieces(best.tiles * best.splits, sm_count), 1, kMostTogether));
  return best;
}

}  // namespace gemm::tensor
