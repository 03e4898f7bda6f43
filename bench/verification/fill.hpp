// Deterministic operand values: element i of a matrix depends on the seed and i alone, so that CPU
// and GPU make the same matrix in any order.
#pragma once

#include <cstdint>
#include <random>
#include <string_view>
#include <type_traits>

namespace gemm::bench {

enum class Fill { uniform, normal, integers, zeros };

// As recorded: figures on zeros or integers are not figures on real data (they draw less power).
constexpr std::string_view name_of(Fill fill) {
  constexpr std::string_view kNames[] = {"uniform[-1,1]", "normal", "integers", "zeros"};
  return kNames[static_cast<int>(fill)];
}

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014), and its bits over a counter.
constexpr std::uint64_t mixed_bits(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  return mixed_bits((seed + 1) * 0x9e3779b97f4a7c15U + index * 0xd1342543de82ef95U);
}

// Of the operating system.
inline std::uint64_t secret_bits() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

// The sum of twelve 16-bit numbers less its mean, over its standard deviation: as good as normal
// within 3.5 deviations, and the same on every machine, since all but the last step is exact.
constexpr float normal_value(std::uint64_t seed, std::uint64_t index) {
  std::int32_t sum = 0;
  for (std::uint64_t part = 0; part < 3; ++part) {
    const std::uint64_t bits = random_bits(seed, 3 * index + part);
    for (int shift = 0; shift < 64; shift += 16)
      sum += static_cast<std::int32_t>((bits >> shift) & 0xffff);
  }
  return static_cast<float>(2 * sum - 12 * 0xffff) *
         0x1p-17F;  // deviation of a part: 2^16/sqrt(12)
}

// uniform: multiples of 2^-23 in [-1, 1); integers: -4..4, exact in every precision but as sums of
// more than a million products in FP32.
constexpr float fill_value(Fill fill, std::uint64_t seed, std::uint64_t index) {
  if (fill == Fill::zeros) return 0;
  if (fill == Fill::normal) return normal_value(seed, index);
  const std::uint64_t bits = random_bits(seed, index);
  if (fill == Fill::integers) return static_cast<float>(static_cast<int>(bits % 9) - 4);
  return static_cast<float>(static_cast<std::int32_t>(bits >> 40) - (1 << 23)) * 0x1p-23F;
}

// An element of a matrix of T. FP64 gets all of its digits, so that it draws the power of real
// data; 32-bit integers are -64 to 63, which keeps long sums of products exact, and 8-bit ones all
// but -128, whose sign cannot change. FP8 rounds to the nearest, ties to even.
template <typename T>
constexpr T fill_element(Fill fill, std::uint64_t seed, std::uint64_t index) {
  if constexpr (std::is_same_v<T, double>) {
    if (fill == Fill::uniform)
      return static_cast<double>(static_cast<std::int64_t>(random_bits(seed, index) >> 10) -
                                 (std::int64_t{1} << 53)) *
             0x1p-53;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    if (fill == Fill::uniform)
      return static_cast<std::int32_t>(random_bits(seed, index) >> 57) - 64;
    if (fill == Fill::normal) {
      const auto value = static_cast<std::int32_t>(16 * normal_value(seed, index));
      return value < -64 ? -64 : value > 63 ? 63 : value;
    }
  } else if constexpr (std::is_same_v<T, std::int8_t>) {
    if (fill == Fill::uniform)
      return static_cast<std::int8_t>(static_cast<int>(random_bits(seed, index) % 255) - 127);
    if (fill == Fill::normal) {
      const auto value = static_cast<std::int32_t>(32 * normal_value(seed, index));
      return static_cast<std::int8_t>(value < -127 ? -127 : value > 127 ? 127 : value);
    }
  }
  return static_cast<T>(fill_value(fill, seed, index));
}

// Signs of the rows of A and of the columns of B. With them every element of the operands may
// change while the exact product is the old one with its own signs: one FP64 reference serves all.
struct Signs {
  std::uint64_t of_rows = 0, of_columns = 0;  // seeds; 0: all are +1

  static constexpr bool flips(std::uint64_t seed, std::int64_t index) {
    return seed != 0 && random_bits(seed, static_cast<std::uint64_t>(index)) >> 63 != 0;
  }
  // Of an element of C.
  constexpr double at(std::int64_t row, std::int64_t column) const {
    return flips(of_rows, row) != flips(of_columns, column) ? -1 : 1;
  }
};

// The contribution of a word at a place to the fingerprint of some memory: a sum, in any order.
constexpr std::uint64_t fingerprint_of(std::uint64_t word, std::int64_t index) {
  return word * (2 * static_cast<std::uint64_t>(index) + 0x9e3779b97f4a7c15U);
}

}  // namespace gemm::bench
