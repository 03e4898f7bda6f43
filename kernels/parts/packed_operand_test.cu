// Packed operands, K-major and MN-major, element by element: every element size, direction and
// alignment, matrices smaller than a chunk and larger than a tile. Tests that launch are (label
// gpu).
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/parts/packed_operand.cuh"

namespace gemm {
namespace {

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

// Distinct within a tile, as far as the bits of an element permit.
template <typename T>
T value(std::int64_t i) {
  return static_cast<T>(static_cast<std::uint32_t>(i) * 2654435761U >> (32 - 8 * sizeof(T)));
}

// `shift` elements into an allocation that ends with the matrix.
template <typename T>
Operand<T> stored(std::int64_t x_size, std::int64_t k_size, bool k_major, int shift,
                  simt::DeviceArray<T>& memory) {
  std::vector<T> values(x_size * k_size);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value<T>(i);
  memory = simt::device_array<T>(shift + x_size * k_size);
  check(cudaMemcpy(memory.get() + shift, values.data(), values.size() * sizeof(T),
                   cudaMemcpyDefault));
  return {memory.get() + shift, x_size, k_size, k_major};
}

// The number of wrong elements.
template <typename T>
std::int64_t wrong(const Operand<T>& operand, const PackedOperand<T>& packed) {
  const std::int64_t rows = packed.k_major ? operand.x_size : operand.k_size;
  const std::int64_t columns = packed.k_major ? operand.k_size : operand.x_size;
  std::vector<T> found(rows * packed.pitch);
  // An operand read in place may end before its last row is full.
  check(cudaMemcpy(found.data(), packed.matrix, ((rows - 1) * packed.pitch + columns) * sizeof(T),
                   cudaMemcpyDefault));
  std::int64_t count = 0;
  for (std::int64_t x = 0; x < operand.x_size; ++x)
    for (std::int64_t k = 0; k < operand.k_size; ++k)
      count += found[packed.k_major ? x * packed.pitch + k : k * packed.pitch + x] !=
               value<T>(operand.k_major ? x * operand.k_size + k : k * operand.x_size + x);
  return count;
}

template <typename T>
bool begins_at_16_bytes(const PackedOperand<T>& packed) {
  return reinterpret_cast<std::uintptr_t>(packed.matrix) % 16 == 0 &&
         packed.pitch * sizeof(T) % 16 == 0;
}

constexpr std::int64_t kShapes[][2] = {{1, 1},     {1, 17},    {19, 1},     {5, 257},
                                       {257, 5},   {64, 64},   {100, 200},  {127, 129},
                                       {128, 256}, {130, 257}, {300, 1001}, {512, 1040}};

template <typename T>
void expect_packed() {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) GTEST_SKIP() << "no GPU";
  for (const auto& [x_size, k_size] : kShapes)
    for (const bool k_major : {false, true})
      for (const int shift : {0, 1, 3}) {
        const std::string where = std::to_string(x_size) + "x" + std::to_string(k_size) +
                                  (k_major ? " K-major" : "") + " + " + std::to_string(shift);
        simt::DeviceArray<T> memory, other_memory;
        const Operand<T> one = stored(x_size, k_size, k_major, shift, memory),
                         other = stored(k_size, x_size, !k_major, 0, other_memory);
        const PackedOperand<T> transposed = packed(one, true), same = packed(one, one.k_major),
                               second = packed(other, true);
        for (const Launch& launch : {pack(transposed, second), pack(same)})
          if (launch) launch(nullptr);
        check(cudaGetLastError());
        EXPECT_TRUE(transposed.k_major && second.k_major && same.k_major == k_major) << where;
        EXPECT_TRUE(begins_at_16_bytes(transposed) && begins_at_16_bytes(same)) << where;
        EXPECT_EQ(wrong(one, transposed), 0) << where;
        EXPECT_EQ(wrong(one, same), 0) << where;
        EXPECT_EQ(wrong(other, second), 0) << where;
      }
}

TEST(PackedOperand, FourBytesOnTheGpu) { expect_packed<std::uint32_t>(); }
TEST(PackedOperand, TwoBytesOnTheGpu) { expect_packed<std::uint16_t>(); }
TEST(PackedOperand, OneByteOnTheGpu) { expect_packed<std::uint8_t>(); }

// All k of phase 0, then of phase 1, and zeros in the places that are left.
template <typename T>
void expect_packed_in_order() {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) GTEST_SKIP() << "no GPU";
  for (const auto& [x_size, k_size] : kShapes)
    for (const int phases : {2, 8}) {
      const int each = static_cast<int>(ceil_div(ceil_div(k_size, phases), 32) * 32);
      simt::DeviceArray<T> memory;
      const Operand<T> one = stored(x_size, k_size, true, 0, memory);
      const PackedOperand<T> ordered = packed(one, true, {phases, phases * each});
      pack(ordered)(nullptr);
      ASSERT_EQ(ordered.pitch, phases * each);
      std::vector<T> found(x_size * ordered.pitch);
      check(cudaMemcpy(found.data(), ordered.matrix, found.size() * sizeof(T), cudaMemcpyDefault));
      std::int64_t wrong = 0;
      for (std::int64_t x = 0; x < x_size; ++x)
        for (std::int64_t place = 0; place < ordered.pitch; ++place) {
          const std::int64_t k = place % each * phases + place / each;
          wrong += found[x * ordered.pitch + place] != (k < k_size ? value<T>(x * k_size + k) : 0);
        }
      EXPECT_EQ(wrong, 0) << x_size << "x" << k_size << " in " << phases;
    }
}
TEST(PackedOperand, FourBytesInOrderOnTheGpu) { expect_packed_in_order<std::uint32_t>(); }
TEST(PackedOperand, TwoBytesInOrderOnTheGpu) { expect_packed_in_order<std::uint16_t>(); }

