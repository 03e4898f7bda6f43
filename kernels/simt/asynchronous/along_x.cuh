// Operands as kernels of this folder want the copy engine to bring them: lying along x, which is m
// for A and n for B, in rows that begin at multiples of 16 bytes.
#pragma once

#include "kernels/common/laid_operand.cuh"

namespace gemm::simt {

inline LaidOperand<float> laid_along_x(const Operand<float>& operand) {
  return laid(operand, false);
}

// Of both operands.
inline double laid_bytes(const Problem& p) {
  return laying_bytes(operand_a<float>(p, nullptr), false) +
         laying_bytes(operand_b<float>(p, nullptr), false);
}

// On an H200 (NOTES.md).
inline double laid_seconds(const Problem& p) {
  constexpr double kLaunchSeconds = 3e-6, kBytesPerSecond = 4.1e12;
  const double bytes = laid_bytes(p);
  return bytes > 0 ? kLaunchSeconds + bytes / kBytesPerSecond : 0;
}

}  // namespace gemm::simt
