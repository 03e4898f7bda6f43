// The division of a GEMM with a short side: invariants for all sizes.
#include "kernels/best/tensor/swapped_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gemm::tensor {
namespace {

const Device kDevice{.sm_count = 132};

// All that may be chosen: `predicted` prefers more splits, or fewer.
std::vector<SwappedPlan> plans(const SwappedShape& shape, const Device& device = kDevice) {
  std::vector<SwappedPlan> all;
  for (const int sign : {-1, 1})
    for (const SwappedPlan& one :
         swapped_plans(shape, device, [&](const SwappedPlan& plan) { return sign * plan.splits; }))
      all.push_back(one);
  return all;
}

// For 16-bit elements.
std::vector<SwappedPlan> plans(std::int64_t rows, std::int64_t tokens, std::int64_t k) {
  return plans({.rows = rows, .tokens = tokens, .k = k, .element_bytes = 2});
}

TEST(SwappedPlan, CoversRowsAndDepth) {
  for (const std::int64_t rows : {1, 64, 65, 129, 4096, 57344})
    for (const std::int64_t tokens : {1, 8, 17, 64, 128, 129, 300, 512})
      for (const std::int64_t k : {1, 128, 129, 4104, 500000}) {
        const std::vector<SwappedPlan> all = plans(rows, tokens, k);
        EXPECT_FALSE(all.empty());
        for (const SwappedPlan& found : all) {
          EXPECT_GE(found.tiles * found.tile_rows, rows);
          EXPECT_LT((found.tiles - 1) * found.tile_rows, rows);
          EXPECT_GE(found.token_tiles * found.tile_tokens, tokens);
          EXPECT_LT((found.token_tiles - 1) * found.tile_tokens, tokens);
          const std::int64_t k_tile =
              kStageLineBytes * lines_of_stage(found.tile_rows, found.tile_tokens);
          EXPECT_GE(found.k_tiles * k_tile, 2 * k);
          EXPECT_LT((found.k_tiles - 1) * k_tile, 2 * k);
          EXPECT_LE(found.splits, found.k_tiles) << "each block has a K tile";
        }
      }
}

// Unaligned rows of 16-bit weights: tiles overlap by 16 bytes, and each phase has whole K tiles.
TEST(SwappedPlan, CoversRowsAndDepthInPhases) {
  for (const int phases : {2, 4, 8})
    for (const std::int64_t rows : {57, 1946, 7397})
      for (const std::int64_t k : {9, 300, 6304}) {
        const SwappedShape shape{
            .rows = rows, .tokens = 32, .k = k, .element_bytes = 2, .phases = phases};
        for (const SwappedPlan& found : plans(shape)) {
          EXPECT_EQ(found.stored_rows, found.tile_rows - 8);
          EXPECT_GE(found.tiles * found.stored_rows, rows);
          EXPECT_EQ(found.k_tiles % phases, 0);
          const std::int64_t each = found.k_tiles / phases * kStageLineBytes / 2 *
                                    lines_of_stage(found.tile_rows, found.tile_tokens);
          EXPECT_GE(each * phases, k);
          EXPECT_LE(found.stages * found.stage_bytes +
                        4 * line_of_accumulators(true, found.tile_rows, found.tile_tokens) *
                            found.tile_tokens,
                    kMostSharedBytes);
        }
      }
}

// Shared memory for more blocks than have registers would be idle.
TEST(SwappedPlan, HasRegistersForItsBlocks) {
  const auto most = [](const SwappedShape& shape, int rows, int most_tokens) {
    int most = 0;
    for (const SwappedPlan& found : plans(shape))
      if (found.tile_rows == rows && token_kernel(found.tile_tokens) == most_tokens)
        most = std::max(most, found.per_sm);
    return most;
  };
  const SwappedShape few{.rows = 75776, .tokens = 8, .k = 2048, .element_bytes = 2};
  EXPECT_EQ(most(few, 64, 64), 4);
  EXPECT_EQ(most(few, 128, 64), 3);
  SwappedShape many{.rows = 28672, .tokens = 96, .k = 4096, .element_bytes = 1};
  EXPECT_EQ(most(many, 128, 128), 2);
  many.promoted = true;
  EXPECT_EQ(most(many, 128, 128), 1);
  EXPECT_EQ(most(many, 128, 64), 2);
}

TEST(SwappedPlan, TakesLargeClustersWhereTheDeviceHasThem) {
  Device device{.sm_count = 132};
  const auto most = [&](std::int64_t rows) {
    const SwappedShape shape{.rows = rows, .tokens = 64, .k = 16384, .element_bytes = 2};
    return std::ranges::max(plans(shape, device), {}, &SwappedPlan::splits).splits;
  };
  EXPECT_EQ(most(320), 8);
  device.fitting_clusters[9] = 8;
  EXPECT_EQ(most(320), 9);
  device.fitting_clusters[10] = 8;
  EXPECT_EQ(most(320), 10);  // two or three tiles
  EXPECT_EQ(most(1728), 8);  // nine tiles of 192 rows
}

// Sharers load equal parts in multiples of eight, at which the swizzle begins again. Accumulators
// must fit the registers.
TEST(SwappedPlan, RoundsTokensUpToTheNOfWgmma) {
  constexpr TokenKind kPlain, kPromoted{.promoted = true}, kMnMajor{.mn_major = true};
  const struct {
    int rows, tokens;
    TokenKind kind;
    int sharers, expected;
  } cases[] = {{64, 1, kPlain, 1, 8},       {64, 9, kPlain, 1, 16},     {128, 33, kPromoted, 1, 48},
               {64, 65, kPlain, 1, 80},     {64, 129, kPlain, 1, 0},    {128, 256, kPlain, 1, 256},
               {128, 200, kPromoted, 1, 0}, {128, 1, kMnMajor, 1, 16},  {128, 20, kMnMajor, 1, 32},
               {128, 80, kPlain, 2, 80},    {128, 80, kPlain, 4, 96},   {128, 1, kPlain, 4, 32},
               {192, 65, kPlain, 1, 80},    {192, 192, kPlain, 1, 192}, {192, 193, kPlain, 1, 0},
               {192, 80, kPromoted, 1, 0}};
  for (const auto& [rows, tokens, kind, sharers, expected] : cases)
    EXPECT_EQ(token_tile(rows, tokens, kind, sharers), expected) << rows << " x " << tokens;
}

TEST(SwappedPlan, PadsTilesToWholeClusters) {
  SwappedPlan plan{.sharers = 4, .splits = 2, .tiles = 5, .token_tiles = 3};
  EXPECT_EQ(plan.cluster(), 8);
  EXPECT_EQ(plan.blocks(), 48);
  plan.shares_weights = true;
  EXPECT_EQ(plan.blocks(), 40);
}

TEST(SwappedPlan, SharesWeightsAmongTilesOfTokens) {
  const auto sharing = [](std::int64_t tokens) {
    return std::ranges::count_if(plans(8192, tokens, 3072),
                                 [](const SwappedPlan& plan) { return plan.shares_weights; });
  };
  EXPECT_EQ(sharing(64), 0);  // one tile
  EXPECT_GT(sharing(144), 0);
}

TEST(SwappedPlan, BeginsTogetherWhereSuccessiveBlocksLoadTheSame) {
  const SwappedShape shape{.rows = 5376, .tokens = 232, .k = 5376, .element_bytes = 2};
  const std::vector<SwappedPlan> all = plans(shape);
  const auto together = std::ranges::find_if(all, [](const SwappedPlan& one) {
    return !one.lets_next_begin && one.tile_rows == 128 && one.tile_tokens == 80;
  });
  ASSERT_NE(together, all.end());
  const SwappedPlan& found = *together;
  const auto may = [&](auto change) {
    SwappedPlan plan = found;
    SwappedShape of = shape;
    change(plan, of);
    return may_begin_together(plan, of, kDevice.sm_count);
  };
  EXPECT_TRUE(may([](auto&, auto&) {}));
  EXPECT_FALSE(may([](auto&, auto& of) { of.weights_mn_major = true; }));
  EXPECT_FALSE(may([](auto&, auto& of) { of.tokens_mn_major = true; }));
  EXPECT_FALSE(may([](auto&, auto& of) { of.packed = true; }));
  EXPECT_FALSE(may([](auto&, auto& of) { of.weight_lines = 1.5; }));
  EXPECT_FALSE(may([](auto&, auto& of) { of.token_lines = 1.5; }));
  EXPECT_FALSE(may([](auto& plan, auto&) { plan.sharers = 2; }));
  EXPECT_FALSE(may([](auto& plan, auto&) { plan.splits = 2; }));
  EXPECT_FALSE(may([](auto& plan, auto&) { plan.per_sm = 2; }));
  EXPECT_FALSE(may([](auto& plan, auto&) { plan.token_tiles = 1; }));
  EXPECT_FALSE(may([](auto& plan, auto&) { plan.tiles = 10, plan.token_tiles = 9; }));
  EXPECT_FALSE(may([](auto& plan, auto&) { plan.tiles = 45; })) << "more blocks than SMs";
}

// More plans cost time to prepare and to try; all are verified (exactness_test.cpp).
TEST(SwappedPlan, AreFew) {
  for (const std::int64_t rows : {64, 1344, 28672})
    for (const std::int64_t tokens : {8, 100, 512, 4096})
      for (const std::int64_t k : {64, 2896, 16384}) {
        const SwappedShape shape{.rows = rows, .tokens = tokens, .k = k, .element_bytes = 2};
        EXPECT_LT(plans(shape).size(), 500) << rows << " " << tokens << " " << k;
      }
}

}  // namespace
}  // namespace gemm::tensor
