// The swizzles of K tiles in shared memory: what is loaded or stored at once is in different banks.
// The values of fragments are tested with the kernels, on a GPU
// (bench/verification/exactness_test.cpp).
#include <gtest/gtest.h>

#include <cstddef>
#include <set>

#include "kernels/parts/mma_f64_tile.cuh"
#include "kernels/parts/mma_tile.cuh"

namespace gemm::tensor {
namespace {

constexpr int kPitches[] = {64, 128, 256, 512};

// The 16-byte slot of the 128 bytes of all banks that holds a chunk.
int place(int pitch, int row, int chunk) {
  return (row * pitch / kChunkBytes + swizzled(pitch, row, chunk)) % (kBankBytes / kChunkBytes);
}

TEST(Swizzle, KeepsEachChunkInItsRow) {
  for (const int pitch : kPitches)
    for (int row = 0; row < 16; ++row) {
      std::set<int> chunks;
      for (int chunk = 0; chunk < pitch / kChunkBytes; ++chunk)
        chunks.insert(swizzled(pitch, row, chunk));
      EXPECT_EQ(*chunks.begin(), 0);
      EXPECT_EQ(*chunks.rbegin(), pitch / kChunkBytes - 1);
      EXPECT_EQ(chunks.size(), static_cast<std::size_t>(pitch / kChunkBytes));
    }
}

// ldmatrix reads a chunk of eight rows at once; 8 threads of a copy store a line of 128 bytes, of
// one row or of two.
TEST(Swizzle, SpreadsEightRowsAndALineOverAllBanks) {
  for (const int pitch : kPitches)
    for (int i = 0; i < 16 * pitch / kBankBytes; ++i) {
      const int chunks = pitch / kChunkBytes, first_row = i / chunks * 8;
      std::set<int> of_rows, of_line;
      for (int j = 0; j < 8; ++j) {
        of_rows.insert(place(pitch, first_row + j, i % chunks));
        of_line.insert(place(pitch, (8 * i + j) / chunks, (8 * i + j) % chunks));
      }
      EXPECT_EQ(of_rows.size(), 8U) << pitch << " bytes, row " << first_row;
      EXPECT_EQ(of_line.size(), 8U) << pitch << " bytes, line " << i;
    }
}

// FP64: of the 8 places of 16 bytes in all banks.
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
