// Tensor cores through CUDA's `wmma` API at its simplest: a warp computes a tile of 16 x 16, with
// fragments directly from global memory. Two loads of 512 bytes feed one MMA of 8192 FLOP, and yet
// it is faster than most kernels on CUDA cores.
//
// A fragment must be inside its matrix and aligned to 32 bytes, as must all its rows. Other
// fragments go through shared memory, element by element, with zeros beyond the edges.
//
// The next bottleneck: the caches. Every warp loads its own rows of A and columns of B, so that the
// tensor cores are mostly idle.
#include <mma.h>

#include <cstdint>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/ladder/tensor/wmma_types.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wmma_naive {
namespace {

constexpr int kWarps = 8, kThreads = 32 * kWarps;  // of a block, side by side along n

// Loads the fragment of 16 lines (rows of A or columns of B) whose first element is (line, k).
template <typename Fragment, typename T>
__device__ void load(Fragment& fragment, const T* matrix, std::int64_t lines, std::int64_t depth,
                     std::int64_t line, std::int64_t k, T* staging) {
  if (depth % kWmma == 0 && line + kWmma <= lines) {
    nvcuda::wmma::load_matrix_sync(fragment, matrix + line * depth + k,
                                   static_cast<unsigned>(depth));
    return;
  }
  __syncwarp();  // all lanes are done with the staging buffer
  for (int i = static_cast<int>(threadIdx.x) % 32; i < kWmma * kWmma; i += 32) {
    const bool inside = line + i / kWmma < lines && k + i % kWmma < depth;
    staging[i] = inside ? matrix[(line + i / kWmma) * depth + k + i % kWmma] : T{};
  }
  __syncwarp();
  nvcuda::wmma::load_matrix_sync(fragment, staging, kWmma);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    wmma_naive(Problem p, Tiles tiles, const T* __restrict__ a, const T* __restrict__ b,
               T* __restrict__ c) {
  using Wmma = WmmaTypes<T>;
  if constexpr (Wmma::kExists) {
    __shared__ __align__(32) float staging[kWarps][kWmma * kWmma];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const auto place = tiles.place(static_cast<int>(blockIdx.x));
    const std::int64_t row = std::int64_t{kWmma} * place.row,
                       column = std::int64_t{kWmma} * (place.column * kWarps + warp);
    if (column >= p.n) return;
    T* const staged = reinterpret_cast<T*>(staging[warp]);
    typename Wmma::Accumulators acc;
    nvcuda::wmma::fill_fragment(acc, 0.0F);
#pragma unroll 1
    for (std::int64_t k = 0; k < p.k; k += kWmma) {
      typename Wmma::A a_fragment;
      typename Wmma::B b_fragment;
      load(a_fragment, a, p.m, p.k, row, k, staged);
      load(b_fragment, b, p.n, p.k, column, k, staged);
      nvcuda::wmma::mma_sync(acc, a_fragment, b_fragment, acc);
    }
    __syncwarp();
    store_fragment(acc, staging[warp], c, p.m, p.n, row, column);
  }
}

template <typename T>
Launch launch(const Problem& p, const Device&, const Operands& o) {
  const Tiles tiles(p, kWmma, kWmma * kWarps);
  return launched(wmma_naive<T>, {tiles.count(), kThreads}, p, tiles, static_cast<const T*>(o.a),
                  static_cast<const T*>(o.b), static_cast<T*>(o.c));
}

const Registration registration(nt_rung(
    {
        .name = "WmmaNaive",
        .idea =
            "Tensor cores by wmma: a warp computes 16 x 16, fragments directly from global memory.",
        .source = "CUDA C++ Programming Guide, warp matrix functions",
        .rung = 40,
        .unsupported = wmma_unsupported,
    },
    {kWmma, kWmma, 2 * kWmma, 0, Epilogue::wmma},
    {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}}));

}  // namespace
}  // namespace gemm::tensor::wmma_naive
