// Register blocking in two dimensions: each thread computes a thread tile of kTM x kTN. A step
// along k loads kTM + kTN operands from shared memory for kTM * kTN FMAs, where the one-dimensional
// tile needed nearly one load per FMA. The columns of a thread are as far apart as there are
// threads in a row, so that consecutive lanes read consecutive banks. Cost: registers, and with
// them occupancy.
#include <cstdint>

#include "kernels/parts/element.cuh"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/parts/warp_access.hpp"
#include "kernels/registry.hpp"

namespace gemm::simt::block_tile_2d {
namespace {

using enum Precision;

template <int kBM, int kBN, int kTM, int kTN>
constexpr int kThreads = (kBM / kTM) * (kBN / kTN);

template <typename T, int kBM, int kBN, int kBK, int kTM, int kTN>
__global__ void __launch_bounds__(kThreads<kBM, kBN, kTM, kTN>)
    block_tile_2d(Problem p, TileGrid<kBM, kBN> grid, const T* __restrict__ a,
                  const T* __restrict__ b, T* __restrict__ c) {
  constexpr int kBlock = kThreads<kBM, kBN, kTM, kTN>;
  constexpr int kDown = kBM / kTM, kAcross = kBN / kTN;
  static_assert(kBM % kTM == 0 && kBN % kTN == 0 && kBlock <= 1024);
  static_assert(kBM * kBK % kBlock == 0 && kBK * kBN % kBlock == 0,
                "all threads must load the same number of elements");
  // 16-bit elements are widened once here instead of at every FMA.
  __shared__ Accumulator<T> a_tile[kBM][kBK];
  __shared__ Accumulator<T> b_tile[kBK][kBN];
  const std::int64_t row0 = grid.first_row(), column0 = grid.first_column();
  const int x = threadIdx.x % kAcross, y = threadIdx.x / kAcross;

  Accumulator<T> acc[kTM][kTN] = {};
  for (std::int64_t step = 0; step < p.k; step += kBK) {
#pragma unroll
    for (int i = 0; i < kBM * kBK; i += kBlock) {
      const int row = (i + threadIdx.x) / kBK, k = (i + threadIdx.x) % kBK;
      const bool inside = row0 + row < p.m && step + k < p.k;
      a_tile[row][k] = inside ? widen(a[(row0 + row) * p.k + step + k]) : Accumulator<T>{};
    }
#pragma unroll
    for (int i = 0; i < kBK * kBN; i += kBlock) {
      const int k = (i + threadIdx.x) / kBN, column = (i + threadIdx.x) % kBN;
      const bool inside = step + k < p.k && column0 + column < p.n;
      b_tile[k][column] = inside ? widen(b[(step + k) * p.n + column0 + column]) : Accumulator<T>{};
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kBK; ++k) {
      Accumulator<T> a_column[kTM], b_row[kTN];
#pragma unroll
      for (int i = 0; i < kTM; ++i) a_column[i] = a_tile[y + i * kDown][k];
#pragma unroll
      for (int j = 0; j < kTN; ++j) b_row[j] = b_tile[k][x + j * kAcross];
#pragma unroll
      for (int i = 0; i < kTM; ++i)
#pragma unroll
        for (int j = 0; j < kTN; ++j) acc[i][j] += a_column[i] * b_row[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kTM; ++i)
#pragma unroll
    for (int j = 0; j < kTN; ++j) {
      const std::int64_t row = row0 + y + i * kDown, column = column0 + x + j * kAcross;
      if (row < p.m && column < p.n) c[row * p.n + column] = narrow<T>(acc[i][j]);
    }
}

template <int kBM, int kBN, int kBK, int kTM, int kTN>
Traffic traffic(const Problem& p, const Device&) {
  constexpr int kAcross = kBN / kTN;
  constexpr int kWarps = kThreads<kBM, kBN, kTM, kTN> / kLanes;
  const bool fp64 = p.precision == Precision::f64;
  const int bytes = fp64 ? 8 : 4,
            at_once = fp64 ? 2 : 4;  // the compiler vectorizes the loads of A along k
  const int row = wavefronts(bytes, [](int lane) { return lane; });
  const int stores = (kBM * kBK + kBK * kBN) / kLanes * row;
  const int of_a = wavefronts(
      bytes, [](int lane) { return lane / kAcross * kBK; }, at_once);
  const int of_b = wavefronts(bytes, [](int lane) { return lane % kAcross; });
  return tile_traffic(p, kBM, kBN, kBK,
                      stores + kWarps * kBK * (kTM * of_a / at_once + kTN * of_b));
}

template <int kBM, int kBN, int kBK, int kTM, int kTN, Precision... kPrecisions>
Kernel point() {
  return {
      .name = "BlockTile2D",
      .parameters = numbers({{"BM", kBM}, {"BN", kBN}, {"BK", kBK}, {"TM", kTM}, {"TN", kTN}}),
      .idea =
          "Register blocking in 2D: a thread tile of TM x TN does TM * TN FMAs per TM + TN loads.",
      .source =
          "the next step that the course report names; Boehm, How to Optimize a CUDA Matmul Kernel",
      .rung = 24,
      .precisions = {kPrecisions...},
      .traffic = traffic<kBM, kBN, kBK, kTM, kTN>,
      .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
        return with_element<kPrecisions...>(p.precision, [&]<typename T>(T) {
          return tile_launch<T, TileGrid<kBM, kBN>>(block_tile_2d<T, kBM, kBN, kBK, kTM, kTN>,
                                                    kThreads<kBM, kBN, kTM, kTN>, p, o);
        });
      },
  };
}

const TunableRegistration registration({
    point<128, 128, 16, 8, 8, f32, s32, f16, bf16>(),
    point<128, 128, 8, 8, 8, f32>(),
    point<128, 64, 8, 8, 8, f32>(),
    point<64, 128, 8, 8, 8, f32>(),
    point<64, 64, 8, 8, 8, f32>(),
    point<64, 64, 8, 4, 8, f32, f64>(),
    point<64, 64, 16, 4, 4, f32>(),
});

}  // namespace
}  // namespace gemm::simt::block_tile_2d
