// Shared-memory tiles for wmma: a block of 8 warps computes 128 x 128, each warp 64 x 32. An
// element is loaded from global memory once per tile, and a fragment serves two or four MMAs. Rows
// are padded by 16 bytes, since wmma loads row by row and rows of 2^n bytes would have bank
// conflicts. Cost: padding, and a K tile is loaded only after the last one was multiplied.
#include <mma.h>

#include <cstddef>
#include <cstdint>

#include "kernels/ladder/tensor/wmma_types.cuh"
#include "kernels/layout.hpp"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/registry.hpp"

namespace gemm::tensor::wmma_tiled {
namespace {

constexpr int kBM = 128, kBN = 128, kBK = 32;
constexpr int kWM = 64, kWN = 32, kThreads = 32 * (kBM / kWM) * (kBN / kWN);
constexpr int kChunk = 8, kPad = 8;  // elements, 16 bytes

using Grid = simt::TileGrid<kBM, kBN>;

// A tile of a stored matrix; zeros beyond its edges.
template <typename T, int kRows, int kColumns>
struct StoredTile {
  static constexpr int kPitch = kColumns + kPad;
  alignas(32) T elements[kRows * kPitch];

  __device__ void load(const T* matrix, std::int64_t rows, std::int64_t columns,
                       std::int64_t first_row, std::int64_t first_column) {
    constexpr int kChunks = kColumns / kChunk;
    static_assert(kRows * kChunks % kThreads == 0);
#pragma unroll
    for (int i = 0; i < kRows * kChunks / kThreads; ++i) {
      const int index = i * kThreads + static_cast<int>(threadIdx.x);
      const int row = index / kChunks, column = index % kChunks * kChunk;
      const std::int64_t from_row = first_row + row, from_column = first_column + column;
      uint4 chunk{};
      if (columns % kChunk == 0) {
        if (from_row < rows && from_column < columns)
          chunk = *reinterpret_cast<const uint4*>(matrix + from_row * columns + from_column);
      } else {
        T each[kChunk];
#pragma unroll
        for (int j = 0; j < kChunk; ++j)
          each[j] = simt::element_or_zero(matrix, rows, columns, from_row, from_column + j);
        chunk = *reinterpret_cast<const uint4*>(each);
      }
      *reinterpret_cast<uint4*>(elements + row * kPitch + column) = chunk;
    }
  }
};

template <typename T, bool kTransposesA, bool kTransposesB>
__global__ void __launch_bounds__(kThreads)
    wmma_tiled(Problem p, Grid grid, const T* __restrict__ a, const T* __restrict__ b,
               T* __restrict__ c) {
  using Wmma = WmmaTypes<T>;
  if constexpr (Wmma::kExists) {
    struct KTile {
      StoredTile<T, kTransposesA ? kBK : kBM, kTransposesA ? kBM : kBK> a;
      StoredTile<T, kTransposesB ? kBN : kBK, kTransposesB ? kBK : kBN> b;
    };
    constexpr int kStagingBytes = kThreads / 32 * kWmma * kWmma * static_cast<int>(sizeof(float));
    __shared__ union {
      KTile k_tile;
      std::byte staging[kStagingBytes];
    } shared;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int warp_row = warp / (kBN / kWN) * kWM, warp_column = warp % (kBN / kWN) * kWN;
    const std::int64_t row = grid.first_row(), column = grid.first_column();
    typename Wmma::Accumulators acc[kWM / kWmma][kWN / kWmma];
#pragma unroll
    for (auto& sums_of_row : acc)
#pragma unroll
      for (auto& fragment : sums_of_row) nvcuda::wmma::fill_fragment(fragment, 0.0F);
#pragma unroll 1
    for (std::int64_t k = 0; k < p.k; k += kBK) {
      if constexpr (kTransposesA)
        shared.k_tile.a.load(a, p.k, p.m, k, row);
      else
        shared.k_tile.a.load(a, p.m, p.k, row, k);
      if constexpr (kTransposesB)
        shared.k_tile.b.load(b, p.n, p.k, column, k);
      else
        shared.k_tile.b.load(b, p.k, p.n, k, column);
      __syncthreads();
#pragma unroll
      for (int step = 0; step < kBK; step += kWmma) {
        typename Wmma::template B<kTransposesB> b_fragments[kWN / kWmma];
#pragma unroll
        for (int j = 0; j < kWN / kWmma; ++j) {
          const int line = warp_column + j * kWmma;
          constexpr int kPitch = decltype(shared.k_tile.b)::kPitch;
          nvcuda::wmma::load_matrix_sync(
              b_fragments[j],
              shared.k_tile.b.elements +
                  (kTransposesB ? line * kPitch + step : step * kPitch + line),
              kPitch);
        }
#pragma unroll
        for (int i = 0; i < kWM / kWmma; ++i) {
          typename Wmma::template A<kTransposesA> a_fragment;
          const int line = warp_row + i * kWmma;
          constexpr int kPitch = decltype(shared.k_tile.a)::kPitch;
          nvcuda::wmma::load_matrix_sync(
              a_fragment,
              shared.k_tile.a.elements +
                  (kTransposesA ? step * kPitch + line : line * kPitch + step),
              kPitch);
#pragma unroll
          for (int j = 0; j < kWN / kWmma; ++j)
            nvcuda::wmma::mma_sync(acc[i][j], a_fragment, b_fragments[j], acc[i][j]);
        }
      }
      __syncthreads();
    }
    float* const staging = reinterpret_cast<float*>(shared.staging) + warp * kWmma * kWmma;
#pragma unroll
    for (int i = 0; i < kWM / kWmma; ++i)
#pragma unroll
      for (int j = 0; j < kWN / kWmma; ++j) {
        store_accumulators(acc[i][j], staging, c, p.m, p.n, row + warp_row + i * kWmma,
                           column + warp_column + j * kWmma);
        __syncwarp();
      }
  }
}

const Registration registration({
    .name = "WmmaTiled",
    .idea = "Shared-memory tiles, from which 8 warps load wmma fragments.",
    .source = "CUDA samples, bf16TensorCoreGemm; CUDA C++ Programming Guide",
    .rung = 41,
    .precisions = {Precision::bf16, Precision::f16},
    .layouts = {kLayouts.begin(), kLayouts.end()},
    .unsupported = wmma_unsupported,
    .traffic =
        [](const Problem& p, const Device&) {
          // Wavefronts per K tile: the copies, and the fragment loads of each warp.
          constexpr double kWavefronts =
              (kBM + kBN) * kBK / 64.0 + kThreads / 32.0 * (kWM + kWN) * kBK / 64.0;
          Traffic traffic = simt::tile_traffic(p, kBM, kBN, kBK, kWavefronts);
          traffic.shared += wmma_store_bytes(p);
          return traffic;
        },
    .prepare =
        [](const Problem& p, const Device&, const Operands& o) {
          return wmma_launch<Grid>(kThreads, p, o, [&]<typename T, bool kA, bool kB>() {
            return wmma_tiled<T, kA, kB>;
          });
        },
});

}  // namespace
}  // namespace gemm::tensor::wmma_tiled
