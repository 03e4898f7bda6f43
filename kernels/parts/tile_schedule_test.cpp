// Stream-K schedules, on the CPU: every K tile is computed once, blocks wait only on blocks that
// started earlier, partial sums are found where they were stored, and the chosen schedule is the
// best by its own model.
#include "kernels/parts/tile_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace gemm {
namespace {

using simt::add_reads_of_streamed_tiles;
using simt::limited_by;
using simt::seconds;
using simt::tail_seconds;
using simt::tile_schedule;
using simt::TileCost;
using simt::TilePiece;
using simt::TileReads;
using simt::TileSchedule;
using simt::TileWalk;
using simt::whole_tiles;

constexpr int kRows = 128, kColumns = 256, kDepth = 16;
constexpr int kBlocks[] = {1, 2, 7, 108, 132, 264};
// A K tile costs more than the rest, as on a GPU, and the other way round.
constexpr TileCost kCosts[] = {{2.5e-6, 1.5e-6, 2.5e-6}, {1e-6, 1e-5, 1e-6}, {1e-6, 0, 1e-4}};

Problem of_tiles(std::int64_t rows, std::int64_t columns, std::int64_t k_tiles) {
  return {rows * kRows, columns * kColumns, k_tiles * kDepth, Precision::f32};
}

TileSchedule chosen(const Problem& p, int blocks, const TileCost& cost = kCosts[0]) {
  return tile_schedule(p, kRows, kColumns, kDepth, blocks, cost);
}

std::string name_of(const TileSchedule& s) {
  return std::to_string(s.tile_rows) + " x " + std::to_string(s.tile_columns) + " tiles of " +
         std::to_string(s.k_tiles) + " K tiles, " + std::to_string(s.whole) + " whole, " +
         std::to_string(s.streaming) + " of " + std::to_string(s.blocks) + " blocks streaming";
}

int grid_of(const TileSchedule& s) { return s.whole > 0 ? s.blocks : s.streaming; }

// The pieces of a block in order. Throws std::logic_error if they do not end.
std::vector<TilePiece> pieces_of(const TileSchedule& schedule, int block) {
  std::vector<TilePiece> pieces;
  TileWalk walk(schedule, block);
  for (TilePiece piece; walk.next(schedule, piece);) {
    pieces.push_back(piece);
    if (std::ssize(pieces) > schedule.tiles()) throw std::logic_error("more pieces than tiles");
  }
  return pieces;
}

// The pieces of every block of the grid.
std::vector<std::vector<TilePiece>> all_pieces(const TileSchedule& schedule) {
  std::vector<std::vector<TilePiece>> all;
  for (int block = 0; block < grid_of(schedule); ++block) all.push_back(pieces_of(schedule, block));
  return all;
}

class Random {
 public:
  int below(int end) { return static_cast<int>(bits_() % static_cast<unsigned>(end)); }
  Problem problem() {  // few tiles or many, short or long, ragged
    return {1 + below(1 << (4 + below(9))), 1 + below(1 << (5 + below(9))),
            1 + below(1 << (1 + below(10))), Precision::f32};
  }

