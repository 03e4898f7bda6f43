// Split FP32 numbers against the bounds that split.cuh states.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <ios>
#include <limits>
#include <random>

#include "kernels/parts/split.cuh"

namespace gemm::tensor {
namespace {

bool is_tf32(float x) { return (std::bit_cast<std::uint32_t>(x) & ~kOfTf32) == 0; }

// Relative error of the sum of both parts.
double relative_error(float x) {
  const auto [large, small] = split(x);
  return std::abs(static_cast<double>(large) + small - x) / std::abs(static_cast<double>(x));
}

TEST(Split, PartsAreTf32AndAddUpToTheNumber) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> mantissa(1, 2);
  double worst = 0;
  for (int exponent = -102; exponent <= 127; ++exponent)
    for (int i = 0; i < 200; ++i) {
      const float x = std::ldexp(i % 2 == 0 ? mantissa(random) : -mantissa(random), exponent);
      const auto [large, small] = split(x);
      EXPECT_TRUE(is_tf32(large) && is_tf32(small)) << x;
      EXPECT_LE(std::abs(small), std::ldexp(1.0F, exponent - 11 + (exponent == 127 ? 1 : 0))) << x;
      worst = std::max(worst, relative_error(x));
    }
  EXPECT_LE(worst, 0x1p-23);
  EXPECT_GT(worst, 0);  // else the test would be vacuous: two parts have 22 bits and a sign
}

TEST(Split, IsExactForIntegersOf23Bits) {
  for (int x = 1; x < 1 << 23; x += 997) EXPECT_EQ(relative_error(static_cast<float>(x)), 0) << x;
  EXPECT_EQ(relative_error(0x1p23F - 1), 0);
  EXPECT_EQ(split(0).large, 0);
  EXPECT_EQ(split(0).small, 0);
}

TEST(Split, NothingFiniteBecomesInfinite) {
  for (const float x : {std::numeric_limits<float>::max(), 0x1.ffep127F, 0x1.ffdp127F}) {
    EXPECT_TRUE(std::isfinite(split(x).large)) << x;
    EXPECT_LE(relative_error(x), 0x1p-22) << x;
    EXPECT_EQ(split(-x).large, -split(x).large);
  }
  EXPECT_LE(std::abs(split(1e-40F).small), 0x1p-126F);
}

TEST(Split, WhatIsNotFiniteIsAllInTheLargePart) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(split(infinity).large, infinity);
  EXPECT_EQ(split(-infinity).large, -infinity);
  EXPECT_EQ(split(infinity).small, 0);
  // A NaN whose bits TF32 drops would become infinity.
  for (const std::uint32_t bits : {0x7fc00000U, 0x7f800001U, 0xff800fffU, 0x7fffffffU}) {
    const auto large = std::bit_cast<std::uint32_t>(split(std::bit_cast<float>(bits)).large);
    EXPECT_TRUE(std::isnan(std::bit_cast<float>(large & kOfTf32))) << std::hex << bits;
  }
}

}  // namespace
}  // namespace gemm::tensor
