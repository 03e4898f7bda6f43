// Kernels that are right, and slow for one reason each, which tools/explain must name
// (faulty_kernels_test.py). Linked into a gemm_bench of their own; C is any m x n, FP32.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>

#include "bench/base/cuda.hpp"
#include "kernels/registry.hpp"

namespace gemm::bench {
namespace {

constexpr int kTile = 32;

__host__ __device__ constexpr std::int64_t pieces(std::int64_t whole, int piece) {
  return (whole + piece - 1) / piece;
}

// The element of C of a thread, where neighbouring threads have neighbouring columns.
struct Element {
  std::int64_t row, column;
  bool exists;
};
__device__ Element element(const Problem& p) {
  const std::int64_t columns = pieces(p.n, static_cast<int>(blockDim.x));
  const std::int64_t row = blockIdx.x / columns * blockDim.y + threadIdx.y;
  const std::int64_t column = blockIdx.x % columns * blockDim.x + threadIdx.x;
  return {row, column, row < p.m && column < p.n};
}

// A row of A times a column of B; four sums, so that loads need not wait for each other.
__device__ float product(const Problem& p, const float* a, const float* b, std::int64_t row,
                         std::int64_t column) {
  float sums[4] = {};
  std::int64_t l = 0;
  for (; l + 4 <= p.k; l += 4)
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] += a[row * p.k + l + i] * b[(l + i) * p.n + column];
  for (; l < p.k; ++l) sums[0] += a[row * p.k + l] * b[l * p.n + column];
  return sums[0] + sums[1] + sums[2] + sums[3];
}

// Neighbouring threads take neighbouring rows: each load of A touches 32 sectors.
__global__ void faulty_uncoalesced(Problem p, const float* a, const float* b, float* c) {
  const std::int64_t columns = pieces(p.n, kTile);
  const std::int64_t row = blockIdx.x / columns * kTile + threadIdx.x;
  const std::int64_t column = blockIdx.x % columns * kTile + threadIdx.y;
  if (row < p.m && column < p.n) c[row * p.n + column] = product(p, a, b, row, column);
}

// Tiles are stored transposed, in rows of 32 words: a warp's lanes meet in one bank.
__global__ void faulty_bank_conflicts(Problem p, const float* a, const float* b, float* c) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const std::int64_t columns = pieces(p.n, kTile);
  const int x = threadIdx.x, y = threadIdx.y;
  const std::int64_t row = blockIdx.x / columns * kTile + y;
  const std::int64_t column = blockIdx.x % columns * kTile + x;
  float sum = 0;
  for (std::int64_t k0 = 0; k0 < p.k; k0 += kTile) {
    tile_a[y][x] = row < p.m && k0 + x < p.k ? a[row * p.k + k0 + x] : 0;
    tile_b[x][y] = column < p.n && k0 + y < p.k ? b[(k0 + y) * p.n + column] : 0;
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; ++l) sum += tile_a[y][l] * tile_b[x][l];
    __syncthreads();
  }
  if (row < p.m && column < p.n) c[row * p.n + column] = sum;
}

// 8 x 8 sums and 16 factors a thread, in blocks of kEdge threads across.
template <int kEdge>
__device__ void square_of_sums(const Problem& p, const float* a, const float* b, float* c) {
  constexpr int kSide = 8;
  const std::int64_t columns = pieces(p.n, kEdge * kSide);
  const std::int64_t row = (blockIdx.x / columns * kEdge + threadIdx.y) * kSide;
  const std::int64_t column = blockIdx.x % columns * kEdge * kSide + threadIdx.x;
  float sums[kSide][kSide] = {};
  for (std::int64_t l = 0; l < p.k; ++l) {
    float of_a[kSide], of_b[kSide];
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
      of_a[i] = row + i < p.m ? a[(row + i) * p.k + l] : 0;
      of_b[i] = column + kEdge * i < p.n ? b[l * p.n + column + kEdge * i] : 0;
    }
#pragma unroll
    for (int i = 0; i < kSide; ++i)
#pragma unroll
      for (int j = 0; j < kSide; ++j) sums[i][j] += of_a[i] * of_b[j];
  }
#pragma unroll
  for (int i = 0; i < kSide; ++i)
