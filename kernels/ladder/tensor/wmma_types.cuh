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

#include "kernels/gemm.hpp"
#include "kernels/layout.hpp"
#include "kernels/parts/element.cuh"
#include "kernels/parts/tile_launch.cuh"

namespace gemm::tensor {

constexpr int kWmma = 16;  // fragments are kWmma x kWmma

template <typename T>
struct WmmaTypes {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  static constexpr bool kExists = true;
#else
  static constexpr bool kExists = std::is_same_v<T, __half>;
#endif
  template <bool kTransposed>
  using Order = std::conditional_t<kTransposed, nvcuda::wmma::col_major, nvcuda::wmma::row_major>;
  template <bool kTransposed>
  using A =
      nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, kWmma, kWmma, kWmma, T, Order<kTransposed>>;
  template <bool kTransposed>
  using B =
      nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, kWmma, kWmma, kWmma, T, Order<kTransposed>>;
  using Accumulators =
      nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kWmma, kWmma, kWmma, float>;
};

// Stores a fragment to C at (row, column); `staging` belongs to the warp.
template <typename Accumulators, typename T>
__device__ void store_accumulators(const Accumulators& acc, float* staging, T* c, std::int64_t m,
                                   std::int64_t n, std::int64_t row, std::int64_t column) {
  nvcuda::wmma::store_matrix_sync(staging, acc, kWmma, nvcuda::wmma::mem_row_major);
  __syncwarp();
  for (int i = static_cast<int>(threadIdx.x) % 32; i < kWmma * kWmma; i += 32)
    if (row + i / kWmma < m && column + i % kWmma < n)
      c[(row + i / kWmma) * n + column + i % kWmma] = simt::narrow<T>(staging[i]);
}

// Shared-memory bytes of these stores and loads.
inline double wmma_store_bytes(const Problem& p) {
  return 2.0 * kWmma * kWmma * sizeof(float) * ceil_div(p.m, kWmma) * ceil_div(p.n, kWmma);
}

inline std::optional<std::string> wmma_unsupported(const Problem& p, const Device& device) {
  if (p.precision == Precision::bf16 && device.compute_capability < 80)
    return "BF16 on tensor cores requires compute capability 8.0";
  return std::nullopt;
}

// kernel.operator()<T, transposes_a, transposes_b>() is an instance of the kernel.
template <typename Grid, typename Instance>
Launch wmma_launch(int threads, const Problem& p, const Operands& o, Instance kernel) {
  return with_transposes(p.layout, [&]<bool kA, bool kB>() -> Launch {
    if (p.precision == Precision::bf16)
      return simt::tile_launch<__nv_bfloat16, Grid>(
          kernel.template operator()<__nv_bfloat16, kA, kB>(), threads, p, o);
    return simt::tile_launch<__half, Grid>(kernel.template operator()<__half, kA, kB>(), threads, p,
                                           o);
  });
}

}  // namespace gemm::tensor
