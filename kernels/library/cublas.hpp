// Shared by cuBLAS and cuBLASLt: their functions, compute types of a precision, unsupported
// problems, error checks.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/gemm.hpp"
#include "kernels/libraries.hpp"
#include "kernels/parts/trial.hpp"

namespace gemm::cublas {

using gemm::check;

// FP64 emulation, as cublas_api.h of 13.1 and later has it: this build's may be older than the
// library.
inline constexpr auto kCompute64fEmulated = static_cast<cublasComputeType_t>(79);
inline constexpr int kEmulateEagerly = 2, kFixedMantissa = 1;
#if CUBLAS_VERSION >= 130100
static_assert(kCompute64fEmulated == CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT &&
              kEmulateEagerly == CUBLAS_EMULATION_STRATEGY_EAGER &&
              kFixedMantissa == CUDA_EMULATION_MANTISSA_CONTROL_FIXED);
#endif

// The functions of one cuBLAS, and of the cuBLASLt that it is linked with. Members have the names
// of the library, which cublas_v2.h's macros give to calls without _v2.
struct Api {
  // From the first of these that the loader opens. Throws std::runtime_error.
  explicit Api(const std::vector<std::string>& files) : library("cuBLAS", files) {}

  OpenedLibrary library;

  decltype(&::cublasGetProperty) cublasGetProperty = library.function("cublasGetProperty");
  decltype(&::cublasGetStatusString) cublasGetStatusString =
      library.function("cublasGetStatusString");
  decltype(&::cublasCreate_v2) cublasCreate_v2 = library.function("cublasCreate_v2");
  decltype(&::cublasDestroy_v2) cublasDestroy_v2 = library.function("cublasDestroy_v2");
  decltype(&::cublasSetMathMode) cublasSetMathMode = library.function("cublasSetMathMode");
  decltype(&::cublasSetStream_v2) cublasSetStream_v2 = library.function("cublasSetStream_v2");
  decltype(&::cublasSetWorkspace_v2) cublasSetWorkspace_v2 =
      library.function("cublasSetWorkspace_v2");
  // The header overloads it.
  cublasStatus_t (*cublasGemmEx)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                 int, const void*, const void*, cudaDataType_t, int, const void*,
                                 cudaDataType_t, int, const void*, void*, cudaDataType_t, int,
                                 cublasComputeType_t,
                                 cublasGemmAlgo_t) = library.function("cublasGemmEx");
  cublasStatus_t (*cublasGemmStridedBatchedEx)(
      cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*, const void*,
      cudaDataType_t, int, long long, const void*, cudaDataType_t, int, long long, const void*,
      void*, cudaDataType_t, int, long long, int, cublasComputeType_t,
      cublasGemmAlgo_t) = library.function("cublasGemmStridedBatchedEx");
  // Null before 12.5; declared here for builds with an older header.
  cublasStatus_t (*cublasGemmGroupedBatchedEx)(
      cublasHandle_t, const cublasOperation_t*, const cublasOperation_t*, const int*, const int*,
      const int*, const void*, const void* const*, cudaDataType_t, const int*, const void* const*,
      cudaDataType_t, const int*, const void*, void* const*, cudaDataType_t, const int*, int,
      const int*, cublasComputeType_t) = library.function_if_any("cublasGemmGroupedBatchedEx");
  // Null before 13.1. An enumeration is passed as an int.
  using SetNumber = cublasStatus_t(cublasHandle_t, int);
  SetNumber* cublasSetEmulationStrategy = library.function_if_any("cublasSetEmulationStrategy");
  SetNumber* cublasSetFixedPointEmulationMantissaControl =
      library.function_if_any("cublasSetFixedPointEmulationMantissaControl");
  SetNumber* cublasSetFixedPointEmulationMaxMantissaBitCount =
      library.function_if_any("cublasSetFixedPointEmulationMaxMantissaBitCount");

  decltype(&::cublasLtGetProperty) cublasLtGetProperty = library.function("cublasLtGetProperty");
  decltype(&::cublasLtCreate) cublasLtCreate = library.function("cublasLtCreate");
  decltype(&::cublasLtDestroy) cublasLtDestroy = library.function("cublasLtDestroy");
  decltype(&::cublasLtMatmulDescCreate) cublasLtMatmulDescCreate =
      library.function("cublasLtMatmulDescCreate");
  decltype(&::cublasLtMatmulDescDestroy) cublasLtMatmulDescDestroy =
      library.function("cublasLtMatmulDescDestroy");
  decltype(&::cublasLtMatmulDescSetAttribute) cublasLtMatmulDescSetAttribute =
      library.function("cublasLtMatmulDescSetAttribute");
  decltype(&::cublasLtMatrixLayoutCreate) cublasLtMatrixLayoutCreate =
      library.function("cublasLtMatrixLayoutCreate");
  decltype(&::cublasLtMatrixLayoutDestroy) cublasLtMatrixLayoutDestroy =
      library.function("cublasLtMatrixLayoutDestroy");
  decltype(&::cublasLtMatrixLayoutSetAttribute) cublasLtMatrixLayoutSetAttribute =
      library.function("cublasLtMatrixLayoutSetAttribute");
  decltype(&::cublasLtMatmulPreferenceCreate) cublasLtMatmulPreferenceCreate =
      library.function("cublasLtMatmulPreferenceCreate");
  decltype(&::cublasLtMatmulPreferenceDestroy) cublasLtMatmulPreferenceDestroy =
      library.function("cublasLtMatmulPreferenceDestroy");
  decltype(&::cublasLtMatmulPreferenceSetAttribute) cublasLtMatmulPreferenceSetAttribute =
      library.function("cublasLtMatmulPreferenceSetAttribute");
  decltype(&::cublasLtMatmulAlgoGetHeuristic) cublasLtMatmulAlgoGetHeuristic =
      library.function("cublasLtMatmulAlgoGetHeuristic");
  decltype(&::cublasLtMatmul) cublasLtMatmul = library.function("cublasLtMatmul");

  bool emulates_f64() const { return cublasSetFixedPointEmulationMantissaControl != nullptr; }
  std::string version() const;  // "13.1.0"
};

// With cuBLASLt from the same folder, if there is one. Throws std::runtime_error with one line.
Api open(const std::filesystem::path& file);

// Opened at the first call, from the file that set_cublas_file() was given, or else by the loader.
// Throws std::runtime_error with one line.
const Api& api();

inline void check(cublasStatus_t status,
                  std::source_location where = std::source_location::current()) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(api().cublasGetStatusString(status), where);
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
  if (precision == Precision::f64emulated) mode.compute = kCompute64fEmulated;
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
  try {
    api();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  if (std::max({p.m, p.n, p.k}) > INT_MAX) return "cuBLAS requires m, n and k below 2^31";
  const PrecisionTraits& traits = traits_of(p.precision);
  const auto needs = [&](const char* capability) {
    return std::string(traits.unit_name) + " requires compute capability " + capability;
  };
  const bool ampere = device.compute_capability >= 80, ada = device.compute_capability >= 89;
  if (!ampere && (traits.unit == Unit::tf32_tensor || traits.unit == Unit::bf16_tensor))
    return needs("8.0");
  if (!ada && traits.unit == Unit::fp8_tensor) return needs("8.9");
  if (p.precision == Precision::f64emulated) {
    if (!ampere) return needs("8.0");
    if (!api().emulates_f64())
      return "FP64 emulation is new in cuBLAS 13.1; this is " + api().version();
  }
  return std::nullopt;
}

}  // namespace gemm::cublas