#pragma unroll
    for (int j = 0; j < kSide; ++j)
      if (row + i < p.m && column + kEdge * j < p.n)
        c[(row + i) * p.n + column + kEdge * j] = sums[i][j];
}
// A block of 1,024 threads leaves each 64 registers.
__global__ void __launch_bounds__(1024)
    faulty_spilling(Problem p, const float* a, const float* b, float* c) {
  square_of_sums<32>(p, a, b, c);
}
// So many blocks are promised that 32 registers are left.
__global__ void __launch_bounds__(256, 8)
    faulty_launch_bounds(Problem p, const float* a, const float* b, float* c) {
  square_of_sums<16>(p, a, b, c);
}

// One warp with so much shared memory that few of its kind fit, and one load after the other.
__global__ void faulty_low_occupancy(Problem p, const float* a, const float* b, float* c) {
  __shared__ float held[(48 << 10) / sizeof(float)];
  const std::int64_t columns = pieces(p.n, kTile);
  const std::int64_t row = blockIdx.x / columns,
                     column = blockIdx.x % columns * kTile + threadIdx.x;
  float* mine = held + threadIdx.x;
  *mine = 0;
  if (column >= p.n) return;
#pragma unroll 1
  for (std::int64_t l = 0; l < p.k; ++l) *mine += a[row * p.k + l] * b[l * p.n + column];
  c[row * p.n + column] = *mine;
}

// All blocks do the same work, and one more than the GPU holds was started: it works alone.
__global__ void faulty_tail_wave(Problem p, const float* a, const float* b, float* c) {
  const std::int64_t of_c = p.m * p.n,
                     share = pieces(pieces(of_c, static_cast<int>(gridDim.x)), 32);
  const std::int64_t first = 32 * share * blockIdx.x;
  for (std::int64_t i = first + threadIdx.x; i < min(first + 32 * share, of_c); i += blockDim.x)
    c[i] = product(p, a, b, i / p.n, i % p.n);
}

// Four steps along k a launch: it ends before the host has sent the next one.
constexpr std::int64_t kSteps = 4;
__global__ void faulty_host_bound(Problem p, const float* a, const float* b, float* c,
                                  std::int64_t first) {
  const std::int64_t columns = pieces(p.n, kTile);
  const std::int64_t row = blockIdx.x / columns * kTile + threadIdx.y;
  const std::int64_t column = blockIdx.x % columns * kTile + threadIdx.x;
  if (row >= p.m || column >= p.n) return;
  float sum = first == 0 ? 0 : c[row * p.n + column];
#pragma unroll
  for (int i = 0; i < kSteps; ++i)
    if (first + i < p.k) sum += a[row * p.k + first + i] * b[(first + i) * p.n + column];
  c[row * p.n + column] = sum;
}

// A product, and useless work with it: tensor cores and FMAs at once, on operands
// that change with each instruction, in all their bits. `never` keeps it: the compiler does not
// know that it is false.
constexpr int kHungryThreads = 256;
__global__ void __launch_bounds__(kHungryThreads, 3)
    faulty_power_capped(Problem p, const float* a, const float* b, float* c, bool never) {
  namespace wmma = nvcuda::wmma;
  constexpr int kSide = 16, kSquare = kSide * kSide, kChains = 2, kFmas = 16;
  __shared__ half values[2 * kChains * kSquare];
  for (int i = threadIdx.x; i < 2 * kChains * kSquare; i += kHungryThreads)
    values[i] = __float2half(a[i % (p.m * p.k)]);
  __syncthreads();
  wmma::fragment<wmma::matrix_a, kSide, kSide, kSide, half, wmma::row_major> of_a[kChains];
  wmma::fragment<wmma::matrix_b, kSide, kSide, kSide, half, wmma::row_major> of_b[kChains];
  wmma::fragment<wmma::accumulator, kSide, kSide, kSide, float> chains[kChains];
#pragma unroll
  for (int x = 0; x < kChains; ++x) {
    wmma::load_matrix_sync(of_a[x], values + 2 * x * kSquare, kSide);
    wmma::load_matrix_sync(of_b[x], values + (2 * x + 1) * kSquare, kSide);
    wmma::fill_fragment(chains[x], 0);
  }
  const std::int64_t i = std::int64_t{blockIdx.x} * kHungryThreads + threadIdx.x;
  const std::int64_t row = min(i / p.n, p.m - 1), column = i % p.n;
  float sum = 0, fmas[kFmas] = {};
  for (std::int64_t l = 0; l < p.k; ++l) {
    const float x = a[row * p.k + l], y = b[l * p.n + column];
    sum += x * y;
#pragma unroll
    for (int turn = 0; turn < 2; ++turn)
#pragma unroll
      for (int i = 0; i < kChains; ++i)
        wmma::mma_sync(chains[i], of_a[(i + turn) % kChains], of_b[i], chains[i]);
#pragma unroll
    for (auto& fma : fmas) fma = fma * x + y;
  }
  if (never) {
#pragma unroll
    for (const auto& fma : fmas) sum += fma;
#pragma unroll
    for (const auto& chain : chains)
      for (int e = 0; e < chain.num_elements; ++e) sum += chain.x[e];
  }
  if (i < p.m * p.n) c[i] = sum;
}

