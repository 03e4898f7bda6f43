// The division of a GEMM with a short side: invariants for all sizes, and the choices that were
// measured to be best.
#include "kernels/best/tensor/swapped_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gemm::tensor {
namespace {

const Device kDevice{.sm_count = 132};

SwappedPlan best(const SwappedShape& shape) {
  return std::ranges::min(swapped_plans(shape, kDevice), {}, &SwappedPlan::seconds);
}

// For 16-bit elements.
SwappedPlan plan(std::int64_t rows, std::int64_t tokens, std::int64_t k) {
  return best({.rows = rows, .tokens = tokens, .k = k, .element_bytes = 2});
}

TEST(SwappedPlan, CoversRowsAndDepth) {
  for (const std::int64_t rows : {1, 64, 65, 129, 4096, 57344})
    for (const std::int64_t tokens : {1, 8, 17, 64, 128, 129, 300, 512})
      for (const std::int64_t k : {1, 128, 129, 4104, 500000}) {
        const SwappedPlan found = plan(rows, tokens, k);
        EXPECT_GE(found.tiles * found.tile_rows, rows);
        EXPECT_LT((found.tiles - 1) * found.tile_rows, rows);
        EXPECT_GE(found.token_tiles * found.tile_tokens, tokens);
        EXPECT_LT((found.token_tiles - 1) * found.tile_tokens, tokens);
        const std::int64_t k_tile =
            kStageLineBytes * lines_of_stage(found.tile_rows, found.tile_tokens);
        EXPECT_GE(found.k_tiles * k_tile, 2 * k);
        EXPECT_LT((found.k_tiles - 1) * k_tile, 2 * k);
        EXPECT_GT(found.seconds, 0);
      }
}

// Unaligned rows of 16-bit weights: tiles overlap by 16 bytes, and each phase has whole K tiles.
TEST(SwappedPlan, CoversRowsAndDepthInPhases) {
  for (const int phases : {2, 4, 8})
    for (const std::int64_t rows : {57, 1946, 7397})
      for (const std::int64_t k : {9, 300, 6304}) {
        const SwappedShape shape{
            .rows = rows, .tokens = 32, .k = k, .element_bytes = 2, .phases = phases};
        for (const SwappedPlan& found : swapped_plans(shape, kDevice)) {
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

TEST(SwappedPlan, GivesEveryBlockAKTile) {
  for (const std::int64_t rows : {1, 64, 4096})
    for (const std::int64_t k : {1, 128, 129, 257, 4104})
      EXPECT_LE(plan(rows, 8, k).splits, plan(rows, 8, k).k_tiles) << rows << " x " << k;
}

// 64 SMs saturate DRAM, 33 do not.
TEST(SwappedPlan, SplitsTilesWhereTheyAreTooFew) {
  EXPECT_GT(plan(2112, 8, 7168).splits, 1);
  EXPECT_GT(plan(256, 64, 16384).splits, 1);
}

// Measured: promoted FP8 19.5 us with two blocks per tile and 24.1 with one.
TEST(SwappedPlan, SplitsWhereManyTokensLimitTheSm) {
  const SwappedShape fp8{
      .rows = 4096, .tokens = 64, .k = 14336, .element_bytes = 1, .promoted = true};
  EXPECT_GT(best(fp8).splits, 1);
}

TEST(SwappedPlan, KeepsManyStagesWhereTokensTakeRoom) {
  EXPECT_EQ(plan(4096, 8, 4096).per_sm, 2);
  EXPECT_EQ(plan(4096, 32, 14336).per_sm, 1);
  EXPECT_EQ(plan(28672, 16, 4096).per_sm, 2);
  EXPECT_EQ(plan(28672, 64, 4096).per_sm, 2);
}

// Shared memory for more blocks than have registers would be idle.
TEST(SwappedPlan, HasRegistersForItsBlocks) {
  const auto most = [](const SwappedShape& shape, int rows, int most_tokens) {
    int most = 0;
    for (const SwappedPlan& found : swapped_plans(shape, kDevice))
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

TEST(SwappedPlan, SplitsNothingElse) { EXPECT_EQ(plan(57344, 64, 8192).splits, 1); }

// 23 tiles in clusters of 5: one round only where so many clusters fit.
TEST(SwappedPlan, CountsTheClustersThatFitTheDevice) {
  Device device{.sm_count = 132};
  const auto splits = [&] {
    const SwappedShape shape{.rows = 2880, .tokens = 80, .k = 30000, .element_bytes = 2};
    return std::ranges::min(swapped_plans(shape, device), {}, &SwappedPlan::seconds).splits;
  };
  device.fitting_clusters = {0, 132, 66, 44, 33, 23, 22, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(splits(), 5);
  device.fitting_clusters[5] = 22;
  EXPECT_NE(splits(), 5);
}

TEST(SwappedPlan, TakesLargeClustersWhereTheDeviceHasThem) {
  Device device{.sm_count = 132};
  const auto most = [&](std::int64_t rows) {
    const SwappedShape shape{.rows = rows, .tokens = 64, .k = 16384, .element_bytes = 2};
    return std::ranges::max(swapped_plans(shape, device), {}, &SwappedPlan::splits).splits;
  };
  EXPECT_EQ(most(320), 8);
  device.fitting_clusters[9] = 8;
  EXPECT_EQ(most(320), 9);
  device.fitting_clusters[10] = 8;
  EXPECT_EQ(most(320), 10);  // two or three tiles
  EXPECT_EQ(most(1728), 8);  // nine tiles of 192 rows
}

TEST(SwappedPlan, TakesLongerForMore) {
  for (const std::int64_t tokens : {1, 64}) {
    double before = 0;
    for (const std::int64_t size : {512, 1024, 4096, 8192, 16384}) {
      EXPECT_GT(plan(size, tokens, size).seconds, before);
      before = plan(size, tokens, size).seconds;
    }
  }
}

TEST(SwappedPlan, RoundsTokensUpToTheNOfWgmma) {
  EXPECT_EQ(token_tile(64, 1, {}), 8);
  EXPECT_EQ(token_tile(64, 9, {}), 16);
  EXPECT_EQ(token_tile(128, 33, {.promoted = true}), 48);
  EXPECT_EQ(token_tile(64, 65, {}), 80);
  EXPECT_EQ(token_tile(64, 129, {}), 0);
  EXPECT_EQ(token_tile(128, 256, {}), 256);
  EXPECT_EQ(token_tile(128, 200, {.promoted = true}), 0);
  EXPECT_EQ(token_tile(128, 1, {.mn_major = true}), 16);
  EXPECT_EQ(token_tile(128, 20, {.mn_major = true}), 32);
}

// In multiples of eight, at which the swizzle begins again.
TEST(SwappedPlan, LetsSharersLoadEqualParts) {
  EXPECT_EQ(token_tile(128, 80, {}, 2), 80);
  EXPECT_EQ(token_tile(128, 80, {}, 4), 96);
  EXPECT_EQ(token_tile(128, 1, {}, 4), 32);
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
    return std::ranges::count_if(
        swapped_plans({.rows = 8192, .tokens = tokens, .k = 3072, .element_bytes = 2}, kDevice),
        [](const SwappedPlan& plan) { return plan.shares_weights; });
  };
  EXPECT_EQ(sharing(64), 0);  // one tile
  EXPECT_GT(sharing(144), 0);
}

TEST(SwappedPlan, BeginsTogetherWhereSuccessiveBlocksLoadTheSame) {
  const SwappedShape shape{.rows = 5376, .tokens = 232, .k = 5376, .element_bytes = 2};
  const SwappedPlan found = best(shape);
  EXPECT_FALSE(found.lets_next_begin);
  SwappedPlan other = found;
  other.lets_next_begin = true;
  EXPECT_LT(found.seconds, seconds_of(other, shape, kDevice));
  EXPECT_FALSE(best({.rows = 5376, .tokens = 232, .k = 2048, .element_bytes = 2}).lets_next_begin)
      << "repeats_test.cpp needs a plan of this kind";
  EXPECT_TRUE(best({.rows = 768, .tokens = 232, .k = 768, .element_bytes = 2}).lets_next_begin)
      << "a launch costs more";

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

TEST(SwappedPlan, HasTilesOf192RowsWhereAccumulatorsFitRegisters) {
  EXPECT_EQ(token_tile(192, 65, {}), 80);
  EXPECT_EQ(token_tile(192, 192, {}), 192);
  EXPECT_EQ(token_tile(192, 193, {}), 0);
  EXPECT_EQ(token_tile(192, 80, {.promoted = true}), 0);
}

TEST(SwappedPlan, DividesTokensEvenly) {
  std::vector<int> sizes;
  for (int tiles = 2; tiles <= 8; ++tiles)
    sizes.push_back(token_tile(128, ceil_div(512, tiles), {}));
  EXPECT_EQ(sizes, (std::vector{256, 176, 128, 112, 96, 80, 64}));
}

TEST(SwappedPlan, StoresUnalignedLines) {
  SwappedPlan plan{.tile_rows = 128, .tile_tokens = 192, .splits = 1};
  SwappedShape shape{.rows = 14833, .tokens = 192, .k = 48, .element_bytes = 1};
  EXPECT_EQ(lines_of_warp(plan, shape), 0);
  const double aligned = best(shape).seconds;
  shape.aligned_lines = false;
  EXPECT_GT(best(shape).seconds, aligned);
  EXPECT_EQ(lines_of_warp(plan, shape), 24) << "192 lines, 8 warps";
  plan.splits = 2;
  EXPECT_EQ(lines_of_warp(plan, shape), 12);
  shape.swapped = false;
  EXPECT_EQ(lines_of_warp(plan, shape), 8) << "128 lines";
}

// 288 blocks of the next launch do not all fit the 528 places beside those of this one.
TEST(SwappedPlan, AvoidsBlocksOfTheNextLaunchInSomeOfThePlaces) {
  const SwappedShape shape{.rows = 18432, .tokens = 1, .k = 16384, .element_bytes = 2};
  const std::vector<SwappedPlan> all = swapped_plans(shape, kDevice);
  const auto uneven = std::ranges::find_if(all, [](const SwappedPlan& one) {
    return one.tile_rows == 64 && one.tile_tokens == 8 && one.cluster() == 1;
  });
  ASSERT_NE(uneven, all.end());
  EXPECT_EQ(uneven->blocks(), 288);
  EXPECT_EQ(uneven->per_sm, 4);
  SwappedPlan alone = *uneven;
  alone.lets_next_begin = false;
  EXPECT_GT(uneven->seconds, 1.2 * seconds_of(alone, shape, kDevice));
  EXPECT_LT(best(shape).seconds, uneven->seconds);
}

// Where SMs load from the L2; not where DRAM limits.
TEST(SwappedPlan, RowsThatTouchTwoLinesTakeLonger) {
  const auto slower = [](SwappedShape shape, int tile_rows, int tile_tokens) {
    const std::vector<SwappedPlan> all = swapped_plans(shape, kDevice);
    const auto plan = std::ranges::find_if(all, [&](const SwappedPlan& one) {
      return one.tile_rows == tile_rows && one.tile_tokens == tile_tokens && one.cluster() == 1 &&
             one.lets_next_begin;
    });
    if (plan == all.end()) return 0.0;
    const double aligned = seconds_of(*plan, shape, kDevice);
    shape.weight_lines = shape.token_lines = 2;
    EXPECT_TRUE(std::ranges::all_of(swapped_plans(shape, kDevice), &SwappedPlan::lets_next_begin));
    return seconds_of(*plan, shape, kDevice) / aligned;
  };
  EXPECT_GT(slower({.rows = 3008, .tokens = 440, .k = 5056, .element_bytes = 2}, 128, 96), 1.2);
  EXPECT_NEAR(slower({.rows = 57344, .tokens = 8, .k = 4096, .element_bytes = 2}, 64, 8), 1, 0.08);
}

// Layout nn with 32 or 48 columns: all blocks read all of B, so clusters of four load it together.
// 9824x32x1648 took 17.0 us without clusters of four and 11.8 us with them (H200).
TEST(SwappedPlan, SharesANarrowMatrixThatAllBlocksRead) {
  for (const std::int64_t columns : {32, 48})
    for (const std::int64_t rows : {6976, 9824}) {
      SwappedShape shape{.rows = rows, .tokens = columns, .k = 1648, .element_bytes = 2};
      shape.tokens_mn_major = true;
      EXPECT_EQ(best(shape).token_sharers(), 4) << rows << " " << columns;
      shape.tokens_mn_major = false;
      EXPECT_EQ(best(shape).token_sharers(), 1)
          << "K-major: TMA loads a whole cache line of each row";
      shape = {.rows = columns, .tokens = rows, .k = 1648, .element_bytes = 2};
      shape.weights_mn_major = true;
      EXPECT_EQ(best(shape).weight_sharers(), 4) << rows << " " << columns;
    }
}

// More plans cost time to prepare and to try; all are verified (exactness_test.cpp).
TEST(SwappedPlan, AreFew) {
  for (const std::int64_t rows : {64, 1344, 28672})
    for (const std::int64_t tokens : {8, 100, 512, 4096})
      for (const std::int64_t k : {64, 2896, 16384}) {
        const SwappedShape shape{.rows = rows, .tokens = tokens, .k = k, .element_bytes = 2};
        EXPECT_LT(swapped_plans(shape, kDevice).size(), 120) << rows << " " << tokens << " " << k;
      }
}

}  // namespace
}  // namespace gemm::tensor
