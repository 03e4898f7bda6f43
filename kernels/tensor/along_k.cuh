// Operands as wgmma and the copies of boxes want them: lying along k, in rows that begin at
// multiples of 16 bytes. Factors of 16 bits may lie along m or n as well: these need only their
// rows aligned.
#pragma once

#include "kernels/common/laid_operand.cuh"

namespace gemm::tensor {

template <typename T>
LaidOperand<T> laid_along_k(const Operand<T>& operand) {
  return laid(operand, true);
}
template <typename T>
LaidOperand<T> laid_aligned(const Operand<T>& operand) {
  return laid(operand, operand.along_k);
}

// What that moves.
template <typename T>
double laying_bytes(const Operand<T>& operand) {
  return gemm::laying_bytes(operand, true);
}
template <typename T>
double aligning_bytes(const Operand<T>& operand) {
  return gemm::laying_bytes(operand, operand.along_k);
}

}  // namespace gemm::tensor