// --- What is computed beside the product ---------------------------------------------------------

// The sum is a double: operands are converted and multiplied in FP64.
__global__ void faulty_double_sum(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  double sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l)
    sum += static_cast<double>(a[row * p.k + l]) * b[l * p.n + column];
  c[row * p.n + column] = static_cast<float>(sum);
}

// A literal without f: each product becomes a double, is scaled, and becomes a float again.
__global__ void faulty_double_literal(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l)
    sum += 0.5 * a[row * p.k + l] * (2.0 * b[l * p.n + column]);
  c[row * p.n + column] = sum;
}

// Operands pass through fixed point with 40 bits behind the point, in each product.
__device__ float through_fixed_point(float x) {
  return __ll2float_rn(__float2ll_rn(x * 0x1p40f)) * 0x1p-40f;
}
__global__ void faulty_conversions(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l)
    sum += through_fixed_point(a[row * p.k + l]) * through_fixed_point(b[l * p.n + column]);
  c[row * p.n + column] = sum;
}

// The place along k comes from a division by a number that only the host knows.
__global__ void faulty_division(Problem p, const float* a, const float* b, float* c,
                                std::int64_t pitch) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float sum = 0;
  for (std::int64_t step = 0; step < p.k * pitch; step += pitch) {
    const std::int64_t l = step / pitch;
    sum += a[row * p.k + l] * b[l * p.n + column];
  }
  c[row * p.n + column] = sum;
}

// Each operand is found by a function of four strides with a modulo, as in generic tensor code.
__device__ std::int64_t wrapped(int i, int j, int stride, int rows, int columns) {
  return static_cast<std::int64_t>((i + rows) % rows) * stride + (j + columns) % columns;
}
__global__ void faulty_index_function(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  float sum = 0;
  for (int l = 0; l < k; ++l)
    sum += a[wrapped(static_cast<int>(row), l, k, m, k)] *
           b[wrapped(l, static_cast<int>(column), n, k, n)];
  c[row * p.n + column] = sum;
}

// --- Paths of threads, and waiting for each other ------------------------------------------------

// Lanes take eight paths, one after the other.
__global__ void faulty_divergent(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float sum = 0;
#pragma unroll 1
  for (int path = 0; path < 8; ++path) {
    if (static_cast<int>(threadIdx.x) % 8 != path) continue;
    for (std::int64_t l = 0; l < p.k; ++l) sum += a[row * p.k + l] * b[l * p.n + column];
  }
  c[row * p.n + column] = sum;
}

// One lane in four computes four elements, the others have left.
__global__ void faulty_few_lanes(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists || threadIdx.x % 4 != 0) return;
  for (std::int64_t j = column; j < min(column + 4, p.n); ++j) {
    float sum = 0;
    for (std::int64_t l = 0; l < p.k; ++l) sum += a[row * p.k + l] * b[l * p.n + j];
    c[row * p.n + j] = sum;
  }
}

// Blocks of eight threads: 24 lanes of each warp do not exist.
__global__ void faulty_small_blocks(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l) sum += a[row * p.k + l] * b[l * p.n + column];
  c[row * p.n + column] = sum;
}

// A barrier after each product of a tile.
__global__ void faulty_barriers(Problem p, const float* a, const float* b, float* c) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const auto [row, column, exists] = element(p);
  const int x = threadIdx.x, y = threadIdx.y;
  float sum = 0;
  for (std::int64_t k0 = 0; k0 < p.k; k0 += kTile) {
    tile_a[y][x] = row < p.m && k0 + x < p.k ? a[row * p.k + k0 + x] : 0;
    tile_b[y][x] = column < p.n && k0 + y < p.k ? b[(k0 + y) * p.n + column] : 0;
    __syncthreads();
    for (int l = 0; l < kTile; ++l) {
      sum += tile_a[y][l] * tile_b[l][x];
      __syncthreads();
    }
  }
  if (exists) c[row * p.n + column] = sum;
}

