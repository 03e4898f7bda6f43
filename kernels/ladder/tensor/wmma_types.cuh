// Fragment types of CUDA's `wmma`, 16 x 16 x 16 with FP32 accumulators, and their epilogue. The
// mapping of elements to threads is unspecified, so accumulators go through shared memory to be
// converted to 16 bits.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "kernels/ladder/tensor/launch.cuh"

namespace gemm::tensor {

constexpr int kWmma = 16;  // fragments are kWmma x kWmma

// Rows of A and columns of B are contiguous along k.
template <typename T>
struct WmmaTypes {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  static constexpr bool kExists = true;
#else
  static constexpr bool kExists = std::is_same_v<T, __half>;
#endif
  template <typename Use, typename Order>
  using Fragment = nvcuda::wmma::fragment<Use, kWmma, kWmma, kWmma, T, Order>;
  using A = Fragment<nvcuda::wmma::matrix_a, nvcuda::wmma::row_major>;
  using B = Fragment<nvcuda::wmma::matrix_b, nvcuda::wmma::col_major>;
  using Accumulators =
      nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kWmma, kWmma, kWmma, float>;
};

// Stores a fragment to C at (row, column); `staging` belongs to the warp.
template <typename Accumulators, typename T>
__device__ void store_fragment(const Accumulators& acc, float* staging, T* c, std::int64_t m,
                               std::int64_t n, std::int64_t row, std::int64_t column) {
  nvcuda::wmma::store_matrix_sync(staging, acc, kWmma, nvcuda::wmma::mem_row_major);
  __syncwarp();
  for (int i = static_cast<int>(threadIdx.x) % 32; i < kWmma * kWmma; i += 32)
    if (row + i / kWmma < m && column + i % kWmma < n)
      c[(row + i / kWmma) * n + column + i % kWmma] = static_cast<T>(staging[i]);
}

inline std::optional<std::string> wmma_unsupported(const Problem& p, const Device& device) {
  return unsupported_before(p.precision == Precision::bf16 ? 80 : 70, p, device);
}

}  // namespace gemm::tensor
