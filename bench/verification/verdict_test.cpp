#include "bench/verification/verdict.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/verification/fill.hpp"

namespace gemm::bench {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const Problem kProblem{16, 16, 64, Precision::f32};

TEST(Judge, PassesUpToTheBoundAndNeverWhatIsNotFinite) {
  const Bound half{.of_magnitude = 0.5, .of_expected = 0, .absolute = 0};
  const struct {
    double value, expected, magnitude;
    bool passes;
  } cases[] = {{3, 1, 4, true},     {3.001, 1, 4, false},     {-1.001, 1, 4, false},
               {kNaN, 1, 4, false}, {kInfinity, 1, 4, false}, {-kInfinity, 1, 4, false},
               {1, kNaN, 4, false}, {1, 1.5, kNaN, false}};
  for (const auto& [value, expected, magnitude, passes] : cases)
    EXPECT_EQ(judge(value, expected, magnitude, half).passed, passes) << value;
  EXPECT_DOUBLE_EQ(judge(2, 1, 4, half).of_bound, 0.5);
}

TEST(Bound, IsTheWorstCaseForSmallKAndThatOfAWalkBeyond) {
  const auto growth = [](std::int64_t k, Precision precision) {
    const double round_off = traits_of(precision).accumulate_error;
    return bound_for({1, 1, k, precision}).of_magnitude / round_off;
  };
  EXPECT_DOUBLE_EQ(growth(1, Precision::f32), 3);
  EXPECT_DOUBLE_EQ(growth(16, Precision::f32), 16);
  EXPECT_DOUBLE_EQ(growth(1 << 20, Precision::f32), 16);
  EXPECT_DOUBLE_EQ(growth(16, Precision::bf16), 18);
  EXPECT_DOUBLE_EQ(growth(1 << 20, Precision::bf16), 16 + 512);
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

// --- FP8, with the sums of Hopper's tensor cores
// --------------------------------------------------

constexpr std::int64_t kStep = 32;  // products of one instruction

double cut(double value, int exponent) {
  return std::ldexp(std::trunc(std::ldexp(value, 13 - exponent)), exponent - 13);
}

// Terms are cut off 13 bits below the exponent of the largest, and their sum 13 bits below its own
// (DeepSeek-V3's report, section 3.5.2).
double coarse_sum(double sum, const double* products, std::int64_t count) {
  int largest = sum == 0 ? -1000 : std::ilogb(sum);
  for (std::int64_t i = 0; i < count; ++i)
    if (products[i] != 0) largest = std::max(largest, std::ilogb(products[i]));
  double total = cut(sum, largest);
  for (std::int64_t i = 0; i < count; ++i) total += cut(products[i], largest);
  return total == 0 ? 0 : cut(total, std::ilogb(total));
}

// With the tensor core's sums going into FP32 every so many products.
double summed_up(const std::vector<double>& products, std::int64_t promotion) {
  float sum = 0;
  double part = 0;
  const auto k = static_cast<std::int64_t>(products.size());
  for (std::int64_t l = 0; l < k; l += kStep) {
    if (l % promotion == 0) {
      sum += static_cast<float>(part);
      part = 0;
    }
    part = coarse_sum(part, products.data() + l, std::min(kStep, k - l));
  }
  return sum + static_cast<float>(part);
}

// To the nearest number of E4M3.
double e4m3(double value) {
  const int exponent = std::max(std::ilogb(value == 0 ? 1 : value), -6) - 3;
  return std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
}

struct Element {
  std::vector<double> products;
  double expected = 0, magnitude = 0;

  Element(Fill fill, std::int64_t k, std::uint64_t seed) {
    for (std::int64_t l = 0; l < k; ++l) {
      products.push_back(e4m3(fill_value(fill, 2 * seed, l)) *
                         e4m3(fill_value(fill, 2 * seed + 1, l)));
      expected += products.back();
      magnitude += std::fabs(products.back());
    }
  }
  Judgement judged(double value, Precision precision) const {
    const auto k = static_cast<std::int64_t>(products.size());
    return judge(value, expected, magnitude, bound_for({1, 1, k, precision}));
  }
};

// Bits of the fraction kept, cut off or to the nearest.
float kept(float value, int bits, bool nearest) {
  if (value == 0) return 0;
  const int exponent = std::ilogb(value) - bits;
  const double scaled = std::ldexp(static_cast<double>(value), -exponent);
  return static_cast<float>(
      std::ldexp(nearest ? std::nearbyint(scaled) : std::trunc(scaled), exponent));
}

// The verdict on 16 x 16 elements, summed in order of k in FP32 over operands with so many bits.
Verdict of_rounded(Precision precision, Fill fill, std::int64_t k, int bits, bool nearest) {
  constexpr std::int64_t kSize = 16;
  const Problem p{kSize, kSize, k, precision};
  const Bound bound = bound_for(p);
  const auto matrix = [&](std::uint64_t seed) {
    std::vector<std::pair<float, float>> both;  // as given, as rounded
    for (std::int64_t i = 0; i < kSize * k; ++i) {
      const float value = fill_value(fill, seed, static_cast<std::uint64_t>(i));
      both.emplace_back(value, kept(value, bits, nearest));
    }
    return both;
  };
  const auto a = matrix(2 * static_cast<std::uint64_t>(k)),
             b = matrix(2 * static_cast<std::uint64_t>(k) + 1);
  Verdict verdict;
  for (std::int64_t i = 0; i < kSize; ++i)
    for (std::int64_t j = 0; j < kSize; ++j) {
      double exact = 0, size = 0;
      float sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const auto [left, left_kept] = a[static_cast<std::size_t>(i * k + l)];
        const auto [right, right_kept] = b[static_cast<std::size_t>(j * k + l)];
        const double product = static_cast<double>(left) * right;
        exact += product;
        size += std::fabs(product);
        sum = std::fma(left_kept, right_kept, sum);
      }
      verdict.add(i * kSize + j, sum, exact, size, bound);
    }
  return verdict;
}

// At any k, where the bounds of elements pass fewer bits from k = 4096 on.
TEST(Rms, FindsArithmeticWithFewerBits) {
  constexpr int kTf32 = 10, kBf16 = 7, kAll = 23;
  for (const std::int64_t k : {64, 1024, 4096, 16384})
    for (const Fill fill : {Fill::uniform, Fill::normal}) {
      SCOPED_TRACE(k);
      EXPECT_LT(*of_rounded(Precision::f32, fill, k, kAll, true).rms_of_limit(), 0.25);
      EXPECT_GT(*of_rounded(Precision::f32, fill, k, kTf32, true).rms_of_limit(), 4);
      EXPECT_GT(*of_rounded(Precision::tf32x3, fill, k, kTf32, true).rms_of_limit(), 1.5);
      EXPECT_LT(*of_rounded(Precision::tf32, fill, k, kTf32, false).rms_of_limit(), 0.9);
      EXPECT_GT(*of_rounded(Precision::tf32, fill, k, kBf16, true).rms_of_limit(), 1.1);
    }
  const Verdict verdict = of_rounded(Precision::tf32, Fill::uniform, 16384, kBf16, true);
  EXPECT_EQ(verdict.wrong, 0);
  EXPECT_FALSE(verdict.passed());
  EXPECT_TRUE(
      complaint({16, 16, 16384, Precision::tf32}, verdict)->find("does it round to fewer bits?") !=
      std::string::npos);
}

TEST(Rms, HasNoLimitForFewElementsShortSumsAndExactOnes) {
  for (const Problem& p : {Problem{1, 1, 100'000, Precision::f32},
                           {16, 16, 8, Precision::f32},
                           {64, 64, 64, Precision::s8},
                           {64, 64, 64, Precision::s32}})
    EXPECT_EQ(bound_for(p).rms_of_magnitude, 0);
  EXPECT_GT(bound_for(kProblem).rms_of_magnitude, 0);
  Verdict verdict;
  verdict.add(0, kNaN, 1, 1, bound_for(kProblem));
  EXPECT_TRUE(verdict.imprecise());
}

constexpr std::int64_t kNever = std::int64_t{1} << 40;

TEST(BoundOfFp8, LetsTheSumsOfTensorCoresPassWithRoomToSpare) {
  for (const std::int64_t k : {1, 5, 32, 100, 128, 512, 4096, 16384})
    for (const Fill fill : {Fill::uniform, Fill::normal, Fill::integers})
      for (std::uint64_t seed = 0; seed < 100; ++seed) {
        const Element element(fill, k, seed);
        const double promoted = summed_up(element.products, kPromotion),
                     fast = summed_up(element.products, kNever);
        EXPECT_LT(element.judged(promoted, Precision::e4m3).of_bound, 0.25) << k;
        EXPECT_LT(element.judged(fast, Precision::e4m3fast).of_bound, 0.25) << k;
      }
}

// Of a few thousand elements, as every C has, at least one gives it away.
TEST(BoundOfFp8, FindsWhatIsLeftOut) {
  constexpr std::int64_t kLong = 8192;
  int fast_as_promoted = 0, step_of_fast = 0, tile_of_fast = 0, step_of_promoted = 0;
  constexpr int kElements = 2000;
  for (std::uint64_t seed = 0; seed < kElements; ++seed) {
    const Element element(Fill::uniform, kLong, seed);
    const auto without = [&](std::int64_t left_out) {
      double value = element.expected;
      for (std::int64_t l = 0; l < left_out; ++l) value -= element.products[l];
      return value;
    };
    const double fast = summed_up(element.products, kNever);
    fast_as_promoted += !element.judged(fast, Precision::e4m3).passed;
    step_of_fast += !element.judged(without(kStep), Precision::e4m3fast).passed;
    tile_of_fast += !element.judged(without(128), Precision::e4m3fast).passed;
    step_of_promoted += !element.judged(without(kStep), Precision::e4m3).passed;
  }
  EXPECT_GT(fast_as_promoted, 0);
  EXPECT_GT(step_of_fast, kElements / 100);
  EXPECT_GT(tile_of_fast, kElements / 4);
  EXPECT_GT(step_of_promoted, kElements / 2);
}

TEST(BoundOfFp8, FindsOneForgottenProductOfATypicalSizeInAShortSum) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Element element(Fill::uniform, 128, seed);
    const double value = element.expected - std::copysign(0.25, element.expected);
    found += !element.judged(value, Precision::e4m3fast).passed;
  }
  EXPECT_GT(found, 90);
}