// The first warp loads the tiles of 32, while the others wait.
__global__ void faulty_one_loader(Problem p, const float* a, const float* b, float* c) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const auto [row, column, exists] = element(p);
  const int x = threadIdx.x, y = threadIdx.y;
  float sum = 0;
  for (std::int64_t k0 = 0; k0 < p.k; k0 += kTile) {
    if (y == 0)
#pragma unroll 1
      for (int i = 0; i < kTile; ++i) {
        tile_a[i][x] = row + i < p.m && k0 + x < p.k ? a[(row + i) * p.k + k0 + x] : 0;
        tile_b[i][x] = column < p.n && k0 + i < p.k ? b[(k0 + i) * p.n + column] : 0;
      }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kTile; ++l) sum += tile_a[y][l] * tile_b[l][x];
    __syncthreads();
  }
  if (exists) c[row * p.n + column] = sum;
}

// A function that is not inlined: a call and a return for each product.
__device__ __noinline__ float called(float x, float y, float sum) { return x * y + sum; }
__global__ void faulty_calls(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l) sum = called(a[row * p.k + l], b[l * p.n + column], sum);
  c[row * p.n + column] = sum;
}

// --- Where values are kept, and how they are added -----------------------------------------------

// Sixteen sums, chosen by an index that the compiler does not know: an array in local memory.
__global__ void faulty_indexed_sums(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float sums[16] = {};
#pragma unroll 1
  for (std::int64_t l = 0; l < p.k; ++l) sums[l * 7 % 16] += a[row * p.k + l] * b[l * p.n + column];
  float sum = 0;
  for (int i = 0; i < 16; ++i) sum += sums[i];
  c[row * p.n + column] = sum;
}

// 32 elements of A are copied first, and read at run-time indices.
__global__ void faulty_indexed_operands(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  float kept[32], sum = 0;
  for (std::int64_t k0 = 0; k0 < p.k; k0 += 32) {
    for (int i = 0; i < 32; ++i) kept[i] = k0 + i < p.k ? a[row * p.k + k0 + i] : 0;
#pragma unroll 1
    for (int i = 0; i < 32; ++i) {
      const std::int64_t l = k0 + (i * 5 + row) % 32;
      if (l < p.k) sum += kept[l - k0] * b[l * p.n + column];
    }
  }
  c[row * p.n + column] = sum;
}

// Each product is added to C in memory.
__global__ void faulty_atomic_products(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  for (std::int64_t l = 0; l < p.k; ++l)
    atomicAdd(c + row * p.n + column, a[row * p.k + l] * b[l * p.n + column]);
}

// A warp's lanes share k; each adds what it has to one sum in shared memory, step by step.
__global__ void faulty_shared_atomics(Problem p, const float* a, const float* b, float* c) {
  __shared__ float sums[32];
  const std::int64_t columns = pieces(p.n, 32);
  const std::int64_t row = blockIdx.x / columns;
  const std::int64_t column = blockIdx.x % columns * 32 + threadIdx.y;
  if (threadIdx.x == 0) sums[threadIdx.y] = 0;
  __syncwarp();
  if (row < p.m && column < p.n)
    for (std::int64_t l = threadIdx.x; l < p.k; l += 32)
      atomicAdd(sums + threadIdx.y, a[row * p.k + l] * b[l * p.n + column]);
  __syncwarp();
  if (threadIdx.x == 0 && row < p.m && column < p.n) c[row * p.n + column] = sums[threadIdx.y];
}

// --- As textbooks, samples and blogs have them ---------------------------------------------------

// A textbook's first kernel, with rows along x.
__global__ void faulty_textbook(Problem p, const float* M, const float* N, float* P) {
  const std::int64_t blocks_y = pieces(p.n, 16);
  const std::int64_t Row = blockIdx.x / blocks_y * 16 + threadIdx.x;
  const std::int64_t Col = blockIdx.x % blocks_y * 16 + threadIdx.y;
  if (Row >= p.m || Col >= p.n) return;
  float Pvalue = 0;
  for (std::int64_t k = 0; k < p.k; ++k) Pvalue += M[Row * p.k + k] * N[k * p.n + Col];
  P[Row * p.n + Col] = Pvalue;
}

