// Stream-K schedules, on the CPU: every K tile is computed once, blocks wait only on blocks that
// started earlier, and partial sums are found where they were stored.
#include "kernels/parts/tile_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

using simt::tile_schedules;
using simt::TilePiece;
using simt::TileSchedule;
using simt::TileWalk;
using simt::whole_tiles;
using simt::work_of;

constexpr int kRows = 128, kColumns = 256, kDepth = 16;
constexpr int kBlocks[] = {1, 2, 7, 108, 132, 264};

Problem of_tiles(std::int64_t rows, std::int64_t columns, std::int64_t k_tiles) {
  return {rows * kRows, columns * kColumns, k_tiles * kDepth, Precision::f32};
}

TileSchedule chosen(const Problem& p, int blocks) {
  return tile_schedules(p, kRows, kColumns, kDepth, blocks).front();
}

std::string text_of(const TileSchedule& s) {
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

// Those worth a look, and other valid ones.
void for_many_schedules(const std::function<void(const TileSchedule&)>& f) {
  Random random;
  for (int i = 0; i < 200; ++i)
    for (const int blocks : kBlocks) {
      const Problem p = random.problem();
      for (const TileSchedule& one : tile_schedules(p, kRows, kColumns, kDepth, blocks, 2)) f(one);
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
        ASSERT_TRUE(0 <= piece.tile && piece.tile < s.tiles()) << text_of(s);
        ASSERT_TRUE(0 <= piece.first && piece.first < piece.end && piece.end <= s.k_tiles)
            << text_of(s);
        for (int k_tile = piece.first; k_tile < piece.end; ++k_tile)
          ++times[static_cast<std::size_t>(piece.tile) * s.k_tiles + k_tile];
      }
    EXPECT_TRUE(std::ranges::all_of(times, [](int count) { return count == 1; })) << text_of(s);
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
        EXPECT_EQ(beginner[piece.tile], -1) << text_of(s) << ": tile " << piece.tile;
        beginner[piece.tile] = block;
      }
    EXPECT_EQ(std::ranges::count(beginner, -1), 0) << text_of(s);
    for (int block = 0; block < grid_of(s); ++block)
      for (const TilePiece& piece : all[block]) {
        if (piece.first == 0) continue;
        waited = true;
        EXPECT_LT(block, beginner[piece.tile]) << text_of(s) << ": tile " << piece.tile;
      }
  });
  EXPECT_TRUE(waited);
}

// No block is idle. A block has one slot for partial sums, and must not wait before it has stored
// them.
TEST(TileSchedule, OnlyTheFirstPieceOfABlockContinuesATile) {
  for_many_schedules([](const TileSchedule& s) {
    EXPECT_LE(grid_of(s), s.blocks) << text_of(s);
    for (int block = 0; block < grid_of(s); ++block) {
      const std::vector<TilePiece> pieces = pieces_of(s, block);
      EXPECT_FALSE(pieces.empty()) << text_of(s) << ": block " << block;
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (pieces[i].first == 0) continue;
        EXPECT_EQ(i, 0U) << text_of(s) << ": block " << block;
        EXPECT_GE(s.rank(block), 0) << text_of(s) << ": block " << block;
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
        EXPECT_EQ(ranks, holders[piece.tile]) << text_of(s) << ": tile " << piece.tile;
        if (piece.end < s.k_tiles) {
          EXPECT_EQ(end_of_sharers(s, s.rank(block), piece.tile), ranks.back() + 1) << text_of(s);
        }
        reads += static_cast<int>(ranks.size());
      }
  });
  EXPECT_GT(reads, 1000);
}

TEST(TileSchedule, SharesDifferByOneKTileAtMost) {
  for_many_schedules([](const TileSchedule& s) {
    EXPECT_EQ(s.share(0), 0) << text_of(s);
    EXPECT_EQ(s.share(s.streaming), s.streamed() * s.k_tiles) << text_of(s);
    const int least = s.streamed() * s.k_tiles / s.streaming;
    for (int rank = 0; rank < s.streaming; ++rank) {
      const int share = s.share(rank + 1) - s.share(rank);
      EXPECT_TRUE(share == least || share == least + 1) << text_of(s) << ": rank " << rank;
    }
  });
}

TEST(TileSchedule, LeftIsWhatTheWalkThenGives) {
  for_many_schedules([](const TileSchedule& s) {
    for (int block = 0; block < grid_of(s); ++block) {
      int left = 0;
      for (const TilePiece& piece : pieces_of(s, block)) left += piece.end - piece.first;
      TileWalk walk(s, block);
      ASSERT_EQ(walk.left(s), left) << text_of(s) << ": block " << block;
      for (TilePiece piece; walk.next(s, piece);) {
        left -= piece.end - piece.first;
        walk.map([](int number) { return number; });
        ASSERT_EQ(walk.left(s), left) << text_of(s) << ": block " << block;
        ASSERT_EQ(walk.more(s), left > 0) << text_of(s) << ": block " << block;
      }
    }
  });
}

