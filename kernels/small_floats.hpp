// E4M3 and BF16 numbers on the CPU, where no kernel may include CUDA's headers.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace gemm {

// A sign, 4 bits of exponent and 3 of fraction; no infinity, and a single NaN.
struct E4m3 {
  std::uint8_t bits = 0;

  E4m3() = default;
  // To the nearest, ties to even; what is larger than the largest number, 448, becomes that.
  explicit E4m3(float value) {
    const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
    const float size = std::fabs(value);
    if (!(size < 464)) {
      bits = std::isnan(value) ? 0x7f : sign | 0x7e;
      return;
    }
    const int exponent = size < 0x1p-6F ? -6 : std::ilogb(size);
    // Subnormal numbers have the smallest exponent, too. Rounding up may carry into the exponent.
    const int eighths = static_cast<int>(std::nearbyint(std::ldexp(size, 3 - exponent)));
    bits = static_cast<std::uint8_t>(sign | (8 * (exponent + 6) + eighths));
  }
  explicit operator float() const {
    if ((bits & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
    const std::uint32_t sign = (bits & 0x80U) << 24, size = (bits & 0x7fU) << 20;
    return std::bit_cast<float>(sign | size) * 0x1p120F;  // the exponent's bias is 7, not 127
  }
};

// The upper half of an FP32 number.
struct Bf16 {
  std::uint16_t bits = 0;

  Bf16() = default;
  // To the nearest, ties to even.
  explicit Bf16(float value) {
    const auto whole = std::bit_cast<std::uint32_t>(value);
    bits = static_cast<std::uint16_t>(
        std::isnan(value) ? 0x7fff : (whole + 0x7fff + (whole >> 16 & 1)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

}  // namespace gemm
