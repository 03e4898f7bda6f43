// How a GEMM of few tiles is divided among blocks. "Weights" is
// the operand whose rows are M of wgmma, "tokens" the one whose rows are N.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm.hpp"
#include "kernels/parts/cost.hpp"

namespace gemm::tensor {

// Sizes in elements, and bytes per element.
struct SwappedShape {
  std::int64_t rows, tokens, k;
  int element_bytes;
  bool promoted = false;           // accumulators are promoted every 128 products
  bool tokens_mn_major = false;    // as loaded, else K-major
  bool weights_mn_major = false;   // likewise
  bool through_registers = false;  // the weights
  double packed = 0;               // bytes that a launch just before moves, to pack operands
  double weight_lines = 1;         // that 128 bytes of a row touch (lines_touched)
  double token_lines = 1;          // likewise
  int phases = 1;                  // along k, in which MN-major weights are loaded
  bool swapped = true;             // lines of C are along the rows, else along the tokens
  int output_bytes = 2;            // per element of C
  bool aligned_lines = true;       // of C: to four elements
  bool scaled = false;             // blocks have factors; then promoted, too
};

// A block computes `tile_rows` of the long side by `tile_tokens` of the short side, over a share of
// k. A cluster is `splits` blocks along k, which add their sums, times `sharers`. These have
// neighbouring tiles along the long side, and load their tokens together, or along the short side,
// and load their weights together. `per_sm` blocks shall fit an SM.
//
// With `lets_next_begin` a block of the next launch takes the place of whichever block ends first.
// Without, and without clusters, about eight successive blocks of the next launch begin on SMs of
// one GPC. The L2 merges equal requests that these make at the same time, as those for the weights
// of a row of tiles (NOTES.md).
struct SwappedPlan {
  int tile_rows, tile_tokens, sharers, splits, per_sm;
  bool shares_weights = false;      // else tokens
  bool lets_next_begin = true;      // blocks of the next launch, before all of these have ended
  int phases, stored_rows;          // of a tile; it loads more rows than it stores in phases
  int stages = 2, stage_bytes = 0;  // of the ring
  std::int64_t tiles, token_tiles, k_tiles;
  double weight_bytes;

