#include "bench/device/operand_layout.hpp"

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
  c_bytes = elements_of_c(p) * traits.output_bytes;
  a = kGuardBytes;
  b = a + aligned(a_bytes) + kGuardBytes;
  c = b + aligned(b_bytes) + kGuardBytes;
  total = c + aligned(c_bytes) + last_guard_bytes(p);
}

double OperandLayout::most_bytes(const Problem& p) {
  return bytes_minimum(p) + 3.0 * (kGuardBytes + 256) + static_cast<double>(last_guard_bytes(p));
}

}  // namespace gemm::bench
