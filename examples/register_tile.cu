// Block tiles and thread tiles, as in public SGEMM tutorials (S. Boehm, "How to optimize a CUDA
// matmul kernel", 2022; yzhaiustc, "Optimizing SGEMM on NVIDIA Turing GPUs"): a block stages K
// tiles of A (transposed) and B in shared memory; a thread computes ROWS x COLUMNS of C in
// registers, with vector loads. The next K tiles are loaded during the FMAs. Written from scratch;
// any m, n and k.
//
// Usage:
//   gemm_bench --gemm_kernel=register_tile.cu --gemm_define=BM:64,128 --gemm_define=BK:8,16
#include "gemm_kernel.h"

#ifndef BM
#define BM 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef BK
#define BK 8
#endif
#ifndef ROWS
#define ROWS 8
#endif
#ifndef COLUMNS
#define COLUMNS 8
#endif

// Four elements of a row, zeros outside the matrix. Vector loads if rows are multiples of 16 bytes.
float4 load_four(const float* matrix, long long rows, long long columns, long long row,
                 long long column) {
  float4 four{};
  if (row >= rows) return four;
  const float* from = matrix + row * columns + column;
  if (columns % 4 == 0) {
    if (column < columns) four = *reinterpret_cast<const float4*>(from);
    return four;
  }
  if (column < columns) four.x = from[0];
  if (column + 1 < columns) four.y = from[1];
  if (column + 2 < columns) four.z = from[2];
  if (column + 3 < columns) four.w = from[3];
  return four;
}

template <int kM, int kN, int kK, int kOfM, int kOfN>
struct Tile {
  static constexpr int kBlockM = kM, kBlockN = kN, kBlockK = kK, kRows = kOfM, kColumns = kOfN;
  static constexpr int kAcross = kBlockN / kColumns, kDown = kBlockM / kRows;
  static constexpr int kThreads = kAcross * kDown;
  static_assert(kRows % 4 == 0 && kColumns % 4 == 0 && kBlockK % 4 == 0, "multiples of four");
  static_assert(kBlockM % kRows == 0 && kBlockN % kColumns == 0,
                "thread tiles must divide the block tile");
  static_assert(kThreads <= 1024, "at most 1024 threads per block");
  // Two blocks per SM: while one waits at a barrier the other multiplies. Longer K tiles in flight
  // would need too many registers.
  static constexpr int kBlocks = kThreads <= 256 && kBlockK <= 8 ? 2 : 1;

  // A thread's rows and columns are groups of four, spread over the block tile, so that consecutive
  // threads load consecutive vectors.
  static int row(int thread, int i) { return i / 4 * 4 * kDown + thread / kAcross * 4 + i % 4; }
  static int column(int thread, int j) {
    return j / 4 * 4 * kAcross + thread % kAcross * 4 + j % 4;
  }
};

// A thread's part of a K tile of kRows x kColumns, in registers.
template <int kRows, int kColumns, int kThreads>
struct Loader {
  static constexpr int kFours = kRows * kColumns / 4, kCount = (kFours + kThreads - 1) / kThreads;
  float4 fours[kCount];

  static int row(int i) { return (i * kThreads + threadIdx.x) / (kColumns / 4); }
  static int column(int i) { return (i * kThreads + threadIdx.x) % (kColumns / 4) * 4; }
  // The last pass may not have a vector for every thread.
  static bool has(int i) { return i * kThreads + static_cast<int>(threadIdx.x) < kFours; }

  void load(const float* matrix, long long rows, long long columns, long long first_row,
            long long first_column) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      if (has(i))
        fours[i] = load_four(matrix, rows, columns, first_row + row(i), first_column + column(i));
  }
};

template <typename T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    register_tile(const float* a, const float* b, float* c, long long m, long long n, long long k) {
  // Padding by four, against bank conflicts of the transposed stores.
  alignas(16) __shared__ float a_tile[T::kBlockK][T::kBlockM + 4];
  alignas(16) __shared__ float b_tile[T::kBlockK][T::kBlockN];
  const long long blocks_across = (n + T::kBlockN - 1) / T::kBlockN;
  const long long first_row = blockIdx.x / blocks_across * T::kBlockM;
  const long long first_column = blockIdx.x % blocks_across * T::kBlockN;
  const int thread = threadIdx.x;

  Loader<T::kBlockM, T::kBlockK, T::kThreads> a_loader;
  Loader<T::kBlockK, T::kBlockN, T::kThreads> b_loader;
  a_loader.load(a, m, k, first_row, 0);
  b_loader.load(b, k, n, 0, first_column);
  float acc[T::kRows][T::kColumns] = {};
  for (long long step = 0; step < k; step += T::kBlockK) {
#pragma unroll
    for (int i = 0; i < a_loader.kCount; ++i)
      if (a_loader.has(i)) {
        const int row = a_loader.row(i), l = a_loader.column(i);
        a_tile[l][row] = a_loader.fours[i].x;
        a_tile[l + 1][row] = a_loader.fours[i].y;
        a_tile[l + 2][row] = a_loader.fours[i].z;
        a_tile[l + 3][row] = a_loader.fours[i].w;
      }
#pragma unroll
    for (int i = 0; i < b_loader.kCount; ++i)
      if (b_loader.has(i))
        *reinterpret_cast<float4*>(&b_tile[b_loader.row(i)][b_loader.column(i)]) =
            b_loader.fours[i];
    __syncthreads();
    if (step + T::kBlockK < k) {
      a_loader.load(a, m, k, first_row, step + T::kBlockK);
      b_loader.load(b, k, n, step + T::kBlockK, first_column);
    }
#pragma unroll
    for (int l = 0; l < T::kBlockK; ++l) {
      alignas(16) float a_fragment[T::kRows], b_fragment[T::kColumns];
#pragma unroll
      for (int i = 0; i < T::kRows; i += 4)
        *reinterpret_cast<float4*>(&a_fragment[i]) =
            *reinterpret_cast<const float4*>(&a_tile[l][T::row(thread, i)]);
#pragma unroll
      for (int j = 0; j < T::kColumns; j += 4)
        *reinterpret_cast<float4*>(&b_fragment[j]) =
            *reinterpret_cast<const float4*>(&b_tile[l][T::column(thread, j)]);
#pragma unroll
      for (int i = 0; i < T::kRows; ++i)
#pragma unroll
        for (int j = 0; j < T::kColumns; ++j) acc[i][j] += a_fragment[i] * b_fragment[j];
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < T::kRows; ++i)
#pragma unroll
    for (int j = 0; j < T::kColumns; j += 4) {
      const long long row = first_row + T::row(thread, i);
      const long long column = first_column + T::column(thread, j);
      if (row >= m) continue;
      float* to = c + row * n + column;
      if (n % 4 == 0) {
        if (column < n)
          *reinterpret_cast<float4*>(to) =
              float4{acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]};
        continue;
      }
#pragma unroll
      for (int l = 0; l < 4; ++l)
        if (column + l < n) to[l] = acc[i][j + l];
    }
}

auto launch(gemm::Call p) {
  using Swept = Tile<BM, BN, BK, ROWS, COLUMNS>;
  return gemm::launch<register_tile<Swept>>({gemm::blocks(p.m, BM) * gemm::blocks(p.n, BN)},
                                            {Swept::kThreads}, p.a, p.b, p.c, p.m, p.n, p.k);
}