// A sample's tiles, with As and Bs addressed as if they were stored by columns.
template <int BLOCK_SIZE>
__global__ void faulty_sample(Problem p, const float* A, const float* B, float* C) {
  __shared__ float As[BLOCK_SIZE][BLOCK_SIZE], Bs[BLOCK_SIZE][BLOCK_SIZE];
  const auto [row, column, exists] = element(p);
  const int tx = threadIdx.x, ty = threadIdx.y;
  float Csub = 0;
  for (std::int64_t k0 = 0; k0 < p.k; k0 += BLOCK_SIZE) {
    As[tx][ty] = row < p.m && k0 + tx < p.k ? A[row * p.k + k0 + tx] : 0;
    Bs[tx][ty] = column < p.n && k0 + ty < p.k ? B[(k0 + ty) * p.n + column] : 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BLOCK_SIZE; ++k) Csub += As[k][ty] * Bs[tx][k];
    __syncthreads();
  }
  if (exists) C[row * p.n + column] = Csub;
}

// A library's template whose alpha and beta are double by default.
template <typename T, typename Scale = double>
__global__ void faulty_template(Problem p, const T* a, const T* b, T* c) {
  const auto [row, column, exists] = element(p);
  if (!exists) return;
  const Scale alpha = 1;
  T sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l)
    sum = static_cast<T>(sum + alpha * a[row * p.k + l] * b[l * p.n + column]);
  c[row * p.n + column] = sum;
}

// A reduction: one thread of a block sums what its warps found, while these wait.
__global__ void faulty_reduction(Problem p, const float* a, const float* b, float* c) {
  __shared__ float partial[256];
  const std::int64_t row = blockIdx.x / p.n, column = blockIdx.x % p.n;
  float sum = 0;
  for (std::int64_t l = threadIdx.x; l < p.k; l += 256)
    sum += a[row * p.k + l] * b[l * p.n + column];
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int i = 1; i < 256; ++i) partial[0] += partial[i];
    c[row * p.n + column] = partial[0];
  }
  __syncthreads();
}

// --- The table --------------------------------------------------------------------------------

template <typename... Arguments>
void start(void (*kernel)(Problem, const float*, const float*, float*, Arguments...),
           std::int64_t blocks, dim3 threads, const Problem& p, const Operands& o, Stream stream,
           Arguments... more) {
  if (blocks > 0x7fffffff) throw std::length_error("more blocks than a grid has");
  kernel<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(p, static_cast<const float*>(o.a),
                                                                static_cast<const float*>(o.b),
                                                                static_cast<float*>(o.c), more...);
}

// A block of kX x kY threads for each kColumns x kRows elements of C.
template <auto kKernel, int kX = kTile, int kY = kTile, int kColumns = kX, int kRows = kY>
Launch tiled(const Problem& p, const Device&, const Operands& o) {
  const std::int64_t blocks = pieces(p.n, kColumns) * pieces(p.m, kRows);
  return [=](Stream stream) { start(kKernel, blocks, dim3(kX, kY), p, o, stream); };
}

// The same into a C of zeros, to which the kernel adds.
template <auto kKernel>
Launch adding(const Problem& p, const Device& device, const Operands& o) {
  return [=, add = tiled<kKernel>(p, device, o)](Stream stream) {
    check(cudaMemsetAsync(o.c, 0, sizeof(float) * p.m * p.n, stream));
    add(stream);
  };
}

Launch one_block_more(const Problem& p, const Device& device, const Operands& o) {
  constexpr int kThreads = 1024;
  int fit = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, faulty_tail_wave, kThreads, 0));
  const int blocks = fit * device.sm_count + 1;
  return [=](Stream stream) { start(faulty_tail_wave, blocks, dim3(kThreads), p, o, stream); };
}

Launch many_launches(const Problem& p, const Device&, const Operands& o) {
  return [=](Stream stream) {
    using Clock = std::chrono::steady_clock;
    const std::int64_t blocks = pieces(p.m, kTile) * pieces(p.n, kTile);
    for (std::int64_t first = 0; first < p.k; first += kSteps) {
      start(faulty_host_bound, blocks, dim3(kTile, kTile), p, o, stream, first);
      // What a program does between launches.
      const auto until = Clock::now() + std::chrono::nanoseconds(1500);
      while (Clock::now() < until) continue;
    }
  };
}

