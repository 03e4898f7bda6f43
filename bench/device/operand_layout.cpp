#include "bench/device/operand_layout.hpp"

#include "kernels/scales.hpp"

namespace gemm::bench {
namespace {

std::int64_t aligned(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

// Of 128 rows.
std::int64_t last_guard_bytes(const Problem& p) {
  constexpr std::int64_t kMostBytes = 4 << 20;
  return aligned(
      std::clamp(128 * p.n * traits_of(p.precision).output_bytes, kGuardBytes, kMostBytes));
}

}  // namespace

OperandLayout::OperandLayout(const Problem& p) {
  const PrecisionTraits& traits = traits_of(p.precision);
  a_bytes = elements_of_a(p) * traits.input_bytes;
  b_bytes = elements_of_b(p) * traits.input_bytes;
  a_scales_bytes = scales_of_a(p) * static_cast<std::int64_t>(sizeof(float));
  b_scales_bytes = scales_of_b(p) * static_cast<std::int64_t>(sizeof(float));
  bias_bytes = elements_of_bias(p) * traits.output_bytes;
  residual_bytes = elements_of_residual(p) * traits.output_bytes;
  c_bytes = elements_of_c(p) * traits.output_bytes;
  const auto behind = [](std::int64_t at, std::int64_t bytes) {
    return bytes == 0 ? at : at + aligned(bytes) + kGuardBytes;
  };
  a = kGuardBytes;
  b = behind(a, a_bytes);
  a_scales = behind(b, b_bytes);
  b_scales = behind(a_scales, a_scales_bytes);
  bias = behind(b_scales, b_scales_bytes);
  residual = behind(bias, bias_bytes);
  c = behind(residual, residual_bytes);
  total = c + aligned(c_bytes) + last_guard_bytes(p);
}

double OperandLayout::most_bytes(const Problem& p) {
  const int guards =
      3 + (has_scales(p.precision) ? 2 : 0) + (p.activation == Activation::none ? 0 : 1);
  return bytes_minimum(p) + bytes_of_scales(p) + 1.0 * guards * (kGuardBytes + 256) +
         static_cast<double>(last_guard_bytes(p));
}

}  // namespace gemm::bench
