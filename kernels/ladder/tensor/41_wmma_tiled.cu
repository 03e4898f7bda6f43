// Shared-memory tiles for wmma: a block of 8 warps computes 128 x 128, each warp 64 x 32. An
// element is loaded from global memory once per tile, and a fragment serves two or four MMAs. Rows
// are padded by 16 bytes, since wmma loads row by row and rows of 2^n bytes would have bank
// conflicts. Cost: padding.
//
// The next bottleneck: a K tile is loaded only after the last one was multiplied, and all warps
// wait for it.
#include <mma.h>

#include <cstddef>
#include <cstdint>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/ladder/tensor/wmma_types.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wmma_tiled {
namespace {

constexpr int kBM = 128, kBN = 128, kBK = 32;
constexpr int kWM = 64, kWN = 32, kThreads = 32 * (kBM / kWM) * (kBN / kWN);
constexpr int kChunk = 8, kPitch = kBK + 8;  // elements; 8 are 16 bytes

// A K tile of 128 lines: rows of A or columns of B.
template <typename T>
struct StoredTile {
  alignas(32) T elements[kBM * kPitch];

  // Zeros beyond the edges.
  __device__ void load(const T* matrix, std::int64_t lines, std::int64_t depth,
                       std::int64_t first_line, std::int64_t first_k) {
    constexpr int kChunks = kBK / kChunk;
#pragma unroll
    for (int i = 0; i < kBM * kChunks / kThreads; ++i) {
      const int index = i * kThreads + static_cast<int>(threadIdx.x);
      const int line = index / kChunks, k = index % kChunks * kChunk;
      uint4 chunk{};
      if (first_line + line < lines && first_k + k < depth)
        chunk = *reinterpret_cast<const uint4*>(matrix + (first_line + line) * depth + first_k + k);
      *reinterpret_cast<uint4*>(elements + line * kPitch + k) = chunk;
    }
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    wmma_tiled(Problem p, Tiles tiles, const T* __restrict__ a, const T* __restrict__ b,
               T* __restrict__ c) {
  using Wmma = WmmaTypes<T>;
  if constexpr (Wmma::kExists) {
    constexpr int kStagingBytes = kThreads / 32 * kWmma * kWmma * static_cast<int>(sizeof(float));
    __shared__ union {
      struct {
        StoredTile<T> a, b;
      } k_tile;
      std::byte staging[kStagingBytes];
    } shared;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int warp_row = warp / (kBN / kWN) * kWM, warp_column = warp % (kBN / kWN) * kWN;
    const auto place = tiles.place(static_cast<int>(blockIdx.x));
    const std::int64_t row = std::int64_t{kBM} * place.row,
                       column = std::int64_t{kBN} * place.column;
    typename Wmma::Accumulators acc[kWM / kWmma][kWN / kWmma];
#pragma unroll
    for (auto& sums_of_row : acc)
#pragma unroll
      for (auto& fragment : sums_of_row) nvcuda::wmma::fill_fragment(fragment, 0.0F);
#pragma unroll 1
    for (std::int64_t k = 0; k < p.k; k += kBK) {
      shared.k_tile.a.load(a, p.m, p.k, row, k);
      shared.k_tile.b.load(b, p.n, p.k, column, k);
      __syncthreads();
#pragma unroll
      for (int step = 0; step < kBK; step += kWmma) {
        typename Wmma::B b_fragments[kWN / kWmma];
#pragma unroll
        for (int j = 0; j < kWN / kWmma; ++j)
          nvcuda::wmma::load_matrix_sync(
              b_fragments[j], shared.k_tile.b.elements + (warp_column + j * kWmma) * kPitch + step,
              kPitch);
#pragma unroll
        for (int i = 0; i < kWM / kWmma; ++i) {
          typename Wmma::A a_fragment;
          nvcuda::wmma::load_matrix_sync(
              a_fragment, shared.k_tile.a.elements + (warp_row + i * kWmma) * kPitch + step,
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
        store_fragment(acc[i][j], staging, c, p.m, p.n, row + warp_row + i * kWmma,
                       column + warp_column + j * kWmma);
        __syncwarp();
      }
  }
}

template <typename T>
Launch launch(const Problem& p, const Device&, const Operands& o) {
  const Tiles tiles(p, kBM, kBN);
  return launched(wmma_tiled<T>, {tiles.count(), kThreads}, p, tiles, static_cast<const T*>(o.a),
                  static_cast<const T*>(o.b), static_cast<T*>(o.c));
}

// Of shared memory per K tile: the copies, and the fragment loads of each warp.
constexpr double kMovedBytes = (kBM + kBN) * kBK * 2.0 + kThreads / 32.0 * (kWM + kWN) * kBK * 2;

const Registration registration(nt_rung(
    {
        .name = "WmmaTiled",
        .idea = "Shared-memory tiles, from which 8 warps load wmma fragments.",
        .source = "CUDA samples, bf16TensorCoreGemm; CUDA C++ Programming Guide",
        .rung = 41,
        .unsupported = wmma_unsupported,
    },
    {kBM, kBN, 2 * kBK, kMovedBytes, Epilogue::wmma},
    {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}}));

}  // namespace
}  // namespace gemm::tensor::wmma_tiled