 private:
  std::mt19937 bits_{20};
};

// Chosen schedules, and other valid ones.
void for_many_schedules(const std::function<void(const TileSchedule&)>& f) {
  Random random;
  for (int i = 0; i < 200; ++i)
    for (const int blocks : kBlocks) {
      const Problem p = random.problem();
      for (const TileCost& cost : kCosts) f(chosen(p, blocks, cost));
      TileSchedule any = whole_tiles(p, kRows, kColumns, kDepth);
      f(any);
      any.blocks = blocks;
      any.whole = random.below(any.tiles() / blocks + 1) * blocks;
      const int most = std::min<std::int64_t>(blocks, std::int64_t{any.streamed()} * any.k_tiles);
      any.streaming = most > 0 ? 1 + random.below(most) : 1;
      f(any);
    }
}

TEST(TileSchedule, ComputesEveryKTileOnce) {
  for_many_schedules([](const TileSchedule& s) {
    std::vector<int> times(static_cast<std::size_t>(s.tiles()) * s.k_tiles);
    for (const auto& pieces : all_pieces(s))
      for (const TilePiece& piece : pieces) {
        ASSERT_TRUE(0 <= piece.tile && piece.tile < s.tiles()) << name_of(s);
        ASSERT_TRUE(0 <= piece.first && piece.first < piece.end && piece.end <= s.k_tiles)
            << name_of(s);
        for (int k_tile = piece.first; k_tile < piece.end; ++k_tile)
          ++times[static_cast<std::size_t>(piece.tile) * s.k_tiles + k_tile];
      }
    EXPECT_TRUE(std::ranges::all_of(times, [](int count) { return count == 1; })) << name_of(s);
  });
}

TEST(TileSchedule, LeavesNoBlockIdle) {
  for_many_schedules([](const TileSchedule& s) {
    EXPECT_LE(grid_of(s), s.blocks) << name_of(s);
    for (const auto& pieces : all_pieces(s)) EXPECT_FALSE(pieces.empty()) << name_of(s);
  });
}

// The block that begins a tile stores it, and waits only on blocks that started earlier and do not
// wait before they have stored their partial sums.
TEST(TileSchedule, EveryTileIsBegunByOneBlockWhichWaitsForLowerOnes) {
  bool waited = false;
  for_many_schedules([&](const TileSchedule& s) {
    std::vector<int> beginner(s.tiles(), -1);
    const auto all = all_pieces(s);
    for (int block = 0; block < grid_of(s); ++block)
      for (const TilePiece& piece : all[block]) {
        if (piece.first > 0) continue;
        EXPECT_EQ(beginner[piece.tile], -1) << name_of(s) << ": tile " << piece.tile;
        beginner[piece.tile] = block;
      }
    EXPECT_EQ(std::ranges::count(beginner, -1), 0) << name_of(s);
    for (int block = 0; block < grid_of(s); ++block)
      for (const TilePiece& piece : all[block]) {
        if (piece.first == 0) continue;
        waited = true;
        EXPECT_LT(block, beginner[piece.tile]) << name_of(s) << ": tile " << piece.tile;
      }
  });
  EXPECT_TRUE(waited);
}

// A block has one slot for partial sums, and must not wait before it has stored them.
TEST(TileSchedule, OnlyTheFirstPieceOfABlockContinuesATile) {
  for_many_schedules([](const TileSchedule& s) {
    for (int block = 0; block < grid_of(s); ++block) {
      const std::vector<TilePiece> pieces = pieces_of(s, block);
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (pieces[i].first == 0) continue;
        EXPECT_EQ(i, 0U) << name_of(s) << ": block " << block;
        EXPECT_GE(s.rank(block), 0) << name_of(s) << ": block " << block;
      }
    }
  });
}

// The ranks that add_partials reads.
std::vector<int> ranks_read(const TileSchedule& s, int rank, int tile) {
  std::vector<int> ranks;
  const int end = (tile + 1) * s.k_tiles;
  int other = rank;
  do ranks.push_back(++other);
  while (s.share(other + 1) < end);
  return ranks;
}

TEST(TileSchedule, PartialSumsAreReadFromTheRanksThatStoreThem) {
  int reads = 0;
  for_many_schedules([&](const TileSchedule& s) {
    const auto all = all_pieces(s);
    std::vector<std::vector<int>> holders(s.tiles());  // of pieces after the first
    for (int rank = 0; rank < s.streaming; ++rank)
      for (const TilePiece& piece : all[s.rank(rank)])  // rank() is its own inverse
        if (piece.first > 0) holders[piece.tile].push_back(rank);
    for (int block = 0; block < grid_of(s); ++block)
      for (const TilePiece& piece : all[block]) {
        if (piece.first > 0) continue;
        std::vector<int> ranks;
        if (piece.end < s.k_tiles) ranks = ranks_read(s, s.rank(block), piece.tile);
        EXPECT_EQ(ranks, holders[piece.tile]) << name_of(s) << ": tile " << piece.tile;
        if (piece.end < s.k_tiles) {
          EXPECT_EQ(end_of_sharers(s, s.rank(block), piece.tile), ranks.back() + 1) << name_of(s);
        }
        reads += static_cast<int>(ranks.size());
      }
  });
  EXPECT_GT(reads, 1000);
}

