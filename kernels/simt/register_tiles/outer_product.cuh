// The product by outer products. A block of 64 threads computes 16 x 64 of C, each thread one
// column of it, kept in 16 registers. In one step along k a column of A's tile meets a row of B:
// each thread multiplies its one element of B, straight from global memory, with all 16 elements of
// A, which are the same for all threads. So B is never staged, and an element of B is loaded once
// for 16 products, one of A read once for 64.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/common/element.cuh"
#include "kernels/common/tile_grid.cuh"
#include "kernels/common/tile_traffic.hpp"
#include "kernels/gemm.hpp"

namespace gemm::simt {

constexpr int kOuterRows = 16, kOuterColumns = 64, kOuterDepth = 16;
constexpr int kOuterThreads = kOuterColumns;
using OuterGrid = TileGrid<kOuterRows, kOuterColumns>;

// A's tile is stored turned, so that a column of A lies together and four elements of it come with
// one instruction. With 4 words beyond the 16 a row still begins at a multiple of 16 bytes, and the
// turned stores of a warp take 2 wavefronts instead of 8.
constexpr int kOuterPitch = kOuterRows + 4;
struct alignas(16) OuterTile {
  float of[kOuterDepth][kOuterPitch];
};

// The elements of A's tile that a thread loads: a warp reads along k, four threads deep.
constexpr int kOuterLoads = kOuterRows * kOuterDepth / kOuterThreads;

__device__ inline void load_a(float (&from_a)[kOuterLoads], const Problem& p,
                              const float* __restrict__ a, std::int64_t first_row,
                              std::int64_t step) {
  const int l = threadIdx.x % kOuterDepth, first = threadIdx.x / kOuterDepth;
#pragma unroll
  for (int i = 0; i < kOuterLoads; ++i)
    from_a[i] = element_or_zero(a, p.m, p.k, first_row + first + i * (kOuterThreads / kOuterDepth),
                                step + l);
}

__device__ inline void store_a(OuterTile& tile, const float (&from_a)[kOuterLoads]) {
  const int l = threadIdx.x % kOuterDepth, first = threadIdx.x / kOuterDepth;
#pragma unroll
  for (int i = 0; i < kOuterLoads; ++i)
    tile.of[l][first + i * (kOuterThreads / kOuterDepth)] = from_a[i];
}

// Adds what `depth` columns of A's tile and as many rows of B make; b points to the thread's
// element of the first of them.
template <int kUnroll>
__device__ void add_outer_products(float (&sums)[kOuterRows], const OuterTile& tile,
                                   const float* __restrict__ b, std::int64_t n, int depth) {
#pragma unroll kUnroll
  for (int l = 0; l < depth; ++l) {
    const float of_b = b[l * n];
#pragma unroll
    for (int i = 0; i < kOuterRows; ++i) sums[i] += tile.of[l][i] * of_b;
  }
}

// One step of the tile. The last may be less deep, and is not unrolled: B is not read beyond k.
template <int kUnroll>
__device__ void add_step(float (&sums)[kOuterRows], const OuterTile& tile,
                         const float* __restrict__ b, const Problem& p, std::int64_t step) {
  if (p.k - step >= kOuterDepth)
    add_outer_products<kUnroll>(sums, tile, b + step * p.n, p.n, kOuterDepth);
  else
    add_outer_products<1>(sums, tile, b + step * p.n, p.n, static_cast<int>(p.k - step));
}

// The thread's column of B. Beyond the edge it is the last one: what comes of it is not stored.
__device__ inline const float* column_of_b(const Problem& p, const float* b, std::int64_t column) {
  return b + min(column, p.n - 1);
}

__device__ inline void store_column(const Problem& p, float* __restrict__ c, std::int64_t first_row,
                                    std::int64_t column, const float (&sums)[kOuterRows]) {
  if (column >= p.n) return;
#pragma unroll
  for (int i = 0; i < kOuterRows; ++i)
    if (first_row + i < p.m) c[(first_row + i) * p.n + column] = sums[i];
}

// A warp reads along k and stores 16 x 2 elements, turned.
inline Traffic outer_traffic(const Problem& p, const Device&) {
  constexpr int kBytes = sizeof(float), kAtOnce = 4;
  constexpr int kStore = wavefronts(
      kBytes, [](int lane) { return lane % kOuterDepth * kOuterPitch + lane / kOuterDepth; });
  constexpr int kRead = wavefronts(
      kBytes, [](int) { return 0; }, kAtOnce);
  constexpr int kOfWarp = kOuterLoads * kStore + kOuterDepth * kOuterRows / kAtOnce * kRead;
  return tile_traffic(p, kOuterRows, kOuterColumns, kOuterDepth, kOuterThreads / kLanes * kOfWarp);
}

inline constexpr std::string_view kOuterSource =
    "course 5kk73 (TU Eindhoven, 2013), 64 threads, tiles of A 16 x 16, of C 16 x 64";

}  // namespace gemm::simt
