// One table of precisions: element types, the arithmetic unit that sets the roof, and how exact a
// correct result must be. Everything else asks this table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace gemm {

// tf32x3: products of FP32 numbers on tensor cores that compute TF32. Each factor is the sum of two
// TF32 numbers, and three of the four products of these are added.
//
// e4m3, e5m2: FP8 operands, products of one and the same type. The tensor cores of Hopper and Ada
// add them up in 22 bits, 13 of them a fraction, so that their sums go into FP32 at least every
// kPromotion products; the "fast" ones leave them there for the whole of k (FAST_ACCUM in
// cublasLt).
enum class Precision { f32, tf32, tf32x3, bf16, f16, e4m3, e4m3fast, e5m2, e5m2fast, f64, s32, s8 };

enum class ElementType { f32, bf16, f16, e4m3, e5m2, f64, s32, s8 };

inline constexpr std::int64_t kPromotion = 128;

// The unit whose peak is the compute roof: the fastest that computes the precision. FP64 is exact
// on tensor cores too, which some devices have for it.
enum class Unit {
  fp32_fma,
  tf32_tensor,
  bf16_tensor,
  fp16_tensor,
  fp8_tensor,
  fp64,
  int32_imad,
  int8_tensor
};

struct PrecisionTraits {
  Precision precision;
  std::string_view name;  // as in benchmark names and on the command line
  ElementType input, output;
  int input_bytes, output_bytes;
  Unit unit;
  int unit_products;  // that the unit computes for one of the problem's
  std::string_view unit_name;

  // Unit round-offs, as relative errors; all zero where nothing is rounded. Tensor cores align and
  // truncate their sums, so they are granted a whole ulp; TF32 operands may be truncated to 10 bits
  // as well as rounded. For 3xTF32 sums count as FP32's do, which asks of a kernel that it lets the
  // tensor cores add up little at a time; the two parts of a factor may be off by 2^-22 of it, and
  // the product that is left out is 2^-21 of the whole.
  double accumulate_error;  // of one addition
  double input_error;       // of one product, from rounding both operands inside the kernel
  double output_error;      // of storing the result
  double output_smallest;   // half the smallest subnormal of the output: absolute error near zero

  // Where a tensor core's own sums are coarser than those that they are added up in: its error, of
  // what it cuts off one addition, and how many products it adds up before that.
  double coarse_error = 0;
  std::int64_t coarse_length = 1;

  // Products of the longest sum that cannot leave the output. Operands of s32 are -64 to 63, those
  // of s8 all that there are.
  std::int64_t longest_sum = kNoLimit;

  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
};

inline constexpr std::array<PrecisionTraits, 12> kPrecisions = {{
    {Precision::f32, "f32", ElementType::f32, ElementType::f32, 4, 4, Unit::fp32_fma, 1, "FP32 FMA",
     0x1p-24, 0, 0, 0},
    {Precision::tf32, "tf32", ElementType::f32, ElementType::f32, 4, 4, Unit::tf32_tensor, 1,
     "TF32 tensor core", 0x1p-23, 0x1p-9, 0, 0},
    {Precision::tf32x3, "tf32x3", ElementType::f32, ElementType::f32, 4, 4, Unit::tf32_tensor, 3,
     "TF32 tensor core / 3", 0x1p-24, 0x1p-20, 0, 0},
    {Precision::bf16, "bf16", ElementType::bf16, ElementType::bf16, 2, 2, Unit::bf16_tensor, 1,
     "BF16 tensor core", 0x1p-23, 0, 0x1p-8, 0},
    {Precision::f16, "f16", ElementType::f16, ElementType::f16, 2, 2, Unit::fp16_tensor, 1,
     "FP16 tensor core", 0x1p-23, 0, 0x1p-11, 0x1p-25},
    {Precision::e4m3, "e4m3", ElementType::e4m3, ElementType::bf16, 1, 2, Unit::fp8_tensor, 1,
     "FP8 tensor core", 0x1p-24, 0, 0x1p-8, 0, 0x1p-13, kPromotion},
    {Precision::e4m3fast, "e4m3fast", ElementType::e4m3, ElementType::bf16, 1, 2, Unit::fp8_tensor,
     1, "FP8 tensor core", 0x1p-24, 0, 0x1p-8, 0, 0x1p-13, PrecisionTraits::kNoLimit},
    {Precision::e5m2, "e5m2", ElementType::e5m2, ElementType::bf16, 1, 2, Unit::fp8_tensor, 1,
     "FP8 tensor core", 0x1p-24, 0, 0x1p-8, 0, 0x1p-13, kPromotion},
    {Precision::e5m2fast, "e5m2fast", ElementType::e5m2, ElementType::bf16, 1, 2, Unit::fp8_tensor,
     1, "FP8 tensor core", 0x1p-24, 0, 0x1p-8, 0, 0x1p-13, PrecisionTraits::kNoLimit},
    // The reference is an FP64 product too: its own errors are granted beside the kernel's.
    {Precision::f64, "f64", ElementType::f64, ElementType::f64, 8, 8, Unit::fp64, 1, "FP64",
     0x1p-52, 0, 0, 0},
    {Precision::s32, "s32", ElementType::s32, ElementType::s32, 4, 4, Unit::int32_imad, 1,
     "INT32 IMAD", 0, 0, 0, 0, 0, 1, (std::int64_t{1} << 31) / (64 * 64) - 1},
    {Precision::s8, "s8", ElementType::s8, ElementType::s32, 1, 4, Unit::int8_tensor, 1,
     "INT8 tensor core", 0, 0, 0, 0, 0, 1, (std::int64_t{1} << 31) / (128 * 128) - 1},
}};

constexpr const PrecisionTraits& traits_of(Precision precision) {
  return kPrecisions[static_cast<std::size_t>(precision)];
}

// By the name of the precision for which its unit computes one product for one.
constexpr std::string_view arithmetic_of(Precision precision) {
  for (const PrecisionTraits& traits : kPrecisions)
    if (traits.unit == traits_of(precision).unit && traits.unit_products == 1) return traits.name;
  return {};
}

constexpr std::optional<Precision> precision_named(std::string_view name) {
  for (const PrecisionTraits& traits : kPrecisions)
    if (traits.name == name) return traits.precision;
  return std::nullopt;
}

// Whether the tensor cores' sums, of 14 bits for FP8, go to FP32 every 128 products.
constexpr bool promotes(Precision precision) {
  return precision == Precision::e4m3 || precision == Precision::e5m2;
}

}  // namespace gemm
