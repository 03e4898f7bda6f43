// GEMM by outer products. A block of 64 threads computes 16 x 64 of C, each thread one column in 16
// registers. A step along k multiplies a column of A's tile by a row of B: each thread multiplies
// its element of B, directly from global memory, by all 16 elements of A. B is never staged in
// shared memory; an element of B is loaded once for 16 FMAs, one of A once for 64.
#pragma once

#include <cstdint>

#include "kernels/gemm.hpp"
#include "kernels/parts/element.cuh"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"

namespace gemm::simt {

constexpr int kOuterRows = 16, kOuterColumns = 64, kOuterDepth = 16;
constexpr int kOuterThreads = kOuterColumns;
using OuterGrid = TileGrid<kOuterRows, kOuterColumns>;

// A's tile is stored transposed, so that a column of A is consecutive and loads as vectors of four.
// The padding of 4 words keeps rows aligned to 16 bytes and reduces the transposed stores of a warp
// from 8 wavefronts to 2.
constexpr int kOuterPitch = kOuterRows + 4;
struct alignas(16) OuterTile {
  float of[kOuterDepth][kOuterPitch];
};

// Elements of A's tile per thread; a warp loads along k.
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

// Accumulates `depth` outer products; b points to the thread's element in the first row.
template <int kUnroll>
__device__ void add_outer_products(float (&acc)[kOuterRows], const OuterTile& tile,
                                   const float* __restrict__ b, std::int64_t n, int depth) {
#pragma unroll kUnroll
  for (int l = 0; l < depth; ++l) {
    const float b_value = b[l * n];
#pragma unroll
    for (int i = 0; i < kOuterRows; ++i) acc[i] += tile.of[l][i] * b_value;
  }
}

// One K tile. The last one may be shorter and is not unrolled: B is not read beyond k.
template <int kUnroll>
__device__ void add_step(float (&acc)[kOuterRows], const OuterTile& tile,
                         const float* __restrict__ b, const Problem& p, std::int64_t step) {
  if (p.k - step >= kOuterDepth)
    add_outer_products<kUnroll>(acc, tile, b + step * p.n, p.n, kOuterDepth);
  else
    add_outer_products<1>(acc, tile, b + step * p.n, p.n, static_cast<int>(p.k - step));
}

// The thread's column of B, clamped to the last one; results beyond the edge are not stored.
__device__ inline const float* column_of_b(const Problem& p, const float* b, std::int64_t column) {
  return b + min(column, p.n - 1);
}

__device__ inline void store_column(const Problem& p, float* __restrict__ c, std::int64_t first_row,
                                    std::int64_t column, const float (&acc)[kOuterRows]) {
  if (column >= p.n) return;
#pragma unroll
  for (int i = 0; i < kOuterRows; ++i)
    if (first_row + i < p.m) c[(first_row + i) * p.n + column] = acc[i];
}

// A warp loads along k and stores 16 x 2 elements transposed.
inline Traffic outer_traffic(const Problem& p, const Device&) {
  constexpr int kBytes = sizeof(float), kAtOnce = 4;
  constexpr int kStore = wavefronts(
      kBytes, [](int lane) { return lane % kOuterDepth * kOuterPitch + lane / kOuterDepth; });
  constexpr int kRead = wavefronts(
      kBytes, [](int) { return 0; }, kAtOnce);
  constexpr int kOfWarp = kOuterLoads * kStore + kOuterDepth * kOuterRows / kAtOnce * kRead;
  return tile_traffic(p, kOuterRows, kOuterColumns, kOuterDepth, kOuterThreads / kLanes * kOfWarp);
}

// Completes the description of a kernel.
inline Kernel outer_kernel(TileKernel<float, OuterGrid> kernel, Kernel description) {
  description.source =
      "course 5kk73 (TU Eindhoven, 2013), 64 threads, tiles of A 16 x 16, of C 16 x 64";
  description.precisions = {Precision::f32};
  description.traffic = outer_traffic;
  description.prepare = prepare_tiles(kernel, kOuterThreads);
  return description;
}

}  // namespace gemm::simt
