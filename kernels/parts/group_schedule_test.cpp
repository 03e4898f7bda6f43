// The pieces of all tiles of groups, on the CPU.
#include "kernels/parts/group_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace gemm {
namespace {

constexpr int kColumns = 128, kDepth = 128, kPart = 64;

// Each 64 rows, 128 columns and K tile once, without a part that has no rows; sums are stored by
// blocks with lower indices, before these add any; and no block has much more than its share.
void expect_complete(const Problem& problem, int blocks) {
  const Products p(problem);
  const GroupSchedule found = GroupScheduler(p, blocks, kColumns, kDepth).schedule();
  ASSERT_EQ(found.starts.size(), blocks + 1U);
  std::map<std::tuple<int, int, int>, std::int64_t> k_tiles;  // of a group's part
  std::map<int, int> stored_by, added_by;                     // blocks, by slot
  double all = 0, most = 0, largest = 0;
  for (int block = 0; block < blocks; ++block) {
    double load = 0;
    bool adds = false;
    for (int i = found.starts[block]; i < found.starts[block + 1]; ++i) {
      const GroupPiece& piece = found.pieces[i];
      ASSERT_LT(piece.first, piece.end);
      ASSERT_EQ(piece.end_row, p.first_row(piece.group + 1));
      ASSERT_GE(piece.row, p.first_row(piece.group));
      ASSERT_LT(piece.row + kPart * (piece.parts - 1), piece.end_row);
      ASSERT_LE(piece.parts, 4);
      for (int part = 0; part < piece.parts; ++part)
        k_tiles[{piece.row + kPart * part, piece.column, piece.group}] += piece.end - piece.first;
      if (piece.others == GroupPiece::kStored) {
        ASSERT_FALSE(adds) << "waits before it stores";
        ASSERT_TRUE(stored_by.emplace(piece.slot, block).second);
      }
      for (int other = 0; other < piece.others; ++other)
        ASSERT_TRUE(added_by.emplace(piece.slot + other, block).second);
      ASSERT_EQ(piece.first > 0, piece.others == GroupPiece::kStored);
      adds = adds || piece.others > 0;
      load += GroupScheduler::cost(piece);
      largest = std::max(largest, GroupScheduler::cost(piece));
    }
    all += load;
    most = std::max(most, load);
  }
  std::int64_t parts = 0;
  for (int which = 0; which < p.batch; ++which) parts += ceil_div(p.rows(which), kPart);
  ASSERT_EQ(k_tiles.size(), parts * ceil_div(p.n, kColumns));
  for (const auto& [part, count] : k_tiles) ASSERT_EQ(count, ceil_div(p.k, kDepth));
  ASSERT_EQ(std::ssize(stored_by), found.slots);
  ASSERT_EQ(stored_by.size(), added_by.size());
  for (const auto& [slot, block] : added_by) ASSERT_LT(stored_by.at(slot), block);
  // Of four parts, and six K tiles that no piece may fill.
  EXPECT_LE(most, std::max(1.03 * all / blocks + 24, largest)) << "of " << all / blocks;
}

TEST(GroupSchedule, CoversEveryGroupOnceAndIsEven) {
  for (const Tokens tokens : {Tokens::equal, Tokens::band, Tokens::zipf, Tokens::real})
    for (const auto& [batch, m, n, k] : {std::tuple{8, 512, 4096, 7168},
                                         {32, 256, 7168, 2048},
                                         {128, 64, 4096, 7168},
                                         {32, 3, 300, 400},
                                         {2, 1, 1, 1},
                                         {9, 70, 130, 1040},
                                         {3, 1000, 100, 16384}})
      for (const int blocks : {1, 3, 132}) {
        SCOPED_TRACE(std::to_string(batch) + " x " + std::to_string(m) + " " +
                     std::to_string(static_cast<int>(tokens)) + " " + std::to_string(blocks));
        expect_complete({.m = m,
                         .n = n,
                         .k = k,
                         .precision = Precision::e4m3block,
                         .layout = Layout::nt,
                         .batch = batch,
                         .tokens = tokens},
                        blocks);
      }
}

}  // namespace
}  // namespace gemm