TEST(TileSchedule, SharesDifferByOneKTileAtMost) {
  for_many_schedules([](const TileSchedule& s) {
    EXPECT_EQ(s.share(0), 0) << name_of(s);
    EXPECT_EQ(s.share(s.streaming), s.streamed() * s.k_tiles) << name_of(s);
    const int least = s.streamed() * s.k_tiles / s.streaming;
    for (int rank = 0; rank < s.streaming; ++rank) {
      const int share = s.share(rank + 1) - s.share(rank);
      EXPECT_TRUE(share == least || share == least + 1) << name_of(s) << ": rank " << rank;
    }
  });
}

TEST(TileSchedule, LeftIsWhatTheWalkThenGives) {
  for_many_schedules([](const TileSchedule& s) {
    for (int block = 0; block < grid_of(s); ++block) {
      int left = 0;
      for (const TilePiece& piece : pieces_of(s, block)) left += piece.end - piece.first;
      TileWalk walk(s, block);
      ASSERT_EQ(walk.left(s), left) << name_of(s) << ": block " << block;
      for (TilePiece piece; walk.next(s, piece);) {
        left -= piece.end - piece.first;
        walk.map([](int number) { return number; });
        ASSERT_EQ(walk.left(s), left) << name_of(s) << ": block " << block;
        ASSERT_EQ(walk.more(s), left > 0) << name_of(s) << ": block " << block;
      }
    }
  });
}

// --- As many K tiles as there can be
// --------------------------------------------------------------

// A walk adds a grid to a tile.
constexpr int kMost = std::numeric_limits<int>::max(), kMostTiles = kMost / 2;
constexpr int kLargest = kMost - 1024;  // of m, n and k

TEST(TileSchedule, SharesDoNotOverflow) {
  for (const auto [rows, columns, k_tiles] :
       {std::array{1, 1, kMost}, {1, kMostTiles, 1}, {2, 46'340 / 2, 46'341}, {1, 46'341, 46'340}})
    for (const int streaming : {1, 2, 7, 264}) {
      const TileSchedule s{rows, columns, k_tiles, 0, streaming, streaming};
      const std::int64_t all = std::int64_t{rows} * columns * k_tiles;
      ASSERT_GE(all, kMostTiles);
      for (int rank = 0; rank <= streaming; ++rank)
        EXPECT_EQ(s.share(rank), all * rank / streaming) << name_of(s) << ": rank " << rank;
      for (int rank = 0; rank < streaming; ++rank)
        EXPECT_EQ(TileWalk(s, s.rank(rank)).left(s), s.share(rank + 1) - s.share(rank));
    }
}

TEST(TileSchedule, WalksDoNotOverflow) {
  // The first and the last block of a grid of one each; then of one that takes all in waves.
  const TileSchedule each = whole_tiles({1, kMostTiles, 1, Precision::f32}, 1, 1, 1);
  for (const int block : {0, 1, each.tiles() / 2, each.tiles() - 1}) {
    TileWalk walk(each, block);
    EXPECT_EQ(walk.left(each), 1) << block;
    TilePiece piece{};
    ASSERT_TRUE(walk.next(each, piece)) << block;
    EXPECT_EQ(piece.tile, block);
    EXPECT_EQ(walk.left(each), 0) << block;
    EXPECT_FALSE(walk.next(each, piece)) << block;
  }
  EXPECT_THROW(whole_tiles({1, kMostTiles + 1, 1, Precision::f32}, 1, 1, 1), std::length_error);
  const TileSchedule waves = chosen(of_tiles(46'341, 1, 46'340), 264);
  std::int64_t all = 0;
  for (int block = 0; block < grid_of(waves); ++block) {
    std::int64_t sum = 0;
    for (const TilePiece& piece : pieces_of(waves, block)) sum += piece.end - piece.first;
    EXPECT_EQ(TileWalk(waves, block).left(waves), sum);
    all += sum;
  }
  EXPECT_EQ(all, 46'341LL * 46'340);
}

