// Register blocking in one dimension: a thread computes NR elements of a column of C. It loads an
// element of B once into a register and multiplies it by NR elements of A, the same for the whole
// warp: 1 + NR / 4 shared-memory loads per NR FMAs, where Tiled needs 5 / 4 per FMA. A's tile is
// stored transposed, so that the NR elements of a step are consecutive and load as vectors.
// Shared-memory bandwidth is still the bottleneck: each element of A is loaded by every warp and
// used once per thread. Only a two-dimensional thread tile reuses it.
#include <cstdint>

#include "kernels/parts/element.cuh"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/parts/warp_access.hpp"
#include "kernels/registry.hpp"

namespace gemm::simt::block_tile_1d {
namespace {

using enum Precision;

// A block computes BM x BN of C in K tiles of BK, a thread NR elements of it.
template <int BM, int BN, int BK, int NR>
struct Point {
  static constexpr int kThreads = BM / NR * BN;
  // Rows of a tile that all threads load in one pass.
  static constexpr int kRowsOfA = kThreads / BK, kRowsOfB = kThreads / BN;
  static_assert(BM % NR == 0 && BN % kLanes == 0, "a warp must be within one row of threads");
  static_assert(kThreads <= 1024, "at most 1024 threads per block");
  static_assert(kThreads % BK == 0 && BM % kRowsOfA == 0 && BK % kRowsOfB == 0,
                "all threads must load the same number of elements");

  // Registers: 64 per thread, or twice what the accumulators need. Only two steps are unrolled:
  // with more the compiler hoists so many loads that registers spill.
  static constexpr int kBlocks = 1024 / kThreads * 16 / (NR > 16 ? NR : 16);
  static constexpr int kUnroll = 2;

  // Padding: rows of A's transposed tile begin at multiples of 16 bytes, and the stores of a warp
  // spread over the banks.
  static constexpr int pitch(int element_bytes) { return BM + 16 / element_bytes; }
};

template <typename T, int BM, int BN, int BK, int NR>
__global__ void __launch_bounds__(Point<BM, BN, BK, NR>::kThreads, Point<BM, BN, BK, NR>::kBlocks)
    block_tile_1d(Problem p, TileGrid<BM, BN> grid, const T* __restrict__ a,
                  const T* __restrict__ b, T* __restrict__ c) {
  using P = Point<BM, BN, BK, NR>;
  alignas(16) __shared__ T a_tile[BK][P::pitch(sizeof(T))];
  __shared__ T b_tile[BK][BN];
  const int thread = threadIdx.x;
  const int x = thread % BN, y = thread / BN;
  const int a_x = thread % BK, a_y = thread / BK;

  const std::int64_t first_row = grid.first_row(), first_column = grid.first_column();
  const int rows = static_cast<int>(min(p.m - first_row, std::int64_t{BM}));
  const int columns = static_cast<int>(min(p.n - first_column, std::int64_t{BN}));
  a += (first_row + a_y) * p.k + a_x;
  b += y * p.n + first_column + x;
  c += (first_row + y * NR) * p.n + first_column + x;
  const int rows_of_a = rows - a_y, results = x < columns ? rows - y * NR : 0;

  Accumulator<T> acc[NR] = {};
  for (std::int64_t left = p.k; left > 0; left -= BK) {
    const int depth = static_cast<int>(min(left, std::int64_t{BK}));
#pragma unroll
    for (int i = 0; i < BM; i += P::kRowsOfA)
      a_tile[a_x][a_y + i] = i < rows_of_a && a_x < depth ? a[i * p.k] : T{};
#pragma unroll
    for (int i = 0; i < BK; i += P::kRowsOfB)
      b_tile[y + i][x] = y + i < depth && x < columns ? b[i * p.n] : T{};
    a += BK;
    b += BK * p.n;
    __syncthreads();
#pragma unroll P::kUnroll
    for (int l = 0; l < BK; ++l) {
      const Accumulator<T> b_value = widen(b_tile[l][x]);
#pragma unroll
      for (int i = 0; i < NR; ++i) acc[i] += widen(a_tile[l][y * NR + i]) * b_value;
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < NR; ++i)
    if (i < results) c[i * p.n] = narrow<T>(acc[i]);
}

template <int BM, int BN, int BK, int NR>
Traffic traffic(const Problem& p, const Device&) {
  using P = Point<BM, BN, BK, NR>;
  const int bytes = traits_of(p.precision).input_bytes, of_a = read_at_once(p.precision);
  const auto transposed = [=](int lane) { return lane % BK * P::pitch(bytes) + lane / BK; };
  const auto same = [](int) { return 0; };
  const int row = wavefronts(bytes, [](int lane) { return lane; });
  const int stores = BM / P::kRowsOfA * wavefronts(bytes, transposed) + BK / P::kRowsOfB * row;
  const int reads = BK * (NR / of_a * wavefronts(bytes, same, of_a) + row);
  return tile_traffic(p, BM, BN, BK, P::kThreads / kLanes * (stores + reads));
}

template <int BM, int BN, int BK, int NR, Precision... kPrecisions>
Kernel point() {
  return {
      .name = "BlockTile1D",
      .parameters = numbers({{"BM", BM}, {"BN", BN}, {"BK", BK}, {"NR", NR}}),
      .idea =
          "Register blocking in 1D: each thread computes a column segment of C, with its element "
          "of B in a register.",
      .source =
          "course report on CUDA matrix multiplication (Quadro RTX 5000), blocktiling, "
          "BM 128, BN 128, BK 8, NR 16",
      .rung = 20,
      .precisions = {kPrecisions...},
      .traffic = traffic<BM, BN, BK, NR>,
      .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
        return with_element<kPrecisions...>(p.precision, [&]<typename T>(T) {
          return tile_launch<T, TileGrid<BM, BN>>(block_tile_1d<T, BM, BN, BK, NR>,
                                                  Point<BM, BN, BK, NR>::kThreads, p, o);
        });
      },
  };
}

// FP64 has the point with fewer accumulators: 16 would take half of its registers.
const TunableRegistration points{{
    point<128, 128, 8, 16, f32, bf16, f16, s32>(),
    point<64, 64, 8, 8, f32, f64>(),
    point<64, 64, 8, 16, f32>(),
    point<64, 64, 16, 16, f32>(),
    point<64, 128, 8, 16, f32>(),
    point<128, 64, 16, 16, f32>(),
    point<128, 128, 16, 32, f32>(),
    point<128, 64, 8, 32, f32>(),
}};

}  // namespace
}  // namespace gemm::simt::block_tile_1d
