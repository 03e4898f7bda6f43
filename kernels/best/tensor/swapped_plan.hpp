// How a GEMM of few tiles is divided among blocks: plans with a model of their time. "Weights" is
// the operand whose rows are M of wgmma, "tokens" the one whose rows are N.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/gemm.hpp"
#include "kernels/parts/tile_schedule.hpp"

namespace gemm::tensor {

// Sizes in elements, and bytes per element.
struct SwappedShape {
  std::int64_t rows, tokens, k;
  int element_bytes;
  bool promoted = false;           // accumulators are promoted every 128 products
  bool tokens_mn_major = false;    // as loaded, else K-major
  bool weights_mn_major = false;   // likewise
  bool through_registers = false;  // the weights
  bool packed = false;             // an operand, by a launch just before
  double weight_lines = 1;         // cost of 128 bytes of a row in cache lines (lines_touched)
  double token_lines = 1;          // likewise
  int phases = 1;                  // along k, in which MN-major weights are loaded
  bool swapped = true;             // lines of C are along the rows, else along the tokens
  int output_bytes = 2;            // per element of C
  bool aligned_lines = true;       // of C: to four elements
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
  double weight_bytes, operand_bytes;
  double seconds = std::numeric_limits<double>::infinity();  // by the model

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
// 192. Promoted ones take twice as many, and weights in registers 32.
inline constexpr int kTokenSizes[] = {8,   16,  32,  48,  64,  80,  96,  112, 128,
                                      144, 160, 176, 192, 208, 224, 240, 256};
inline constexpr int kTileRows[] = {64, 128, 192};
struct TokenKind {
  bool promoted = false, mn_major = false, through_registers = false;
};
constexpr TokenKind kind_of(const SwappedShape& shape) {
  return {shape.promoted, shape.tokens_mn_major, shape.through_registers};
}
constexpr bool token_tile_fits(int rows, int tokens, TokenKind kind) {
  if (kind.mn_major && tokens < 16) return false;
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

// Fitted to measurements on an H100 and an H200 (NOTES.md).
inline constexpr double kSwappedOfDram = 0.905,  // of the rate of DRAM
    kSwappedOfClock = 0.8,                       // of the tensor cores' rate, at the power limit
    kSwappedL2 = 143e9,           // bytes per second from the L2 to an SM, on average of all
    kSwappedSm = 152e9,           // the most to one SM,
    kSwappedPairedSm = 83e9,      // and where both SMs of a pair load: they share a path
    kSwappedLaunch = 2.02e-6,     // seconds of a launch
    kSwappedNoOverlap = 1.07e-6,  // seconds more without lets_next_begin, and the
    kSwappedTogether = 0.135,     // share of loads that the L2 does not merge then
    kSwappedSecondLine = 0.545,   // cost of a row's second cache line
    kSwappedAdd = 0.25e-6,        // seconds for each block along k of a cluster
    kSwappedShare = 0.53e-6,      // seconds, if blocks share loads
    kSwappedNext = 7e-6,          // seconds to begin with an SM's next blocks
    kSwappedUneven = 0.4,         // times places / blocks - 1, of the time
    kSwappedPhase = 1e-6;         // seconds of each phase after the first
// Cost of loading weights into an SM, relative to K-major ones: MN-major with aligned rows; or with
// others, in phases. Those fill five sectors of 32 bytes for four, and two cache lines for one.
inline constexpr double kSwappedMnMajor = 1.51, kSwappedInPhases = 2;
// How much more the lines of a much larger operand cost than those of the smaller one. More of them
// come from DRAM, so sharing them saves more.
inline constexpr double kSwappedLarger = 0.3;
// Cycles of TMA for each row of 32 bytes: a step of k of 16 MN-major tokens.
inline constexpr double kSwappedNarrowRow = 0.85;
// Seconds for a step of k of an MN-major matrix, if a block on every SM reads it.
inline constexpr double kSwappedSameStep = 11.7e-9;
// Cycles of a line of weights through registers, for 64 rows, and for each token.
inline constexpr double kSwappedThroughRegisters = 192, kSwappedThroughRegistersToken = 1.6;
// Cycles of a promoted line: to wait for its MMAs, and for each token.
inline constexpr double kSwappedWait = 162, kSwappedPromote = 2.19;
// Per byte of a block's accumulators: to store them, to add those of a further phase, and to read
// them from other blocks.
inline constexpr double kSwappedStore = 17.7e-12, kSwappedFlush = 8e-12, kSwappedRead = 33.5e-12;
// DRAM's time for a byte stored, relative to a byte read. Seconds of a line of C that is not
// aligned: of 16-bit elements, and of each 64 elements.
inline constexpr double kSwappedBytesOfC = 1.19;
inline constexpr double kSwappedLine = 0.075e-6, kSwappedLine64 = 0.045e-6;

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

// Lines of C that a warp stores if they are not aligned to four elements; else 0.
inline double lines_of_warp(const SwappedPlan& plan, const SwappedShape& shape) {
  if (shape.aligned_lines) return 0;
  const int warps = plan.tile_rows / 16;
  const auto lines =
      static_cast<double>(shape.swapped ? std::min<std::int64_t>(shape.tokens, plan.tile_tokens)
                                        : std::min<std::int64_t>(shape.rows, plan.tile_rows));
  return std::ceil(lines / (plan.splits * warps));
}

// Time for these. A warp waits for each line, so two blocks on an SM take as long as one.
inline double seconds_of_lines(const SwappedPlan& plan, const SwappedShape& shape) {
  const int length = shape.swapped ? plan.tile_rows : token_kernel(plan.tile_tokens);
  const double begin = shape.output_bytes == 2 ? kSwappedLine : 0;
  return lines_of_warp(plan, shape) * (begin + kSwappedLine64 * length / 64);
}

// The model, in seconds.
inline double seconds_of(const SwappedPlan& plan, const SwappedShape& shape, const Device& device) {
  const int lines_per_stage = lines_of_stage(plan.tile_rows, plan.tile_tokens);
  const double stages = static_cast<double>(plan.k_tiles) / plan.splits,
               lines = stages * lines_per_stage, all = static_cast<double>(plan.blocks()),
               blocks = std::ceil(all / places_of(plan, device)),
               at_once = std::min<double>(plan.per_sm, blocks);
  const double tokens = plan.tile_tokens, groups = plan.tile_rows / 64.0;
  // Of a block's tile, what is not beyond the edges.
  const auto inside = [](std::int64_t size, std::int64_t tiles, double most) {
    return std::min(most, static_cast<double>(size) / static_cast<double>(tiles));
  };
  const int group = shape.tokens_mn_major ? token_group(plan.tile_tokens) : 1;
  const double loaded_tokens =
      std::ceil(inside(shape.tokens, plan.token_tiles, tokens) / group) * group;
  const double loaded_rows =
      inside(shape.rows, plan.tiles, plan.stored_rows) + plan.tile_rows - plan.stored_rows;
  const auto lines_cost = [](double touched) { return 1 + kSwappedSecondLine * (touched - 1); };
  const double of_weights = plan.phases > 1          ? kSwappedInPhases
                            : shape.weights_mn_major ? kSwappedMnMajor
                                                     : lines_cost(shape.weight_lines);
  const double of_tokens = shape.tokens_mn_major ? 1 : lines_cost(shape.token_lines);
  const auto of_size = [&](std::int64_t size) {
    const auto all = static_cast<double>(shape.rows + shape.tokens);
    return 1 + kSwappedLarger * (static_cast<double>(size) / all - 0.5);
  };
  const double loaded =
      kStageLineBytes * (of_size(shape.rows) * of_weights * loaded_rows / plan.weight_sharers() +
                         of_size(shape.tokens) * of_tokens * loaded_tokens / plan.token_sharers());
  const double narrow_rows = group == 16 ? loaded_tokens * kStageLineBytes / 32 : 0;
  const double cycles =  // of a line: four MMAs of 64 rows, of N / 2 each
      groups * (shape.through_registers
                    ? kSwappedThroughRegisters + kSwappedThroughRegistersToken * tokens
                    : 2 * tokens / kSwappedOfClock);
  const double promotion = shape.promoted ? kSwappedWait + kSwappedPromote * tokens : 0;
  const double from_l2 =
      (plan.lets_next_begin ? 1 : kSwappedTogether) * loaded * device.clock_ratio();
  const double paired = all > places_of(plan, device) / 2 ? blocks : 0;
  // Blocks that read the same part of an MN-major matrix ask the L2 for a step of k at the same
  // time.
  const auto readers = [&](bool mn_major, std::int64_t tiles, int sharers) {
    return mn_major ? static_cast<double>(tiles) / sharers / device.sm_count : 0;
  };
  const double same_steps =
      lines * kStageLineBytes / shape.element_bytes *
      (readers(shape.weights_mn_major, plan.token_tiles, plan.weight_sharers()) +
       readers(shape.tokens_mn_major, plan.tiles, plan.token_sharers()));
  const double c_bytes = 1.0 * shape.output_bytes * static_cast<double>(shape.rows) *
                         static_cast<double>(shape.tokens);
  const double limits[] = {(plan.operand_bytes / kSwappedOfDram + kSwappedBytesOfC * c_bytes) /
                               device.dram_bytes_per_second,
                           blocks * lines * cycles / device.sm_hz,
                           blocks * lines * narrow_rows * kSwappedNarrowRow / device.sm_hz,
                           blocks * lines * promotion / device.sm_hz,
                           all / device.sm_count * lines * from_l2 / kSwappedL2,
                           paired * lines * from_l2 / kSwappedPairedSm,
                           blocks * lines * loaded * device.clock_ratio() / kSwappedSm,
                           same_steps * kSwappedSameStep * device.clock_ratio()};
  double limited = 0;
  for (const double limit : limits) limited = simt::limited_by(limited, limit);
  // Only some blocks of the next launch fit beside these: SMs probably get unequal numbers.
  // Measured with three and four blocks per SM.
  const double places = 1.0 * plan.per_sm * device.sm_count;
  if (plan.lets_next_begin && plan.per_sm > 2 && all <= places && 2 * all > places)
    limited *= 1 + kSwappedUneven * (places / all - 1);
  const double sums = 4.0 * plan.tile_rows * tokens, others = plan.splits - 1;
  return kSwappedLaunch + (plan.lets_next_begin ? 0 : kSwappedNoOverlap) +
         (others > 0 ? kSwappedAdd * plan.splits : 0) + (plan.sharers > 1 ? kSwappedShare : 0) +
         kSwappedPhase * (plan.phases - 1) + kSwappedNext * (std::ceil(blocks / plan.per_sm) - 1) +
         blocks * sums *
             (kSwappedStore + kSwappedRead * others / plan.splits +
              kSwappedFlush * (std::ceil(1.0 * plan.phases / plan.splits) - 1)) +
         blocks / at_once * seconds_of_lines(plan, shape) * device.clock_ratio() + limited;
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
  return !shape.weights_mn_major && !shape.tokens_mn_major && !shape.packed &&
         shape.weight_lines == 1 && shape.token_lines == 1 && plan.cluster() == 1 &&
         plan.token_tiles > 1 && plan.token_tiles <= kMostTiles && plan.per_sm == 1 &&
         plan.blocks() <= sm_count;
}

// The plans with these tiles: the fastest numbers of blocks that share a tile, by the model.
inline void add_plans(std::vector<SwappedPlan>& plans, const SwappedShape& shape,
                      const Device& device, int tile_rows, int tile_tokens, Sharing sharing) {
  constexpr std::size_t kMost = 2;
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
      .weight_bytes = depth * static_cast<double>(shape.rows),
      .operand_bytes = depth * static_cast<double>(shape.rows + shape.tokens)};
  if (plan.sharers >= 2 * (sharing.of_weights ? plan.token_tiles : plan.tiles)) return;
  std::vector<SwappedPlan> all;
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
    plan.seconds = seconds_of(plan, shape, device);
    all.push_back(plan);
  }
  std::ranges::sort(all, {}, &SwappedPlan::seconds);
  all.resize(std::min(all.size(), kMost));
  plans.insert(plans.end(), all.begin(), all.end());
  for (SwappedPlan& together : all) {
    if (!may_begin_together(together, shape, device.sm_count)) continue;
    together.lets_next_begin = false;
    together.seconds = seconds_of(together, shape, device);
    plans.push_back(together);
  }
}

// All of them, at least one: tokens are divided evenly among as few tiles as possible, or among
// more of at least kTokensOfFewTiles. Plans that the model finds far from the fastest are left out.
inline std::vector<SwappedPlan> swapped_plans(const SwappedShape& shape, const Device& device) {
  constexpr double kFar = 1.4;
  std::vector<SwappedPlan> plans;
  const TokenKind kind = kind_of(shape);
  for (const int tile_rows : kTileRows)
    for (const Sharing& sharing : kSharings)
      for (int tiles = 1, before = 0;; ++tiles) {
        const std::int64_t tokens = ceil_div(shape.tokens, tiles);
        const int tile_tokens =
            token_tile(tile_rows, tokens, kind, sharing.of_weights ? 1 : sharing.sharers);
        if (tile_tokens != before) add_plans(plans, shape, device, tile_rows, tile_tokens, sharing);
        before = tile_tokens;
        if (tokens <= kTokensOfFewTiles) break;
      }
  const double least = std::ranges::min(plans, {}, &SwappedPlan::seconds).seconds;
  std::erase_if(plans, [&](const SwappedPlan& plan) { return plan.seconds > kFar * least; });
  return plans;
}

}  // namespace gemm::tensor
