// What cuBLAS and cublasLt have in common here: how a precision is asked for, what neither takes,
// and what becomes of an error.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <climits>
#include <source_location>
#include <stdexcept>

#include "kernels/gemm.hpp"

namespace gemm::cublas {

[[noreturn]] inline void fail(const char* text, std::source_location where) {
  throw std::runtime_error(std::string(where.file_name()) + ":" + std::to_string(where.line()) +
                           ": " + text);
}

inline void check(cublasStatus_t status,
                  std::source_location where = std::source_location::current()) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(cublasGetStatusString(status), where);
}

inline void check(cudaError_t status,
                  std::source_location where = std::source_location::current()) {
  if (status != cudaSuccess) fail(cudaGetErrorString(status), where);
}

struct Mode {
  cudaDataType_t type;
  cublasComputeType_t compute;
};

inline Mode mode_of(Precision precision) {
  switch (precision) {
    case Precision::tf32:
      return {CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
    case Precision::bf16:
      return {CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    case Precision::f16:
      return {CUDA_R_16F, CUBLAS_COMPUTE_32F};
    case Precision::f64:
      return {CUDA_R_64F, CUBLAS_COMPUTE_64F};
    default:
      return {CUDA_R_32F, CUBLAS_COMPUTE_32F};
  }
}

inline cublasOperation_t operation(bool transposed) {
  return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

inline std::optional<std::string> unsupported(const Problem& p, const Device& device) {
  if (std::max({p.m, p.n, p.k}) > INT_MAX) return "cuBLAS takes 32-bit sizes";
  const bool ampere = device.compute_capability >= 80;
  if (!ampere && (p.precision == Precision::tf32 || p.precision == Precision::bf16))
    return "no " + std::string(traits_of(p.precision).unit_name) + " below compute capability 8.0";
  return std::nullopt;
}

}  // namespace gemm::cublas
