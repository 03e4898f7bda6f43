// Deterministic operand values: element i of a matrix depends on the seed and i alone, so that CPU
// and GPU make the same matrix in any order.
#pragma once

#include <cstdint>
#include <string_view>

namespace gemm::bench {

enum class Fill { uniform, integers, zeros };

// As recorded: figures on zeros or integers are not figures on real data (they draw less power).
constexpr std::string_view name_of(Fill fill) {
  return fill == Fill::uniform ? "uniform[-1,1]" : fill == Fill::integers ? "integers" : "zeros";
}

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014) over a counter.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = (seed + 1) * 0x9e3779b97f4a7c15U + index * 0xd1342543de82ef95U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

// uniform: multiples of 2^-23 in [-1, 1); integers: -4..4, exact in every precision.
constexpr float fill_value(Fill fill, std::uint64_t seed, std::uint64_t index) {
  if (fill == Fill::zeros) return 0;
  const std::uint64_t bits = random_bits(seed, index);
  if (fill == Fill::integers) return static_cast<float>(static_cast<int>(bits % 9) - 4);
  return static_cast<float>(static_cast<std::int32_t>(bits >> 40) - (1 << 23)) * 0x1p-23F;
}

}  // namespace gemm::bench
