// Outer products as on a course page of 2013 (5kk73, TU Eindhoven; for a GeForce 8800 GT): a tile
// of A in shared memory, a value of B and a column of C, 16 x 64 a block, in registers of a thread;
// then with the loop unrolled, then with A's next tile fetched ahead into a second one.
//
//   gemm_bench --gemm_kernel=course_page_outer.cu:outer,course_page_outer.cu:unrolled
//   gemm_bench --gemm_kernel=course_page_outer.cu:prefetched
//
// Repaired: nothing past A is fetched behind the last tile; grids are rounded up and zeros stand
// where a tile reaches past A or B. A line of the product and the loop of the last kernel were
// printed, as pseudocode.
// A grid has at most 65,535 blocks of rows: more than 1,048,560 rows are refused at the launch.
#include "gemm_kernel.h"

constexpr int kTile = 16;

// An element of a matrix, zero where that has ended.
float element(const float* matrix, long long rows, long long columns, long long row,
              long long column) {
  return row < rows && column < columns ? matrix[row * columns + column] : 0;
}

// 16 x 64 of C a block, one of its columns a thread.
constexpr int kColumns = 64, kRowsAtOnce = kColumns / kTile;

struct ATile {
  float element[kTile][kTile];
};

// What a thread brings of a tile of A: one element of each fourth row.
struct Share {
  float element[kTile / kRowsAtOnce];

  Share(const float* a, long long m, long long k, long long first_row, long long step) {
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
void add_outer_products(float (&sums)[kTile], const ATile& tile, const float* b, long long n,
                        long long k, long long step, long long column) {
#pragma unroll kUnrolled
  for (int l = 0; l < kTile; ++l) {
    const float from_b = element(b, k, n, step + l, column);
#pragma unroll
    for (int i = 0; i < kTile; ++i) sums[i] += tile.element[i][l] * from_b;
  }
}

void store_column(const float (&sums)[kTile], float* c, long long m, long long n,
                  long long first_row, long long column) {
#pragma unroll
  for (int i = 0; i < kTile; ++i)
    if (first_row + i < m && column < n) c[(first_row + i) * n + column] = sums[i];
}

template <int kUnrolled>
__global__ void outer_kernel(const float* a, const float* b, float* c, long long m, long long n,
                             long long k) {
  __shared__ ATile tile;
  const long long first_row = static_cast<long long>(blockIdx.y) * kTile;
  const long long column = static_cast<long long>(blockIdx.x) * kColumns + threadIdx.x;
  float sums[kTile] = {};
  for (long long step = 0; step < k; step += kTile) {
    Share(a, m, k, first_row, step).store(tile);
    __syncthreads();
    add_outer_products<kUnrolled>(sums, tile, b, n, k, step, column);
    __syncthreads();
  }
  store_column(sums, c, m, n, first_row, column);
}

__global__ void prefetched_kernel(const float* a, const float* b, float* c, long long m,
                                  long long n, long long k) {
  __shared__ ATile tiles[2];
  ATile *current = &tiles[0], *next = &tiles[1];
  const long long first_row = static_cast<long long>(blockIdx.y) * kTile;
  const long long column = static_cast<long long>(blockIdx.x) * kColumns + threadIdx.x;
  float sums[kTile] = {};
  Share(a, m, k, first_row, 0).store(*current);
  __syncthreads();
  for (long long step = 0; step < k; step += kTile) {
    // Behind k these are zeros that nobody reads. On their way they are in registers: the products
    // need not wait for them.
    const Share share(a, m, k, first_row, step + kTile);
    add_outer_products<kTile>(sums, *current, b, n, k, step, column);
    share.store(*next);
    __syncthreads();
    ATile* const read = current;
    current = next;
    next = read;
  }
  store_column(sums, c, m, n, first_row, column);
}

template <auto Kernel>
auto launch_outer(gemm::Call p) {
  return gemm::launch<Kernel>({gemm::blocks(p.n, kColumns), gemm::blocks(p.m, kTile)}, {kColumns},
                              p.a, p.b, p.c, p.m, p.n, p.k);
}

auto outer(gemm::Call p) { return launch_outer<outer_kernel<1>>(p); }
auto unrolled(gemm::Call p) { return launch_outer<outer_kernel<kTile>>(p); }
auto prefetched(gemm::Call p) { return launch_outer<prefetched_kernel>(p); }
