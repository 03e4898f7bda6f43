// Shared by cuBLAS and cuBLASLt: compute types of a precision, unsupported problems, error checks.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>

#include "kernels/common/trial.hpp"
#include "kernels/gemm.hpp"

namespace gemm::cublas {

using gemm::check;

inline void check(cublasStatus_t status,
                  std::source_location where = std::source_location::current()) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(cublasGetStatusString(status), where);
}

template <typename Owner, typename Create, typename... Arguments>
Owner make(Create create, Arguments... arguments) {
  typename Owner::pointer handle = nullptr;
  check(create(&handle, arguments...));
  return Owner(handle);
}

using Workspace = Owned<void*, cudaFree>;
inline Workspace workspace(std::size_t bytes) {
  return make<Workspace>([=](void** memory) { return cudaMalloc(memory, bytes); });
}

struct Mode {
  cudaDataType_t input, output;
  cublasComputeType_t compute;
  cudaDataType_t scale;  // of alpha and beta
};

inline Mode mode_of(Precision precision) {
  constexpr cudaDataType_t kTypes[] = {CUDA_R_32F,     CUDA_R_16BF, CUDA_R_16F, CUDA_R_8F_E4M3,
                                       CUDA_R_8F_E5M2, CUDA_R_64F,  CUDA_R_32I, CUDA_R_8I};
  const PrecisionTraits& traits = traits_of(precision);
  Mode mode{kTypes[static_cast<int>(traits.input)], kTypes[static_cast<int>(traits.output)],
            CUBLAS_COMPUTE_32F, CUDA_R_32F};
  if (mode.output == CUDA_R_64F || mode.output == CUDA_R_32I) mode.scale = mode.output;
  if (precision == Precision::tf32) mode.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  if (precision == Precision::f64) mode.compute = CUBLAS_COMPUTE_64F;
#if CUBLAS_VERSION >= 130100
  if (precision == Precision::f64emulated) mode.compute = CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT;
#endif
  if (mode.output == CUDA_R_32I) mode.compute = CUBLAS_COMPUTE_32I;
  return mode;
}

// alpha or beta in the scale type.
union Scalar {
  Scalar(const Mode& mode, int value) {
    if (mode.scale == CUDA_R_64F)
      real_64 = value;
    else if (mode.scale == CUDA_R_32I)
      integer = value;
    else
      real = static_cast<float>(value);
  }
  float real;
  double real_64;
  std::int32_t integer;
};

inline cublasOperation_t operation(bool transposed) {
  return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

inline std::optional<std::string> unsupported(const Problem& p, const Device& device) {
  if (std::max({p.m, p.n, p.k}) > INT_MAX) return "cuBLAS requires m, n and k below 2^31";
  const PrecisionTraits& traits = traits_of(p.precision);
  const auto needs = [&](const char* capability) {
    return std::string(traits.unit_name) + " requires compute capability " + capability;
  };
  const bool ampere = device.compute_capability >= 80, ada = device.compute_capability >= 89;
  if (!ampere && (traits.unit == Unit::tf32_tensor || traits.unit == Unit::bf16_tensor))
    return needs("8.0");
  if (!ada && traits.unit == Unit::fp8_tensor) return needs("8.9");
  if (!ampere && p.precision == Precision::f64emulated) return needs("8.0");
  return std::nullopt;
}

}  // namespace gemm::cublas