TEST(BoundOfFp8, IsTheTighterForSumsThatGoIntoFp32TheLongerTheyAre) {
  const auto ratio = [](std::int64_t k) {
    // As the magnitude of uniform operands, with a result of no size.
    const double magnitude = static_cast<double>(k) / 4;
    return bound_for({1, 1, k, Precision::e4m3fast})(0, magnitude) /
           bound_for({1, 1, k, Precision::e4m3})(0, magnitude);
  };
  EXPECT_EQ(ratio(128), 1);
  EXPECT_GT(ratio(1024), 2);
  EXPECT_GT(ratio(8192), 6);
}

TEST(Verdict, CountsNamesTheFirstWrongElementAndMergesInAnyOrder) {
  const Bound bound = bound_for(kProblem);
  Verdict left, right;
  for (std::int64_t i = 0; i < 128; ++i) left.add(i, i == 17 ? 9 : 1, 1, 4, bound);
  for (std::int64_t i = 128; i < 256; ++i) right.add(i, i == 140 ? 7 : 1, 1, 4, bound);
  Verdict other = right;
  other.merge(left);
  left.merge(right);
  for (const Verdict& verdict : {left, other}) {
    EXPECT_FALSE(verdict.passed());
    EXPECT_EQ(verdict.wrong, 2);
    EXPECT_EQ(verdict.first_wrong, 17);
    EXPECT_EQ(verdict.max_error, 8);
    const std::string text = complaint(kProblem, verdict).value();
    EXPECT_NE(text.find("c[1,1] = 9, expected 1 +-"), std::string::npos) << text;
    EXPECT_NE(text.find("2 of 256"), std::string::npos) << text;
  }
  for (const double value : {kNaN, 2.0}) left.add(0, value, 1, 4, bound);
  EXPECT_TRUE(std::isnan(left.max_error)) << "NaN stays the largest";
  EXPECT_TRUE(std::isnan(left.max_of_bound));
}

TEST(Verdict, SaysWhatIsWrongBesideTheElements) {
  const std::pair<Verdict, std::optional<std::string>> cases[] = {
      {{}, std::nullopt},
      {{.outside_bytes = 4}, "wrote outside C: byte 4 past its end"},
      {{.outside_bytes = -8}, "wrote outside C: byte 8 before its beginning"},
      {{.inputs_changed = true}, "changed A or B, which a kernel must only read"},
      {{.changed_later = true},
       "C was written after the launches had ended: do all of them work on the given stream?"}};
  for (const auto& [verdict, said] : cases) {
    EXPECT_EQ(verdict.passed(), !said);
    EXPECT_EQ(complaint(kProblem, verdict), said);
  }
}

}  // namespace
}  // namespace gemm::bench
