// The swizzle of K tiles in shared memory. The values of fragments are tested with the kernels, on
// a GPU (bench/verification/exactness_test.cpp).
#include <gtest/gtest.h>

#include <cstddef>
#include <set>

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

// ldmatrix reads a chunk of eight rows at once.
TEST(Swizzle, SpreadsAChunkOfEightRowsOverAllBanks) {
  for (const int pitch : kPitches)
    for (int first_row = 0; first_row < 16; first_row += 8)
      for (int chunk = 0; chunk < pitch / kChunkBytes; ++chunk) {
        std::set<int> places;
        for (int row = first_row; row < first_row + 8; ++row)
          places.insert(place(pitch, row, chunk));
        EXPECT_EQ(places.size(), 8U) << pitch << " bytes, row " << first_row << ", chunk " << chunk;
      }
}

// 8 threads of a copy store a line of 128 bytes at once, of one row or of two.
TEST(Swizzle, SpreadsALineOverAllBanks) {
  for (const int pitch : kPitches)
    for (int line = 0; line < 16 * pitch / kBankBytes; ++line) {
      std::set<int> places;
      for (int chunk = line * 8; chunk < line * 8 + 8; ++chunk)
        places.insert(place(pitch, chunk * kChunkBytes / pitch, chunk % (pitch / kChunkBytes)));
      EXPECT_EQ(places.size(), 8U) << pitch << " bytes, line " << line;
    }
}

}  // namespace
}  // namespace gemm::tensor
