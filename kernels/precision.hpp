// The table of precisions: element types, the arithmetic unit that sets the roof, and the error
// bounds of a correct result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace gemm {

// tf32x3: FP32 emulated on TF32 tensor cores. Each operand is the sum of two TF32 numbers, and
// three of the four products of these are added.
//
// e4m3, e5m2: FP8 operands, both of the same type. The tensor cores of Hopper and Ada accumulate
// FP8 in 22 bits, 13 of them fraction. So their accumulators are added to FP32 accumulators at
// least every kPromotion products (promotion); the "fast" precisions accumulate over the whole of k
// (FAST_ACCUM in cuBLASLt).
//
// e4m3block: as e4m3, and each 128 elements along k of a row of A, and each 128 x 128 of B, have an
// FP32 factor. The scales of A are ceil(k / 128) x m, row-major. Those of B are ceil(n / 128) rows
// of ceil(k / 128), with a distance of rows that is rounded up to 4 (scales_of_b_stride).
//
// f64emulated: FP64 as fixed-point numbers of 55 bits and a sign, scaled by row and column, in
// seven slices for INT8 tensor cores: 28 products of slices. Errors are of the largest element of a
// row.
enum class Precision : std::int16_t {
  f32,
  tf32,
  tf32x3,
  bf16,
  f16,
  e4m3,
  e4m3fast,
  e5m2,
  e5m2fast,
  f64,
  f64emulated,
  s32,
  s8,
  e4m3block
};

enum class ElementType { f32, bf16, f16, e4m3, e5m2, f64, s32, s8 };

inline constexpr std::int64_t kPromotion = 128;

// The unit whose peak is the compute roof: the fastest that computes the precision. FP64 is exact
// on tensor cores too, on devices that have them for it.
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
  int unit_products;  // of the unit, for each product of the problem
  std::string_view unit_name;

  // Unit round-offs, as relative errors; all zero where nothing is rounded. Tensor cores align and
  // truncate when they accumulate, so a whole ulp is allowed; TF32 operands may be truncated to 10
  // bits as well as rounded. 3xTF32 is allowed the accumulation error of FP32, which a kernel meets
  // only if its tensor cores accumulate a few products at a time; the two parts of an operand may
  // be off by 2^-22 of it, and the omitted product is 2^-21 of the whole.
  double accumulate_error;  // of one addition
  double input_error;       // of one product, from rounding both operands inside the kernel
  double output_error;      // of storing the result
  double output_smallest;   // half the smallest subnormal of the output: absolute error near zero

  // Where the accumulators of tensor cores are coarser than the final ones: the truncation error of
  // one addition there, and how many products are accumulated before promotion.
  double coarse_error = 0;
  std::int64_t coarse_length = 1;

  // Products of the longest dot product that cannot overflow the output. Operands of s32 are -64 to
  // 63, those of s8 take every value.
  std::int64_t longest_sum = kNoLimit;

  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
};

inline constexpr std::array<PrecisionTraits, 14> kPrecisions = {{
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
    // The reference is an FP64 product too: its own error is allowed in addition to the kernel's.
    {Precision::f64, "f64", ElementType::f64, ElementType::f64, 8, 8, Unit::fp64, 1, "FP64",
     0x1p-52, 0, 0, 0},
    {Precision::f64emulated, "f64emulated", ElementType::f64, ElementType::f64, 8, 8,
     Unit::int8_tensor, 28, "INT8 tensor core / 28", 0x1p-52, 0x1p-49, 0, 0},
    {Precision::s32, "s32", ElementType::s32, ElementType::s32, 4, 4, Unit::int32_imad, 1,
     "INT32 IMAD", 0, 0, 0, 0, 0, 1, (std::int64_t{1} << 31) / (64 * 64) - 1},
    {Precision::s8, "s8", ElementType::s8, ElementType::s32, 1, 4, Unit::int8_tensor, 1,
     "INT8 tensor core", 0, 0, 0, 0, 0, 1, (std::int64_t{1} << 31) / (128 * 128) - 1},
    {Precision::e4m3block, "e4m3block", ElementType::e4m3, ElementType::bf16, 1, 2,
     Unit::fp8_tensor, 1, "FP8 tensor core", 0x1p-24, 0, 0x1p-8, 0, 0x1p-13, kPromotion},
}};

constexpr const PrecisionTraits& traits_of(Precision precision) {
  return kPrecisions[static_cast<std::size_t>(precision)];
}

// The name of the precision whose products the unit computes one for one.
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

// Whether FP8 accumulators are promoted to FP32 every kPromotion products.
constexpr bool promotes(Precision precision) {
  return precision == Precision::e4m3 || precision == Precision::e5m2 ||
         precision == Precision::e4m3block;
}

// Elements along k, and for B also along n, that share a factor (Precision::e4m3block).
inline constexpr std::int64_t kScaleBlock = 128;
constexpr bool has_scales(Precision precision) { return precision == Precision::e4m3block; }
constexpr std::int64_t scales_of_b_stride(std::int64_t k) {
  return ((k + kScaleBlock - 1) / kScaleBlock + 3) / 4 * 4;
}

}  // namespace gemm
