// How SplitK and Gemv share the steps of all tiles among blocks, and what they refuse.
#include "kernels/best/fp32/split_plan.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <string_view>

#include "kernels/registered_kernels_test.hpp"

namespace gemm::simt {
namespace {

const Device kDevice{.sm_count = 132};
constexpr SplitTile kTile{
    .rows = 64, .columns = 128, .step = 48, .blocks = 1, .sums = 64 * 128 * 3};

// The plans for each number of blocks.
std::map<std::int64_t, SplitPlan> plans(std::int64_t m, std::int64_t n, std::int64_t k) {
  std::map<std::int64_t, SplitPlan> all;
  for (const SplitPlan& plan : split_plans(m, n, k, kTile, kDevice)) all[plan.blocks] = plan;
  return all;
}

// 64 rows and 4096 columns are 32 tiles; with 4 blocks each, 128 blocks.
TEST(SplitPlan, GivesEachTileAsManyBlocksAsFit) {
  const auto all = plans(64, 4096, 4096);
  ASSERT_TRUE(all.contains(128));
  EXPECT_EQ(all.at(128).tiles, 32);
  EXPECT_EQ(all.at(128).tile_steps, (4096 + 47) / 48);
  EXPECT_EQ(all.at(128).pieces(), 128);
}

// 48 tiles: two blocks each would leave 36 SMs idle, three do not fit at once.
TEST(SplitPlan, CutsTheStepsOfAllTilesIntoEqualShares) {
  const auto all = plans(64, 6144, 14336);
  ASSERT_TRUE(all.contains(132));
  EXPECT_EQ(all.at(132).tiles, 48);
  EXPECT_EQ(all.at(132).pieces(), 132 + 48 - 12);  // 11 blocks for 4 tiles, 12 times
}

TEST(SplitPlan, LeavesTilesWhole) { EXPECT_EQ(plans(64, 132 * 128, 64).at(132).pieces(), 0); }

// A block without a step would leave a partial sum unwritten.
TEST(SplitPlan, HasNoMoreBlocksThanSteps) {
  for (const std::int64_t k : {1, 47, 48, 49, 97, 1000})
    for (const std::int64_t n : {1, 128, 129, 1000, 100000})
      for (const std::int64_t m : {1, 64, 65}) {
        const auto all = plans(m, n, k);
        EXPECT_FALSE(all.empty());
        for (const auto& [blocks, plan] : all) {
          EXPECT_GE(blocks, 1);
          EXPECT_LE(blocks, plan.tiles * plan.tile_steps) << m << "x" << n << "x" << k;
        }
      }
}

// Each step belongs to the block whose share contains it.
TEST(SplitPlan, FindsTheBlockOfAStep) {
  for (const std::int64_t tiles : {1, 3, 32, 48, 67, 131, 133, 1000})
    for (const std::int64_t steps : {1, 2, 7, 54, 300})
      for (const std::int64_t blocks : {1, 5, 128, 132, 264}) {
        if (blocks > tiles * steps) continue;
        const SplitPlan plan{.tiles = tiles, .tile_steps = steps, .blocks = blocks};
        for (std::int64_t step = 0; step < tiles * steps; ++step) {
          const std::int64_t block = plan.block_of(step);
          ASSERT_LE(plan.begin(block), step);
          ASSERT_GT(plan.begin(block + 1), step);
        }
      }
}

// `pieces` against counting.
TEST(SplitPlan, CountsThePiecesOfTilesThatBlocksShare) {
  for (const auto& [tiles, steps, blocks] :
       {std::array{32, 86, 128}, {48, 86, 132}, {67, 27, 132}, {3, 100, 132}, {132, 4, 132}}) {
    const SplitPlan plan{.tiles = tiles, .tile_steps = steps, .blocks = blocks};
    std::int64_t pieces = 0;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t of_tile =
          plan.block_of((tile + 1) * steps - 1) - plan.block_of(tile * steps) + 1;
      pieces += of_tile > 1 ? of_tile : 0;
    }
    EXPECT_GE(plan.pieces(), pieces) << tiles << " tiles of " << steps << " for " << blocks;
    EXPECT_LE(plan.pieces(), pieces + pieces / 20);
  }
}

// The limits of both kernels, in builds with CUDA.
TEST(Skinny, KernelsRefuseProblemsBeyondTheirLimits) {
  SKIP_WITHOUT_GPU_KERNELS();
  const auto refusal = [](std::string_view name, const Problem& p) {
    return find(name)->unsupported(p, kHopper).value_or("");
  };
  EXPECT_EQ(refusal("SplitK", {2048, 4096, 4096, Precision::f32}), "");
  EXPECT_EQ(refusal("SplitK", {4096, 2048, 4096, Precision::f32, Layout::tt}), "");
  EXPECT_NE(refusal("SplitK", {2049, 2049, 4096, Precision::f32}), "");
  EXPECT_EQ(refusal("Gemv", {4096, 16, 4096, Precision::f32}), "");
  EXPECT_EQ(refusal("Gemv", {16, 4096, 4096, Precision::f32, Layout::nt}), "");
  EXPECT_NE(refusal("Gemv", {16, 4096, 4096, Precision::f32}), "");
  EXPECT_NE(refusal("Gemv", {4096, 16, 4096, Precision::f32, Layout::tn}), "");
  EXPECT_NE(refusal("Gemv", {4096, 17, 4096, Precision::f32}), "");
}

}  // namespace
}  // namespace gemm::simt