Launch hungry(const Problem& p, const Device&, const Operands& o) {
  return [=](Stream stream) {
    start(faulty_power_capped, pieces(p.m * p.n, kHungryThreads), dim3(kHungryThreads), p, o,
          stream, false);
  };
}

Launch dividing(const Problem& p, const Device&, const Operands& o) {
  const std::int64_t blocks = pieces(p.n, kTile) * pieces(p.m, kTile);
  return [=](Stream stream) {
    start(faulty_division, blocks, dim3(kTile, kTile), p, o, stream, std::int64_t{3});
  };
}

constexpr struct {
  const char *name, *idea;
  Launch (*prepare)(const Problem&, const Device&, const Operands&);
} kFaults[] = {
    {"FaultyUncoalesced", "Slow: uncoalesced loads.", tiled<faulty_uncoalesced>},
    {"FaultyBankConflicts", "Slow: 32 lanes in one bank.", tiled<faulty_bank_conflicts>},
    {"FaultySpilling", "Slow: registers spill.", tiled<faulty_spilling, 32, 32, 256, 256>},
    {"FaultyLowOccupancy", "Slow: too few warps.", tiled<faulty_low_occupancy, 32, 1>},
    {"FaultyTailWave", "Slow: one block more than fits.", one_block_more},
    {"FaultyHostBound", "Slow: many launches, each shorter than the host needs for it.",
     many_launches},
    {"FaultyPowerCapped", "Slow: the power cap holds the clock down.", hungry},
    {"FaultyDoubleSum", "Slow: sums in FP64.", tiled<faulty_double_sum>},
    {"FaultyDoubleLiteral", "Slow: literals are doubles.", tiled<faulty_double_literal>},
    {"FaultyConversions", "Slow: conversions in each product.", tiled<faulty_conversions>},
    {"FaultyDivision", "Slow: a division in each product.", dividing},
    {"FaultyIndexFunction", "Slow: four modulos a product.", tiled<faulty_index_function>},
    {"FaultyDivergent", "Slow: eight paths in a warp.", tiled<faulty_divergent>},
    {"FaultyFewLanes", "Slow: one lane of four works.", tiled<faulty_few_lanes>},
    {"FaultySmallBlocks", "Slow: blocks of eight threads.", tiled<faulty_small_blocks, 8, 1>},
    {"FaultyBarriers", "Slow: a barrier for each product.", tiled<faulty_barriers>},
    {"FaultyOneLoader", "Slow: one warp of 32 loads.", tiled<faulty_one_loader>},
    {"FaultyCalls", "Slow: a call for each product.", tiled<faulty_calls>},
    {"FaultyIndexedSums", "Slow: run-time indices of sums.", tiled<faulty_indexed_sums>},
    {"FaultyIndexedOperands", "Slow: run-time indices of operands.",
     tiled<faulty_indexed_operands>},
    {"FaultyLaunchBounds", "Slow: launch bounds leave 32 registers.",
     tiled<faulty_launch_bounds, 16, 16, 128, 128>},
    {"FaultyAtomicProducts", "Slow: an atomic per product.", adding<faulty_atomic_products>},
    {"FaultySharedAtomics", "Slow: atomics of a warp meet in one word.",
     tiled<faulty_shared_atomics, 32, 32, 32, 1>},
    {"FaultyTextbook", "Slow: neighbouring threads have neighbouring rows.",
     tiled<faulty_textbook, 16, 16>},
    {"FaultySample", "Slow: tiles are read by columns.", tiled<faulty_sample<32>>},
    {"FaultyTemplate", "Slow: a scale is a double.", tiled<faulty_template<float>>},
    {"FaultyReduction", "Slow: one thread sums, 255 wait.", tiled<faulty_reduction, 256, 1, 1, 1>},
};

struct Registrations {
  Registrations() {
    for (const auto& one : kFaults)
      Registration{{.name = one.name,
                    .idea = one.idea,
                    .source = "ours",
                    .rung = 99,
                    .precisions = {Precision::f32},
                    .prepare = one.prepare}};
  }
} const registrations;

}  // namespace
}  // namespace gemm::bench
