// Tiles in two levels, where public tutorials on SGEMM arrive (S. Boehm, "How to optimize a CUDA
// matmul kernel", 2022; yzhaiustc, "Optimizing SGEMM on NVIDIA Turing GPUs"): a block has slices of
// A and B in shared memory, A's turned, and a thread ROWS x COLUMNS of C in registers, so that it
// reads four values at once and uses each many times. The next slices are fetched while it
// multiplies. Written anew; any m, n and k.
//
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

// Four elements of a row, zeros where the matrix has ended. Rows begin at multiples of 16 bytes if
// they are multiples of 16 bytes long.
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
  static_assert(kRows % 4 == 0 && kColumns % 4 == 0 && kBlockK % 4 == 0, "in fours");
  static_assert(kBlockM % kRows == 0 && kBlockN % kColumns == 0, "threads fill the block");
  static_assert(kThreads <= 1024, "a block has at most 1024 threads");
  // Two blocks on a multiprocessor: while one waits at a barrier the other multiplies. With longer
  // slices on their way the registers would not suffice.
  static constexpr int kBlocks = kThreads <= 256 && kBlockK <= 8 ? 2 : 1;

  // A thread's rows and columns come in fours, spread over the block's, so that neighbouring
  // threads read neighbouring fours.
  static int row(int thread, int i) { return i / 4 * 4 * kDown + thread / kAcross * 4 + i % 4; }
  static int column(int thread, int j) {
    return j / 4 * 4 * kAcross + thread % kAcross * 4 + j % 4;
  }
};

// What a thread holds of a slice of kRows x kColumns on its way to shared memory.
template <int kRows, int kColumns, int kThreads>
struct Share {
  static constexpr int kFours = kRows * kColumns / 4, kCount = (kFours + kThreads - 1) / kThreads;
  float4 fours[kCount];

  static int row(int i) { return (i * kThreads + threadIdx.x) / (kColumns / 4); }
  static int column(int i) { return (i * kThreads + threadIdx.x) % (kColumns / 4) * 4; }
  // A slice need not have as many fours for each thread.
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
  // Four more a row, so that the turned slice is stored without bank conflicts.
  alignas(16) __shared__ float a_slice[T::kBlockK][T::kBlockM + 4];
  alignas(16) __shared__ float b_slice[T::kBlockK][T::kBlockN];
  const long long blocks_across = (n + T::kBlockN - 1) / T::kBlockN;
  const long long first_row = blockIdx.x / blocks_across * T::kBlockM;
  const long long first_column = blockIdx.x % blocks_across * T::kBlockN;
  const int thread = threadIdx.x;

  Share<T::kBlockM, T::kBlockK, T::kThreads> a_share;
  Share<T::kBlockK, T::kBlockN, T::kThreads> b_share;
  a_share.load(a, m, k, first_row, 0);
  b_share.load(b, k, n, 0, first_column);
  float sums[T::kRows][T::kColumns] = {};
  for (long long step = 0; step < k; step += T::kBlockK) {
#pragma unroll
    for (int i = 0; i < a_share.kCount; ++i)
      if (a_share.has(i)) {
        const int row = a_share.row(i), l = a_share.column(i);
        a_slice[l][row] = a_share.fours[i].x;
        a_slice[l + 1][row] = a_share.fours[i].y;
        a_slice[l + 2][row] = a_share.fours[i].z;
        a_slice[l + 3][row] = a_share.fours[i].w;
      }
#pragma unroll
    for (int i = 0; i < b_share.kCount; ++i)
      if (b_share.has(i))
        *reinterpret_cast<float4*>(&b_slice[b_share.row(i)][b_share.column(i)]) = b_share.fours[i];
    __syncthreads();
    if (step + T::kBlockK < k) {
      a_share.load(a, m, k, first_row, step + T::kBlockK);
      b_share.load(b, k, n, step + T::kBlockK, first_column);
    }
#pragma unroll
    for (int l = 0; l < T::kBlockK; ++l) {
      alignas(16) float from_a[T::kRows], from_b[T::kColumns];
#pragma unroll
      for (int i = 0; i < T::kRows; i += 4)
        *reinterpret_cast<float4*>(&from_a[i]) =
            *reinterpret_cast<const float4*>(&a_slice[l][T::row(thread, i)]);
#pragma unroll
      for (int j = 0; j < T::kColumns; j += 4)
        *reinterpret_cast<float4*>(&from_b[j]) =
            *reinterpret_cast<const float4*>(&b_slice[l][T::column(thread, j)]);
#pragma unroll
      for (int i = 0; i < T::kRows; ++i)
#pragma unroll
        for (int j = 0; j < T::kColumns; ++j) sums[i][j] += from_a[i] * from_b[j];
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
              float4{sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
        continue;
      }
#pragma unroll
      for (int l = 0; l < 4; ++l)
        if (column + l < n) to[l] = sums[i][j + l];
    }
}

auto launch(gemm::Call p) {
  using Swept = Tile<BM, BN, BK, ROWS, COLUMNS>;
  return gemm::launch<register_tile<Swept>>({gemm::blocks(p.m, BM) * gemm::blocks(p.n, BN)},
                                            {Swept::kThreads}, p.a, p.b, p.c, p.m, p.n, p.k);
}
