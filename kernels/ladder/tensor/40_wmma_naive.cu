// Tensor cores through CUDA's `wmma` API at its simplest: a warp computes a tile of 16 x 16, with
// fragments directly from global memory. Two loads of 512 bytes feed one MMA, so the caches are the
// bottleneck and the tensor cores are mostly idle, and yet it is faster than most kernels on CUDA
// cores.
//
// A fragment must be inside its matrix and aligned to 32 bytes, as must all its rows. Other
// fragments go through shared memory, element by element, with zeros beyond the edges.
#include <mma.h>

#include <cstdint>

#include "kernels/ladder/tensor/wmma_types.cuh"
#include "kernels/layout.hpp"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/registry.hpp"

namespace gemm::tensor::wmma_naive {
namespace {

constexpr int kWarps = 8;  // of a block, side by side along n

using Grid = simt::TileGrid<kWmma, kWmma * kWarps>;

// Loads the fragment whose first element is (row, column) of a stored matrix.
template <typename Fragment, typename T>
__device__ void load(Fragment& fragment, const T* matrix, std::int64_t rows, std::int64_t columns,
                     std::int64_t row, std::int64_t column, T* staging) {
  if (columns % kWmma == 0 && row + kWmma <= rows) {
    nvcuda::wmma::load_matrix_sync(fragment, matrix + row * columns + column,
                                   static_cast<unsigned>(columns));
    return;
  }
  __syncwarp();  // all lanes are done with the staging buffer
  for (int i = static_cast<int>(threadIdx.x) % 32; i < kWmma * kWmma; i += 32)
    staging[i] = simt::element_or_zero(matrix, rows, columns, row + i / kWmma, column + i % kWmma);
  __syncwarp();
  nvcuda::wmma::load_matrix_sync(fragment, staging, kWmma);
}

template <typename T, bool kTransposesA, bool kTransposesB>
__global__ void __launch_bounds__(32 * kWarps)
    wmma_naive(Problem p, Grid grid, const T* __restrict__ a, const T* __restrict__ b,
               T* __restrict__ c) {
  using Wmma = WmmaTypes<T>;
  if constexpr (Wmma::kExists) {
    __shared__ __align__(32) float staging[kWarps][kWmma * kWmma];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const std::int64_t row = grid.first_row(), column = grid.first_column() + warp * kWmma;
    if (column >= p.n) return;
    T* const staged = reinterpret_cast<T*>(staging[warp]);
    typename Wmma::Accumulators acc;
    nvcuda::wmma::fill_fragment(acc, 0.0F);
#pragma unroll 1
    for (std::int64_t k = 0; k < p.k; k += kWmma) {
      typename Wmma::template A<kTransposesA> a_fragment;
      typename Wmma::template B<kTransposesB> b_fragment;
      if constexpr (kTransposesA)
        load(a_fragment, a, p.k, p.m, k, row, staged);
      else
        load(a_fragment, a, p.m, p.k, row, k, staged);
      if constexpr (kTransposesB)
        load(b_fragment, b, p.n, p.k, column, k, staged);
      else
        load(b_fragment, b, p.k, p.n, k, column, staged);
      nvcuda::wmma::mma_sync(acc, a_fragment, b_fragment, acc);
    }
    __syncwarp();
    store_accumulators(acc, staging[warp], c, p.m, p.n, row, column);
  }
}

const Registration registration({
    .name = "WmmaNaive",
    .idea = "Tensor cores by wmma: a warp computes 16 x 16, fragments directly from global memory.",
    .source = "CUDA C++ Programming Guide, warp matrix functions",
    .rung = 40,
    .precisions = {Precision::bf16, Precision::f16},
    .layouts = {kLayouts.begin(), kLayouts.end()},
    .unsupported = wmma_unsupported,
    .traffic =
        [](const Problem& p, const Device&) {
          Traffic traffic = simt::tile_traffic(p, kWmma, kWmma, kWmma, 0);
          traffic.shared = wmma_store_bytes(p);
          return traffic;
        },
    .prepare =
        [](const Problem& p, const Device&, const Operands& o) {
          return wmma_launch<Grid>(32 * kWarps, p, o, [&]<typename T, bool kA, bool kB>() {
            return wmma_naive<T, kA, kB>;
          });
        },
});

}  // namespace
}  // namespace gemm::tensor::wmma_naive