TEST(TileSchedule, RefusesMoreSlicesThan32BitsCount) {
  const auto whole = [](const Problem& p) { return whole_tiles(p, kRows, kColumns, kDepth); };
  EXPECT_EQ(whole(of_tiles(1 << 12, 1 << 12, 127)).tiles(), 1 << 24);
  EXPECT_EQ(chosen(of_tiles(1 << 12, 1 << 12, 127), 132).k_tiles, 127);
  EXPECT_EQ(whole_tiles({1, 1, kLargest, Precision::f32}, 1, 1, 1).k_tiles, kLargest);
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  for (const Problem& p :
       {of_tiles(1 << 12, 1 << 12, 128), of_tiles(1 << 10, 1 << 10, 1 << 11),
        Problem{kFar, 1, 1, Precision::f32}, Problem{1, kFar, 1, Precision::f32},
        Problem{1, 1, kFar, Precision::f32}, Problem{kMost, kMost, 1, Precision::f32},
        Problem{kFar, kFar, kFar, Precision::f32}}) {
    EXPECT_THROW(whole(p), std::length_error) << p.m << " x " << p.n << " x " << p.k;
    EXPECT_THROW(chosen(p, 132), std::length_error) << p.m << " x " << p.n << " x " << p.k;
  }
}

// Rows, columns and steps along k are counted with 32 bits, too, also those of a tile beyond the
// edge.
TEST(TileSchedule, RefusesSizesBeyond32Bits) {
  constexpr std::int64_t kBeyond = std::int64_t{kLargest} + 1;
  for (const Problem& p :
       {Problem{kBeyond, 1, 1, Precision::f32}, Problem{1, kBeyond, 1, Precision::f32},
        Problem{1, 1, kBeyond, Precision::f32}}) {
    EXPECT_THROW(chosen(p, 132), std::length_error) << p.m << " x " << p.n << " x " << p.k;
    const Problem largest{std::min<std::int64_t>(p.m, kLargest),
                          std::min<std::int64_t>(p.n, kLargest),
                          std::min<std::int64_t>(p.k, kLargest), Precision::f32};
    EXPECT_NO_THROW(chosen(largest, 132));
  }
}

// --- The model -----------------------------------------------------------------------------------