  int cluster() const { return splits * sharers; }
  std::int64_t blocks() const {
    const std::int64_t shared = shares_weights ? token_tiles : tiles;
    return ceil_div(shared, sharers) * cluster() * (shares_weights ? tiles : token_tiles);
  }
  // Blocks that load the same tokens, or weights, together.
  int token_sharers() const { return shares_weights ? 1 : sharers; }
  int weight_sharers() const { return shares_weights ? sharers : 1; }
};

// A stage is a line of 128 bytes along k, or two such lines of 64 rows with few tokens.
inline constexpr int kStageLineBytes = 128;
constexpr int lines_of_stage(int rows, int tokens) { return rows == 64 && tokens <= 64 ? 2 : 1; }
inline constexpr int kMostSplits = 16;  // the largest cluster
inline constexpr int kMaxStages = 16;
// Of an SM; what the system reserves for a block; of a block, besides its barriers.
inline constexpr int kSharedBytesOfSm = 228 << 10, kReservedOfBlock = 1 << 10,
                     kMostSharedBytes = kSharedBytesOfSm - 2 * kReservedOfBlock;

// The N of wgmma, and which fit: with more than 128 tokens 64 rows would load more tokens than
// weights by far, and accumulators must fit the registers of a thread: 168 with 128 rows, 128 with
// 192. Promoted ones take twice as many, and weights in registers 32. Where blocks have factors,
// few instances are enough: those of more than 64 tokens are no faster than WgmmaStreamK.
inline constexpr int kTokenSizes[] = {8,   16,  32,  48,  64,  80,  96,  112, 128,
                                      144, 160, 176, 192, 208, 224, 240, 256};
inline constexpr int kTileRows[] = {64, 128, 192};
struct TokenKind {
  bool promoted = false, mn_major = false, through_registers = false, scaled = false;
};
constexpr TokenKind kind_of(const SwappedShape& shape) {
  return {shape.promoted, shape.tokens_mn_major, shape.through_registers, shape.scaled};
}
constexpr bool token_tile_fits(int rows, int tokens, TokenKind kind) {
  if (kind.mn_major && tokens < 16) return false;
  if (kind.scaled && (rows == 192 || tokens > 64)) return false;
  const bool more_registers = kind.promoted || kind.through_registers;
  if (rows == 192) return tokens > 64 && tokens <= 192 && !more_registers;
  return tokens <= (rows == 64 || more_registers ? 128 : 256);
}
// The most tokens of the instance that has this size: it has registers for so many.
constexpr int token_kernel(int tokens) { return tokens <= 64 ? 64 : tokens <= 128 ? 128 : 256; }
// Whether any size of this instance fits.
constexpr bool token_kernel_fits(int rows, int most_tokens, TokenKind kind) {
  return std::ranges::any_of(kTokenSizes, [&](int size) {
    return token_kernel(size) == most_tokens && token_tile_fits(rows, size, kind);
  });
}
// Blocks per SM, at most four, for which launch bounds limit an instance's registers.
constexpr int most_blocks(int rows, int most_tokens, TokenKind kind) {
  if (rows > 128 || most_tokens > 128) return 1;
  if (kind.through_registers) return rows == 128 ? 1 : 2;
  if (kind.scaled) return 2;
  if (kind.promoted) return (rows == 128 ? 1 : 2) * (most_tokens > 64 ? 1 : 2);
  return rows == 128 ? (most_tokens > 64 ? 2 : 3) : most_tokens > 64 ? 3 : 4;
}
// Of 16-bit elements every eighth row is aligned to 16 bytes, whatever the rows' length.
inline constexpr int kMostPhases = 8;
// MN-major tokens are loaded in groups of so many, of a tile of `tokens`: one that they do not fill
// is slow to load.
constexpr int token_group(int tokens) { return tokens < 64 ? 16 : 64; }

// The smallest size for so many tokens of which `sharers` can load equal parts; 0 if none fits.
constexpr int token_tile(int rows, std::int64_t tokens, TokenKind kind, int sharers = 1) {
  for (const int size : kTokenSizes)
    if (size >= tokens && token_tile_fits(rows, size, kind) &&
        (kind.mn_major || size % (8 * sharers) == 0))
      return size;
  return 0;
}
// Smaller tiles of more than so many tokens are no choice: weights are read once for each.
inline constexpr int kTokensOfFewTiles = 64;

// Blocks per SM. Up to 8 tokens one more than needed, if registers allow, so that blocks of the
// next launch can start early; else at most two, because stages need the shared memory.
inline int blocks_per_sm(const SwappedPlan& plan, const SwappedShape& shape, int sm_count) {
  const int most = most_blocks(plan.tile_rows, token_kernel(plan.tile_tokens), kind_of(shape));
  const std::int64_t each = ceil_div(plan.blocks(), sm_count);
  if (shape.tokens <= 8) return static_cast<int>(std::min<std::int64_t>(each + 1, most));
  return plan.tile_tokens > 128 || (each == 1 && shape.tokens > 16) ? 1 : std::min(2, most);
}

// Blocks of which an SM can have one each: clusters are not divided among SMs as evenly as blocks.
inline double places_of(const SwappedPlan& plan, const Device& device) {
  return 1.0 * std::max(1, device.clusters(plan.cluster())) * plan.cluster();
}

// Accumulators in shared memory, in the order of C: a line for each token or, if not swapped, each
// row. The padding avoids bank conflicts of the fragments' rows and tokens.
constexpr int line_of_accumulators(bool swapped, int rows, int tokens) {
  return swapped ? rows + 4 : tokens + 8;
}
// The same of elements of 16 bits: eight successive lines begin in different banks.
constexpr int line_of_output(bool swapped, int rows, int tokens) {
  return (swapped ? rows : tokens) + 8;
}

// As many stages as fit with that many blocks per SM, at least two. In phases, sums have their own
// place, and a ring of less than three stages is too short. Returns whether all fits.
inline bool plan_stages(SwappedPlan& plan, bool tokens_mn_major) {
  constexpr int kOther = 2 << 10;  // barriers, and alignment of the ring
  const int sums = plan.phases == 1 ? 0 : 4 * (plan.tile_rows + 8) * (plan.tile_tokens + 8);
  const int group = tokens_mn_major ? token_group(plan.tile_tokens) : 1;
  const int tokens = static_cast<int>(ceil_div(plan.tile_tokens, group)) * group;
  plan.stage_bytes = (plan.tile_rows + tokens) * kStageLineBytes *
                     lines_of_stage(plan.tile_rows, plan.tile_tokens);
  plan.stages = std::clamp(
      (kSharedBytesOfSm / plan.per_sm - kReservedOfBlock - kOther - sums) / plan.stage_bytes, 2,
      kMaxStages);
  return plan.phases == 1 ||
         (plan.stages >= 3 && plan.stages * plan.stage_bytes + sums + kOther <= kMostSharedBytes);
}

// Bytes that all blocks load of each operand, in whole cache lines; sharers load once what they
// share. MN-major weights that are loaded in phases fill two lines for one.
inline double loaded_lines(const SwappedPlan& plan, const SwappedShape& shape) {
  const int group = shape.tokens_mn_major ? token_group(plan.tile_tokens) : 1;
  const double depth = static_cast<double>(plan.k_tiles) * kStageLineBytes *
                       lines_of_stage(plan.tile_rows, plan.tile_tokens),
               tiles = static_cast<double>(plan.tiles),
               token_tiles = static_cast<double>(plan.token_tiles),
               rows = std::min(tiles * plan.tile_rows,
                               static_cast<double>(shape.rows) * plan.tile_rows / plan.stored_rows),
               of_tile = static_cast<double>(shape.tokens) / token_tiles,
               tokens = token_tiles * std::ceil(of_tile / group) * group;
  return depth *
         (rows * token_tiles / plan.weight_sharers() * (plan.phases > 1 ? 2 : shape.weight_lines) +
          tokens * tiles / plan.token_sharers() * shape.token_lines);
}

// The work of a plan, with its traffic. Promoting an accumulator takes two instructions for each
// line; weights through registers pass shared memory twice; and so does what a cluster adds.
inline Work work_of(const SwappedPlan& plan, const SwappedShape& shape, const Device& device,
                    Traffic traffic) {
  const double sms = std::max(1, device.sm_count), blocks = static_cast<double>(plan.blocks()),
               elements = 1.0 * plan.tile_rows * plan.tile_tokens,
               lines = static_cast<double>(plan.k_tiles) *
                       lines_of_stage(plan.tile_rows, plan.tile_tokens),
               tiles = static_cast<double>(plan.tiles * plan.token_tiles),
               products = tiles * elements * lines * kStageLineBytes / shape.element_bytes,
               promotion = shape.promoted ? 2 * elements * tiles * lines : 0;
  if (shape.through_registers)
    traffic.shared += 2.0 * kStageLineBytes * lines * plan.tile_rows * tiles;
  const double of_sm = std::ceil(blocks / places_of(plan, device));
  return {.traffic = traffic,
          .cycles =
              tensor_cycles(products, shape.element_bytes, device) + fp32_cycles(promotion, device),
          .busiest = of_sm * sms / blocks,
          .lines = loaded_lines(plan, shape),
          .packed = shape.packed,
          .launches = shape.packed > 0 ? 2.0 : 1.0,
          .tiles = std::ceil(of_sm / plan.per_sm),
          .tail = elements / plan.splits *
                  (shape.output_bytes * (shape.aligned_lines ? 1 : 2) +
                   static_cast<double>(sizeof(float)) * (plan.splits - 1)),
          .exchanges = plan.cluster() > 1 ? 1.0 : 0};
}

// Which of a cluster's operands is loaded by how many blocks together.
struct Sharing {
  int sharers;
  bool of_weights;
};
inline constexpr Sharing kSharings[] = {{1, false}, {2, false}, {4, false}, {2, true}, {4, true}};

// Whether the plan is worth a look without lets_next_begin: where an SM has one block, and
// successive blocks without a cluster load the same weights. Both operands are K-major, because
// only such were measured, and their rows begin at cache lines: of others the L2 merged little.
// Packing lets the next launch begin.
inline bool may_begin_together(const SwappedPlan& plan, const SwappedShape& shape, int sm_count) {
  constexpr std::int64_t kMostTiles = 8;  // with the same weights
  return !shape.weights_mn_major && !shape.tokens_mn_major && shape.packed == 0 &&
         shape.weight_lines == 1 && shape.token_lines == 1 && plan.cluster() == 1 &&
         plan.token_tiles > 1 && plan.token_tiles <= kMostTiles && plan.per_sm == 1 &&
         plan.blocks() <= sm_count;
}

// Calls add(plan) for the plans with these tiles.
template <typename Add>
void for_each_plan(const SwappedShape& shape, const Device& device, int tile_rows, int tile_tokens,
                   Sharing sharing, Add add) {
  const double depth = 1.0 * static_cast<double>(shape.k) * shape.element_bytes;
  const int stored_rows = tile_rows - (shape.phases > 1 ? 16 / shape.element_bytes : 0);
  const std::int64_t k = ceil_div(shape.k, shape.phases);
  SwappedPlan plan{
      .tile_rows = tile_rows,
      .tile_tokens = tile_tokens,
      .sharers = sharing.sharers,
      .splits = 1,
      .per_sm = 1,
      .shares_weights = sharing.of_weights,
      .phases = shape.phases,
      .stored_rows = stored_rows,
      .tiles = ceil_div(shape.rows, stored_rows),
      .token_tiles = ceil_div(shape.tokens, tile_tokens),
      .k_tiles = shape.phases * ceil_div(k * shape.element_bytes,
                                         kStageLineBytes * lines_of_stage(tile_rows, tile_tokens)),
      .weight_bytes = depth * static_cast<double>(shape.rows)};
  if (plan.sharers >= 2 * (sharing.of_weights ? plan.token_tiles : plan.tiles)) return;
  for (; plan.splits <= std::min<std::int64_t>(kMostSplits, plan.k_tiles); ++plan.splits) {
    // Two waves of blocks need no further cuts, and large clusters are for few tiles.
    if ((plan.splits - 1) * plan.tiles * plan.token_tiles >= 2 * device.sm_count) break;
    if (plan.cluster() > Device::kPortableCluster &&
        (plan.sharers > 1 || plan.tiles * plan.token_tiles > device.clusters(plan.splits)))
      break;
    plan.per_sm = blocks_per_sm(plan, shape, device.sm_count);
    if (!plan_stages(plan, shape.tokens_mn_major)) {
      plan.per_sm = 1;
      if (!plan_stages(plan, shape.tokens_mn_major)) continue;
    }
    add(plan);
    if (!may_begin_together(plan, shape, device.sm_count)) continue;
    SwappedPlan together = plan;
    together.lets_next_begin = false;
    add(together);
  }
}

// At least one: tokens are divided evenly among as few tiles as possible, or among more of at least
// kTokensOfFewTiles. Of the plans with the same tiles, those with the least predicted(plan).
template <typename Predicted>
std::vector<SwappedPlan> swapped_plans(const SwappedShape& shape, const Device& device,
                                       Predicted predicted) {
  constexpr std::size_t kMost = 3;
  std::vector<SwappedPlan> plans;
  const TokenKind kind = kind_of(shape);
  for (const int tile_rows : kTileRows)
    for (const Sharing& sharing : kSharings)
      for (int tiles = 1, before = 0;; ++tiles) {
        const std::int64_t tokens = ceil_div(shape.tokens, tiles);
        const int tile_tokens =
            token_tile(tile_rows, tokens, kind, sharing.of_weights ? 1 : sharing.sharers);
        std::vector<std::pair<double, SwappedPlan>> all;
        if (tile_tokens != before)
          for_each_plan(shape, device, tile_rows, tile_tokens, sharing,
                        [&](const SwappedPlan& plan) { all.emplace_back(predicted(plan), plan); });
        std::ranges::sort(all, {}, &std::pair<double, SwappedPlan>::first);
        all.resize(std::min(all.size(), kMost));
        for (const auto& [seconds, plan] : all) plans.push_back(plan);
        before = tile_tokens;
        if (tokens <= kTokensOfFewTiles) break;
      }
  return plans;
}

// Its name among the plans of a problem.
inline std::string name_of(const SwappedPlan& plan, bool swapped) {
  return named("tile", plan.tile_rows, plan.tile_tokens) + (swapped ? "/swapped" : "") +
         "/splits:" + std::to_string(plan.splits) + "/sharers:" + std::to_string(plan.sharers) +
         (plan.sharers > 1 ? plan.shares_weights ? "/weights" : "/tokens" : "") +
         (plan.phases > 1 ? "/phases:" + std::to_string(plan.phases) : "") +
         (plan.lets_next_begin ? "" : "/apart");
}

}  // namespace gemm::tensor
