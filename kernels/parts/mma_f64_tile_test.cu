// The swizzle of FP64 K tiles: which of the 8 places of 16 bytes in all banks a lane loads from.
// Values are tested with the kernels, on a GPU (bench/verification/exactness_test.cpp).
#include <gtest/gtest.h>

#include <set>

#include "kernels/parts/mma_f64_tile.cuh"

namespace gemm::tensor {
namespace {

int place(int row, int chunk) { return (chunk ^ f64_swizzle(row)) % 8; }

TEST(F64Swizzle, SpreadsTheLanesOfAWavefrontWhereKIsContiguous) {
  for (int lines = 0; lines < 16; lines += 4)  // 2 g of two g
    for (int part = 0; part < 2; ++part)
      for (int step = 0; step < 2; ++step) {
        std::set<int> places;
        for (int g = 0; g < 2; ++g)
          for (int t = 0; t < 4; ++t) places.insert(place(lines + 2 * g + part, 4 * step + t));
        EXPECT_EQ(places.size(), 8U) << lines;
      }
}

TEST(F64Swizzle, SpreadsTheLanesOfAWavefrontWhereLinesAreContiguous) {
  for (int part = 0; part < 2; ++part)
    for (int g = 0; g < 8; g += 2) {
      std::set<int> pairs, singles;
      for (int t = 0; t < 4; ++t)
        for (int lane = 0; lane < 2; ++lane) {
          pairs.insert(place(2 * t + part, g + lane));
          singles.insert(place(2 * (t + 4 * part), g + lane));  // swizzled as row 2 k
        }
      EXPECT_EQ(pairs.size(), 8U) << g;
      EXPECT_EQ(singles.size(), 8U) << g;
    }
}

// Single loads of 8 bytes: 16 lanes, each chunk by two of them.
TEST(F64Swizzle, SpreadsSingleLoadsWhereKIsContiguous) {
  for (int lines = 0; lines < 16; lines += 8)
    for (int part = 0; part < 2; ++part) {
      std::set<int> places;
      for (int g = 0; g < 4; ++g)
        for (int half = 0; half < 2; ++half) places.insert(place(lines + 2 * g, 2 * part + half));
      EXPECT_EQ(places.size(), 8U) << lines;
    }
}

}  // namespace
}  // namespace gemm::tensor