TEST(TileCost, CountsTheWorkOfABlock) {
  constexpr TileCost kCost{.k_tile = 1, .finish = 100, .exchange = 10'000};
  const auto cost = [&](TileSchedule s) { return seconds(s, kCost); };
  EXPECT_EQ(cost({3, 2, 4, 6, 1, 6}), 104);           // a block for each tile
  EXPECT_EQ(cost({3, 2, 4, 6, 1, 2}), 312);           // in three waves
  EXPECT_EQ(cost({3, 2, 4, 0, 3, 3}), 208);           // two tiles a block, none of them cut
  EXPECT_EQ(cost({1, 3, 4, 2, 2, 2}), 104 + 10'102);  // one whole, then half a tile each
  EXPECT_EQ(cost({1, 2, 4, 0, 4, 4}), 10'102);        // two blocks a tile
  EXPECT_EQ(cost({1, 1, 4, 0, 4, 4}), 30'101);        // four: three partial sums to wait for
  EXPECT_EQ(cost({1, 3, 4, 0, 2, 2}), 10'306);        // a tile and a half: ends one, begins another
}

TEST(TileCost, NothingIsLoadedDuringTheTail) {
  constexpr TileCost kCost{.k_tile = 1, .finish = 100, .exchange = 10'000, .further = 1'000};
  const auto tail = [&](TileSchedule s) { return tail_seconds(s, kCost); };
  EXPECT_EQ(tail({3, 2, 4, 6, 1, 6}), 100);     // a block for each tile
  EXPECT_EQ(tail({3, 2, 4, 6, 1, 2}), 0);       // in three waves
  EXPECT_EQ(tail({1, 3, 4, 2, 2, 2}), 0);       // one whole, then half a tile each
  EXPECT_EQ(tail({3, 2, 4, 0, 3, 3}), 100);     // two tiles a block, none of them cut
  EXPECT_EQ(tail({1, 2, 4, 0, 4, 4}), 10'100);  // two blocks a tile
  EXPECT_EQ(tail({1, 1, 4, 0, 4, 4}), 12'100);  // four
}

TEST(TileCost, ABlocksLastTileIsCountedOnce) {
  TileCost cost{.k_tile = 1, .finish = 100, .exchange = 10'000};
  cost.last = 7;
  EXPECT_EQ(seconds({3, 2, 4, 6, 1, 6}, cost), 104 + 7);           // a block for each tile
  EXPECT_EQ(seconds({3, 2, 4, 6, 1, 2}, cost), 312 + 7);           // in three waves
  EXPECT_EQ(seconds({1, 3, 4, 2, 2, 2}, cost), 104 + 10'102 + 7);  // one whole, then half a tile
  EXPECT_EQ(tail_seconds({3, 2, 4, 6, 1, 6}, cost), 100 + 7);
  EXPECT_EQ(tail_seconds({3, 2, 4, 6, 1, 2}, cost), 0);
}

// The model is that of the block with the most work.
TEST(TileCost, IsThatOfTheBlockWithMostKTiles) {
  for_many_schedules([](const TileSchedule& s) {
    int k_tiles = 0, pieces = 0;
    bool cut = false;
    for (const auto& some : all_pieces(s)) {
      int sum = 0;
      for (const TilePiece& piece : some) {
        sum += piece.end - piece.first;
        cut = cut || piece.first > 0;
      }
      k_tiles = std::max(k_tiles, sum);
      pieces = std::max(pieces, static_cast<int>(some.size()));
    }
    EXPECT_EQ(seconds(s, {1, 0, 0}), k_tiles) << name_of(s);
    EXPECT_GE(seconds(s, {0, 1, 0}), pieces) << name_of(s);
    EXPECT_GE(seconds(s, {0, 0, 1}), cut ? 1 : 0) << name_of(s);
  });
}

void for_many_choices(const std::function<void(const Problem&, int, const TileCost&)>& f) {
  Random random;
  for (int i = 0; i < 300; ++i) {
    const Problem p = random.problem();
    for (const int blocks : kBlocks)
      for (const TileCost& cost : kCosts) f(p, blocks, cost);
  }
}

constexpr double kRounded = 1 + 1e-12;

TEST(TileCost, TheChosenScheduleIsNoSlowerThanWholeOrStreamedTiles) {
  int faster_than_whole = 0, faster_than_none = 0;
  for_many_choices([&](const Problem& p, int blocks, const TileCost& cost) {
    const TileSchedule best = chosen(p, blocks, cost);
    const double least = seconds(best, cost);
    const double waves = std::ceil(1.0 * best.tiles() / blocks);
    const double whole = waves * (best.k_tiles * cost.k_tile + cost.finish);
    EXPECT_LE(least, whole * kRounded) << name_of(best);
    TileSchedule none = best;
    none.whole = 0;
    none.streaming =
        static_cast<int>(std::min<std::int64_t>(blocks, std::int64_t{best.tiles()} * best.k_tiles));
    EXPECT_LE(least, seconds(none, cost) * kRounded) << name_of(best);
    faster_than_whole += least * kRounded < whole;
    faster_than_none += least * kRounded < seconds(none, cost);
  });
  EXPECT_GT(faster_than_whole, 100);
  EXPECT_GT(faster_than_none, 100);
}

TEST(TileCost, WholeWavesAreNotStreamed) {
  for (const int blocks : kBlocks)
    for (const TileCost& cost : kCosts)
      for (int waves = 1; waves < 8; ++waves)
        for (const int k_tiles : {1, 2, 3, 5, 16, 61, 256, 1023}) {
          const TileSchedule best = chosen(of_tiles(waves, blocks, k_tiles), blocks, cost);
          EXPECT_EQ(best.streamed(), 0) << name_of(best);
        }
}

TEST(TileCost, TwiceTheKCostsMore) {
  for_many_choices([](const Problem& p, int blocks, const TileCost& cost) {
    if (p.k < kDepth) return;  // else the number of K tiles may be equal
    const Problem longer{p.m, p.n, 2 * p.k, p.precision};
    const TileSchedule once = chosen(p, blocks, cost), twice = chosen(longer, blocks, cost);
    EXPECT_GT(seconds(twice, cost), seconds(once, cost)) << name_of(once);
  });
}

// 5 of 8 tiles would be cut; if that costs three times as much, each tile has its own block, at the
// cost of a full wave.
TEST(TileSchedule, CutsNothingWhereStreamingReadsFromDram) {
  const Problem p{8 * 128, 256, 64 * 16, Precision::f32};
  const TileCost cheap{.k_tile = 1e-6, .finish = 0.1e-6, .exchange = 0.1e-6};
  TileCost dear = cheap;
  dear.streamed_k_tile = dear.position_k_tile = 3e-6;
  const TileSchedule cut = tile_schedule(p, 128, 256, 16, 6, cheap, 0);
  const TileSchedule uncut = tile_schedule(p, 128, 256, 16, 6, dear, 0);
  EXPECT_GT(cut.streaming, cut.streamed());
  EXPECT_EQ(uncut.streaming, uncut.streamed());
  EXPECT_DOUBLE_EQ(seconds(uncut, dear), seconds(uncut, cheap));
  EXPECT_GT(seconds(cut, dear), seconds(uncut, dear));
}

// 2 tiles of 12 K tiles, each cut into 3 pieces, of 12 blocks.
TEST(TileCost, CountsFurtherExchangesAndBusyBlocks) {
  const TileSchedule cut{
      .tile_rows = 2, .tile_columns = 1, .k_tiles = 12, .whole = 0, .streaming = 6, .blocks = 12};
  const TileCost plain{.k_tile = 1, .finish = 0, .exchange = 10};
  EXPECT_DOUBLE_EQ(seconds(cut, plain), 4 + 10 + 10);
  TileCost cost = plain;
  cost.further = 2;
  EXPECT_DOUBLE_EQ(seconds(cut, cost), 4 + 10 + 2);
  cost.alone = 0.5;  // half of the blocks run
  EXPECT_DOUBLE_EQ(seconds(cut, cost), 0.75 * 4 + 10 + 2);
  cost.one_wave = 0.5;
  EXPECT_DOUBLE_EQ(seconds(cut, cost), 0.5 * 0.75 * 4 + 10 + 2);
  Device slow;
  slow.sm_hz = Device::kH200Hz / 2;
  EXPECT_DOUBLE_EQ(seconds(cut, cost.on(slow)), 2 * seconds(cut, cost));
}

// 4 tiles of 12 K tiles in 6 shares, at any positions along k, or in 8, at two.
TEST(TileCost, SharesLoadsAtThePositionsWhereAllTilesAreCut) {
  TileSchedule schedule{
      .tile_rows = 4, .tile_columns = 1, .k_tiles = 12, .whole = 0, .streaming = 6, .blocks = 8};
  TileCost cost{.k_tile = 1, .finish = 0, .exchange = 0};
  EXPECT_DOUBLE_EQ(seconds(schedule, cost), 8);
  cost.loaded_k_tile = 1;
  EXPECT_DOUBLE_EQ(seconds(schedule, cost), TileCost::kUnshared * 8);
  cost.streamed_k_tile = 5;
  EXPECT_DOUBLE_EQ(seconds(schedule, cost), 5 * 8);
  schedule.streaming = 8;
  EXPECT_DOUBLE_EQ(seconds(schedule, cost), 6);
  cost.position_k_tile = 2;
  EXPECT_DOUBLE_EQ(seconds(schedule, cost), 2 * 2 * 6);
  cost.position_k_tile = 3;
  EXPECT_DOUBLE_EQ(seconds(schedule, cost), 5 * 6);
}

// 4 columns of tiles of 100 x 10, of which 8 blocks compute 2 rows at once: 200 rows of A and 40
// columns of B, at 4 bytes.
TEST(TileCost, ReadsStreamedTilesFromDramIfTheyExceedHalfOfTheL2) {
  const Problem p{1000, 40, 1000, Precision::f32};
  const TileReads tile{.rows = 100, .columns = 10, .k_tile_bytes = 16, .group = 1, .blocks = 8};
  const auto cost = [&](std::int64_t cache) {
    Device device;
    device.last_level_cache_bytes = cache;
    TileCost one{.k_tile = 1, .finish = 0, .exchange = 0};
    add_reads_of_streamed_tiles(one, p, device, tile, 2);
    return one;
  };
  const std::int64_t at_once = 4 * (200 + 40) * 1000;
  EXPECT_EQ(cost(2 * at_once).streamed_k_tile, 0);
  EXPECT_DOUBLE_EQ(cost(2 * at_once - 2).streamed_k_tile, 8 * 100 * 16 / 2) << "B stays in the L2";
  EXPECT_DOUBLE_EQ(cost(2 * at_once - 2).position_k_tile, 200 * 16 / 2);
  EXPECT_DOUBLE_EQ(cost(1).streamed_k_tile, 8 * (100 + 10) * 16 / 2);
  EXPECT_DOUBLE_EQ(cost(1).position_k_tile, (200 + 40) * 16 / 2);
}

TEST(TileCost, TakesLongerWithTwoLimitsThanWithTheLarger) {
  EXPECT_DOUBLE_EQ(limited_by(3, 0), 3);
  EXPECT_DOUBLE_EQ(limited_by(1, 1), std::sqrt(std::sqrt(2)));
  EXPECT_DOUBLE_EQ(limited_by(2, 7), limited_by(7, 2));
}

// 24 tiles of 4 K tiles on 12 blocks, and a tile for each of 6 blocks.
TEST(TileCost, HidesStoresBehindLoadsAndSharesTheLoads) {
  const TileSchedule waves{
      .tile_rows = 24, .tile_columns = 1, .k_tiles = 4, .whole = 24, .streaming = 1, .blocks = 12};
  const TileSchedule few{
      .tile_rows = 6, .tile_columns = 1, .k_tiles = 4, .whole = 0, .streaming = 6, .blocks = 12};
  TileCost cost{.k_tile = 1, .finish = 3, .exchange = 10};
  cost.loaded_k_tile = 1.5;
  EXPECT_DOUBLE_EQ(seconds(waves, cost), 2 * (4 + 3)) << "6 of loads";
  cost.loaded_k_tile = 2;
  EXPECT_DOUBLE_EQ(seconds(waves, cost), 2 * 8);
  EXPECT_DOUBLE_EQ(seconds(few, cost), 4 + 3) << "half of the blocks load";
  cost.own_k_tile = 2;
  EXPECT_DOUBLE_EQ(seconds(few, cost), 8 + 3);
}

TEST(TileSchedule, StreamsAtMostTheAllowedWaves) {
  const Problem p{20 * 128, 256, 64 * 16, Precision::f32};
  const TileCost cost{.k_tile = 1e-6, .finish = 0, .exchange = 0};
  for (const int waves : {0, 1, 2}) {
    const TileSchedule schedule = tile_schedule(p, 128, 256, 16, 6, cost, waves);
    EXPECT_GE(schedule.whole, (3 - waves) * 6) << waves;
  }
}

}  // namespace
}  // namespace gemm