// 256 tiles in four waves of 66 blocks: 64 blocks have four tiles each, one wave after another.
TEST(TileSchedule, EvenlyTakesNoMoreBlocksThanItsWavesNeed) {
  const auto waves_of_66 = tile_schedules(of_tiles(16, 16, 8), kRows, kColumns, kDepth, 66);
  const TileSchedule even = simt::evenly(waves_of_66.back());
  EXPECT_EQ(grid_of(even), 64) << text_of(even);
  for (int block = 0; block < grid_of(even); ++block) {
    std::vector<int> tiles;
    for (const TilePiece& piece : pieces_of(even, block)) tiles.push_back(piece.tile);
    EXPECT_EQ(tiles, (std::vector{block, block + 64, block + 128, block + 192})) << block;
  }
  EXPECT_EQ(simt::evenly(waves_of_66.front()), waves_of_66.front());  // tiles are cut
  for_many_schedules([](const TileSchedule& s) {
    const TileSchedule one = simt::evenly(s);
    std::vector<int> k_tiles(s.tiles());
    std::size_t most = 0;
    for (const auto& pieces : all_pieces(one)) {
      most = std::max(most, pieces.size());
      for (const TilePiece& piece : pieces) k_tiles[piece.tile] += piece.end - piece.first;
    }
    EXPECT_EQ(k_tiles, std::vector<int>(s.tiles(), s.k_tiles)) << text_of(one);
    if (one.whole > 0 && one.streaming == one.streamed()) {
      EXPECT_EQ(most, static_cast<std::size_t>(ceil_div(s.tiles(), s.blocks))) << text_of(one);
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
        EXPECT_EQ(s.share(rank), all * rank / streaming) << text_of(s) << ": rank " << rank;
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
  // Rows, columns and steps along k are counted with 32 bits, too, also those of a tile beyond the
  // edge.
  constexpr std::int64_t kBeyond = std::int64_t{kLargest} + 1, kFar = std::int64_t{1} << 40;
  const auto one_long = [](std::int64_t size, int side) {
    return Problem{side == 0 ? size : 1, side == 1 ? size : 1, side == 2 ? size : 1,
                   Precision::f32};
  };
  for (int side = 0; side < 3; ++side) {
    EXPECT_NO_THROW(chosen(one_long(kLargest, side), 132));
    EXPECT_THROW(chosen(one_long(kBeyond, side), 132), std::length_error) << side;
    EXPECT_THROW(whole(one_long(kFar, side)), std::length_error) << side;
  }
  for (const Problem& p :
       {of_tiles(1 << 12, 1 << 12, 128), of_tiles(1 << 10, 1 << 10, 1 << 11),
        Problem{kMost, kMost, 1, Precision::f32}, Problem{kFar, kFar, kFar, Precision::f32}}) {
    EXPECT_THROW(whole(p), std::length_error) << p.m << " x " << p.n << " x " << p.k;
    EXPECT_THROW(chosen(p, 132), std::length_error) << p.m << " x " << p.n << " x " << p.k;
  }
}

// --- The model -----------------------------------------------------------------------------------

// The model's view of a schedule: the share of the busiest SM, and what follows its products.
TEST(TileSchedule, WorkIsThatOfTheBusiestSm) {
  struct Case {
    const char* name;
    Problem p;
    int blocks;
    std::size_t index;  // of the schedule
    double busiest, exchanges, tail;
  };
  constexpr double kC = 100, kSums = 1000;
  const Case cases[] = {
      {"whole waves", of_tiles(2, 2, 8), 4, 0, 1, 0, kC},
      {"a half-full wave, streamed by all", of_tiles(1, 2, 8), 4, 0, 1, 1, 2 * kSums + kC},
      {"a half-full wave, not cut", of_tiles(1, 2, 8), 4, 1, 2, 0, kC},
      {"a wave and a half, not cut", of_tiles(3, 2, 8), 4, 1, 4.0 / 3, 0, 2 * kC},
  };
  for (const Case& one : cases) {
    const TileSchedule schedule =
        tile_schedules(one.p, kRows, kColumns, kDepth, one.blocks).at(one.index);
    const Work work = work_of(schedule, {}, one.blocks, kC, kSums, false);
    EXPECT_DOUBLE_EQ(work.busiest, one.busiest) << one.name;
    EXPECT_DOUBLE_EQ(work.exchanges, one.exchanges) << one.name;
    EXPECT_DOUBLE_EQ(work.tail, one.tail) << one.name;
  }
}

TEST(TileSchedule, StreamsAtMostTheAllowedWaves) {
  const Problem p = of_tiles(9, 1, 64);
  for (const int waves : {0, 1, 2})
    for (const TileSchedule& one : tile_schedules(p, kRows, kColumns, kDepth, 4, waves))
      EXPECT_GE(one.whole, 8 - 4 * waves);
}

}  // namespace
}  // namespace gemm
