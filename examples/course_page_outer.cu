// Outer products as on a course page of 2013 (5kk73, TU Eindhoven; for a GeForce 8800 GT): A's tile
// in shared memory, one value of B and a column of 16 elements of C in registers per thread, 16 x
// 64 per block (`outer`); then with the loop unrolled (`unrolled`), then with A's next tile
// prefetched into a second buffer (`prefetched`).
//
// Usage:
//   gemm_bench --gemm_kernel=course_page_outer.cu:outer,course_page_outer.cu:unrolled
//   gemm_bench --gemm_kernel=course_page_outer.cu:prefetched
//
// Fixed: nothing beyond A is prefetched after the last tile; grids are rounded up, with zeros where
// a tile extends beyond A or B. The page prints one line of the product and the loop of the last
// kernel only as pseudocode.
//
// Limit: gridDim.y is at most 65,535, so a launch with more than 1,048,560 rows is refused.
#include "gemm_kernel.h"

constexpr int kTile = 16;

// An element of a matrix, zero outside it.
float element(const float* matrix, long long rows, long long columns, long long row,
              long long column) {
  return row < rows && column < columns ? matrix[row * columns + column] : 0;
}

// A block computes 16 x 64 of C, a thread one of its columns.
constexpr int kColumns = 64, kRowsAtOnce = kColumns / kTile;

struct ATile {
  float element[kTile][kTile];
};

// The part of A's tile that a thread loads: one element of every fourth row.
struct TilePart {
  float element[kTile / kRowsAtOnce];

  TilePart(const float* a, long long m, long long k, long long first_row, long long step) {
    for (int i = 0; i < kTile / kRowsAtOnce; ++i)
      element[i] = ::element(a, m, k, first_row + i * kRowsAtOnce + threadIdx.x / kTile,
                             step + threadIdx.x % kTile);
  }
  void store(ATile& tile) const {
    for (int i = 0; i < kTile / kRowsAtOnce; ++i)
      tile.element[i * kRowsAtOnce + threadIdx.x / kTile][threadIdx.x % kTile] = element[i];
  }
};

template <int kUnrolled>
void add_outer_products(float (&acc)[kTile], const ATile& tile, const float* b, long long n,
                        long long k, long long step, long long column) {
#pragma unroll kUnrolled
  for (int l = 0; l < kTile; ++l) {
    const float b_value = element(b, k, n, step + l, column);
#pragma unroll
    for (int i = 0; i < kTile; ++i) acc[i] += tile.element[i][l] * b_value;
  }
}

void store_column(const float (&acc)[kTile], float* c, long long m, long long n,
                  long long first_row, long long column) {
#pragma unroll
  for (int i = 0; i < kTile; ++i)
    if (first_row + i < m && column < n) c[(first_row + i) * n + column] = acc[i];
}

template <int kUnrolled>
__global__ void outer_kernel(const float* a, const float* b, float* c, long long m, long long n,
                             long long k) {
  __shared__ ATile tile;
  const long long first_row = static_cast<long long>(blockIdx.y) * kTile;
  const long long column = static_cast<long long>(blockIdx.x) * kColumns + threadIdx.x;
  float acc[kTile] = {};
  for (long long step = 0; step < k; step += kTile) {
    TilePart(a, m, k, first_row, step).store(tile);
    __syncthreads();
    add_outer_products<kUnrolled>(acc, tile, b, n, k, step, column);
    __syncthreads();
  }
  store_column(acc, c, m, n, first_row, column);
}

__global__ void prefetched_kernel(const float* a, const float* b, float* c, long long m,
                                  long long n, long long k) {
  __shared__ ATile tiles[2];
  ATile *current = &tiles[0], *next = &tiles[1];
  const long long first_row = static_cast<long long>(blockIdx.y) * kTile;
  const long long column = static_cast<long long>(blockIdx.x) * kColumns + threadIdx.x;
  float acc[kTile] = {};
  TilePart(a, m, k, first_row, 0).store(*current);
  __syncthreads();
  for (long long step = 0; step < k; step += kTile) {
    // Beyond k these are zeros that are never used. They are loaded into registers, so that the
    // FMAs need not wait for them.
    const TilePart part(a, m, k, first_row, step + kTile);
    add_outer_products<kTile>(acc, *current, b, n, k, step, column);
    part.store(*next);
    __syncthreads();
    ATile* const read = current;
    current = next;
    next = read;
  }
  store_column(acc, c, m, n, first_row, column);
}

template <auto Kernel>
auto launch_outer(gemm::Call p) {
  return gemm::launch<Kernel>({gemm::blocks(p.n, kColumns), gemm::blocks(p.m, kTile)}, {kColumns},
                              p.a, p.b, p.c, p.m, p.n, p.k);
}

auto outer(gemm::Call p) { return launch_outer<outer_kernel<1>>(p); }
auto unrolled(gemm::Call p) { return launch_outer<outer_kernel<kTile>>(p); }
auto prefetched(gemm::Call p) { return launch_outer<prefetched_kernel>(p); }
