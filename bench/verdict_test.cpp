#include "bench/verdict.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace gemm::bench {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const Problem kProblem{16, 16, 64, Precision::f32};

TEST(Judge, WhatIsNotFiniteNeverPasses) {
  const Bound bound = bound_for(kProblem);
  for (const double value : {kNaN, kInfinity, -kInfinity})
    EXPECT_FALSE(judge(value, 1, 4, bound).passed);
  EXPECT_FALSE(judge(1, kNaN, 4, bound).passed);
  EXPECT_FALSE(judge(1, 1.5, kNaN, bound).passed);
}

TEST(Judge, PassesUpToTheBoundAndNotBeyond) {
  const Bound bound{.of_magnitude = 0.5, .of_expected = 0, .absolute = 0};
  EXPECT_TRUE(judge(3, 1, 4, bound).passed);
  EXPECT_FALSE(judge(3.001, 1, 4, bound).passed);
  EXPECT_FALSE(judge(-1.001, 1, 4, bound).passed);
  EXPECT_DOUBLE_EQ(judge(2, 1, 4, bound).of_bound, 0.5);
}

TEST(Bound, IsTheWorstCaseForSmallKAndGrowsWithItsRootBeyond) {
  const auto growth = [](std::int64_t k) {
    return bound_for({1, 1, k, Precision::f32}).of_magnitude * 0x1p24;
  };
  EXPECT_DOUBLE_EQ(growth(1), 3);
  EXPECT_DOUBLE_EQ(growth(16), 18);
  EXPECT_DOUBLE_EQ(growth(4096), 8 * 64);
  EXPECT_GT(growth(8192), growth(4096));
}

// The reason for the root: with uniform operands at k = 8192, a kernel that forgets one product of
// typical size (1/4) must not pass. The magnitude is then about 8192 / 4.
TEST(Bound, FindsOneForgottenProductAtLargeK) {
  const Bound bound = bound_for({1, 1, 8192, Precision::f32});
  EXPECT_FALSE(judge(10.0 + 0.25, 10.0, 2048, bound).passed);
  EXPECT_TRUE(judge(10.0 + 1e-4, 10.0, 2048, bound).passed);
}

TEST(Bound, AllowsForTheRoundingOfOperandsAndOutput) {
  EXPECT_EQ(bound_for({1, 1, 1, Precision::bf16})(1, 0), 0x1p-8);
  EXPECT_GT(bound_for({1, 1, 1, Precision::tf32})(1, 1), 0x1p-9);
  EXPECT_LT(bound_for({1, 1, 1, Precision::tf32})(1, 1), 0x1p-8);
  // 3xTF32 is as exact as FP32 but for what its splitting leaves out.
  for (const std::int64_t k : {1, 64, 8192})
    EXPECT_LE(bound_for({1, 1, k, Precision::tf32x3})(1, 1),
              bound_for({1, 1, k, Precision::f32})(1, 1) + 0x1p-19)
        << k;
  EXPECT_GT(bound_for({1, 1, 1, Precision::f16})(0, 0), 0);  // subnormal results
}

TEST(Verdict, CountsAndNamesTheFirstWrongElement) {
  const Bound bound = bound_for(kProblem);
  Verdict verdict;
  for (std::int64_t i = 0; i < 256; ++i) verdict.add(i, i == 17 || i == 40 ? 9 : 1, 1, 4, bound);
  EXPECT_FALSE(verdict.passed());
  EXPECT_EQ(verdict.wrong, 2);
  EXPECT_EQ(verdict.first_wrong, 17);
  const std::string text = complaint(kProblem, verdict).value();
  EXPECT_NE(text.find("c[1,1] = 9, expected 1 +-"), std::string::npos) << text;
  EXPECT_NE(text.find("2 of 256"), std::string::npos) << text;
}

TEST(Verdict, NaNStaysTheLargestError) {
  const Bound bound = bound_for(kProblem);
  Verdict verdict;
  for (const double value : {1.0, kNaN, 2.0}) verdict.add(0, value, 1, 4, bound);
  EXPECT_EQ(verdict.wrong, 2);
  EXPECT_TRUE(std::isnan(verdict.max_error));
  EXPECT_TRUE(std::isnan(verdict.max_of_bound));
}

TEST(Verdict, MergesInAnyOrder) {
  const Bound bound = bound_for(kProblem);
  Verdict left, right;
  left.add(9, 5, 1, 4, bound);
  right.add(3, 7, 1, 4, bound);
  Verdict one = left, other = right;
  one.merge(right);
  other.merge(left);
  EXPECT_EQ(one.first_wrong, 3);
  EXPECT_EQ(other.first_wrong, 3);
  EXPECT_EQ(one.value, 7);
  EXPECT_EQ(one.max_error, 6);
  EXPECT_EQ(other.max_error, 6);
}

TEST(Verdict, SaysWhereSomethingWasWrittenOutsideC) {
  Verdict verdict;
  EXPECT_TRUE(verdict.passed());
  EXPECT_EQ(complaint(kProblem, verdict), std::nullopt);
  verdict.outside_bytes = 4;
  EXPECT_FALSE(verdict.passed());
  EXPECT_EQ(complaint(kProblem, verdict), "wrote outside C: byte 4 past its end");
  verdict.outside_bytes = -8;
  EXPECT_EQ(complaint(kProblem, verdict), "wrote outside C: byte 8 before its beginning");
}

}  // namespace
}  // namespace gemm::bench
