// Kernels that are right, and slow for one reason each, which tools/explain must name first:
// faulty_kernels_test.py. Others are in faulty_kernels/.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <chrono>
#include <cstdint>

#include "bench/base/cuda.hpp"
#include "bench/controls/faulty_kernels/faulty_test.cuh"
#include "kernels/registry.hpp"

namespace gemm::bench {
namespace {

constexpr int kTile = 32;

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

// 64 sums and 16 factors a thread where its block leaves it 64 registers.
constexpr int kSpilledThreads = 1024, kSums = 8;
__global__ void __launch_bounds__(kSpilledThreads)
    faulty_spilling(Problem p, const float* a, const float* b, float* c) {
  const std::int64_t columns = pieces(p.n, kTile * kSums);
  const std::int64_t row = (blockIdx.x / columns * kTile + threadIdx.y) * kSums;
  const std::int64_t column = blockIdx.x % columns * kTile * kSums + threadIdx.x;
  float sums[kSums][kSums] = {};
  for (std::int64_t l = 0; l < p.k; ++l) {
    float of_a[kSums], of_b[kSums];
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      of_a[i] = row + i < p.m ? a[(row + i) * p.k + l] : 0;
      of_b[i] = column + kTile * i < p.n ? b[l * p.n + column + kTile * i] : 0;
    }
#pragma unroll
    for (int i = 0; i < kSums; ++i)
#pragma unroll
      for (int j = 0; j < kSums; ++j) sums[i][j] += of_a[i] * of_b[j];
  }
#pragma unroll
  for (int i = 0; i < kSums; ++i)
#pragma unroll
    for (int j = 0; j < kSums; ++j)
      if (row + i < p.m && column + kTile * j < p.n)
        c[(row + i) * p.n + column + kTile * j] = sums[i][j];
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

std::int64_t tiles(const Problem& p) { return pieces(p.m, kTile) * pieces(p.n, kTile); }

template <auto kKernel>
Launch by_tiles(const Problem& p, const Device&, const Operands& o) {
  return [=](Stream stream) { start(kKernel, tiles(p), dim3(kTile, kTile), p, o, stream); };
}

const Registration uncoalesced(faulty("FaultyUncoalesced", "Slow: uncoalesced loads.",
                                      by_tiles<faulty_uncoalesced>));
const Registration bank_conflicts(faulty("FaultyBankConflicts", "Slow: 32 lanes in one bank.",
                                         by_tiles<faulty_bank_conflicts>));
const Registration spilling(
    faulty("FaultySpilling", "Slow: registers spill.",
           [](const Problem& p, const Device&, const Operands& o) -> Launch {
             const std::int64_t blocks = pieces(p.m, kTile * kSums) * pieces(p.n, kTile * kSums);
             return [=](Stream stream) {
               start(faulty_spilling, blocks, dim3(kTile, kSpilledThreads / kTile), p, o, stream);
             };
           }));
const Registration low_occupancy(faulty("FaultyLowOccupancy", "Slow: too few warps.",
                                        [](const Problem& p, const Device&,
                                           const Operands& o) -> Launch {
                                          return [=](Stream stream) {
                                            start(faulty_low_occupancy, p.m * pieces(p.n, kTile),
                                                  dim3(kTile), p, o, stream);
                                          };
                                        }));
const Registration tail_wave(faulty(
    "FaultyTailWave", "Slow: one block more than fits.",
    [](const Problem& p, const Device& device, const Operands& o) -> Launch {
      constexpr int kThreads = 1024;
      int fit = 0;
      check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, faulty_tail_wave, kThreads, 0));
      const int blocks = fit * device.sm_count + 1;
      return [=](Stream stream) { start(faulty_tail_wave, blocks, dim3(kThreads), p, o, stream); };
    }));
const Registration host_bound(
    faulty("FaultyHostBound", "Slow: many launches, each shorter than the host needs for it.",
           [](const Problem& p, const Device&, const Operands& o) -> Launch {
             return [=](Stream stream) {
               using Clock = std::chrono::steady_clock;
               for (std::int64_t first = 0; first < p.k; first += kSteps) {
                 start(faulty_host_bound, tiles(p), dim3(kTile, kTile), p, o, stream, first);
                 // What a program does between launches.
                 const auto until = Clock::now() + std::chrono::nanoseconds(1500);
                 while (Clock::now() < until) continue;
               }
             };
           }));
const Registration power_capped(
    faulty("FaultyPowerCapped", "Slow: the power cap holds the clock down.",
           [](const Problem& p, const Device&, const Operands& o) -> Launch {
             return [=](Stream stream) {
               start(faulty_power_capped, pieces(p.m * p.n, kHungryThreads), dim3(kHungryThreads),
                     p, o, stream, false);
             };
           }));

}  // namespace
}  // namespace gemm::bench