TEST(PackedOperand, CountsTheRowsBetweenAlignedOnes) {
  const auto phases = [](std::int64_t columns) {
    return row_phases(Operand<std::uint16_t>{nullptr, columns, 9, false});
  };
  EXPECT_EQ(phases(1946), 4);
  EXPECT_EQ(phases(7397), 8);
  EXPECT_EQ(phases(300), 2);
  EXPECT_EQ(phases(304), 1);
  EXPECT_EQ(row_phases(Operand<float>{nullptr, 574, 9, false}), 2);
}

TEST(PackedOperand, RowsBeginAtCacheLinesWhereThatTakesLittleMemory) {
  EXPECT_EQ(packed_pitch<std::uint16_t>(2695), 2752) << "43 lines";
  EXPECT_EQ(packed_pitch<std::uint16_t>(2688), 2688) << "42 lines";
  EXPECT_EQ(packed_pitch<std::uint16_t>(57), 64);
  EXPECT_EQ(packed_pitch<std::uint16_t>(56), 56) << "a line would take a seventh more";
  EXPECT_EQ(packed_pitch<std::uint8_t>(21), 32) << "16 bytes twice";
  EXPECT_EQ(packed_pitch<float>(257), 288);
}

TEST(PackedOperand, UnalignedRowsTouchMoreLines) {
  EXPECT_EQ(lines_touched(4096), 1);
  EXPECT_EQ(lines_touched(4096 + 64), 1.5) << "every other row begins within a line";
  EXPECT_EQ(lines_touched(4096 + 32), 1.75) << "three of four";
  EXPECT_DOUBLE_EQ(lines_touched(4096 + 16), 1.875 + 0.3) << "every other row within a sector";
  const Operand<std::uint16_t> one{nullptr, 1000, 2696, true};
  EXPECT_EQ(lines_touched(one, true), lines_touched(5392)) << "read in place";
  EXPECT_EQ(lines_touched(one, false), 1) << "packed";
  EXPECT_EQ(lines_touched(Operand<std::uint16_t>{nullptr, 1000, 2695, true}, true), 1) << "packed";
}

TEST(PackedOperand, AlignedOperandsAreReadInPlace) {
  alignas(16) static const std::uint16_t matrix[16 * 8] = {};
  const Operand<std::uint16_t> along{matrix, 16, 8, true}, across{matrix, 16, 8, false};
  EXPECT_EQ(packed(along, true).matrix, matrix);
  EXPECT_EQ(packed(along, true).pitch, 8);
  EXPECT_EQ(packed(across, across.k_major).matrix, matrix);
  EXPECT_EQ(packed(across, across.k_major).pitch, 16);
  EXPECT_EQ(pack(packed(along, true), packed(across, across.k_major)), nullptr);
  EXPECT_EQ(packing_bytes(along, true), 0);
  EXPECT_EQ(packing_bytes(across, false), 0);
  EXPECT_EQ(packing_bytes(across, true), 2.0 * sizeof(matrix));
  EXPECT_EQ(packing_bytes(Operand<std::uint16_t>{matrix + 1, 8, 8, true}, true), sizeof(matrix));
  EXPECT_EQ(packing_bytes(Operand<std::uint16_t>{matrix, 8, 9, true}, true), 2.0 * 2 * 8 * 9);
}

}  // namespace
}  // namespace gemm
