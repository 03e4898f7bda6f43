// Vector loads and stores: 16 bytes per instruction. They move the same bytes with a quarter of the
// instructions, and issue slots are what is scarce: each instruction that is not an FMA takes the
// slot of one. A is transposed on the way to shared memory, so that the rows of a thread are
// consecutive and load as vectors, as its columns do. Cost: rows must begin at multiples of 16
// bytes, or a slower variant runs.
#include <cstdint>

#include "kernels/ladder/fp32/vector_tile.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::vectorized {
namespace {

template <int kBM, int kBN, int kBK, int kTM, int kTN>
struct Tiling {
  static constexpr int kAcross = kBN / kTN, kThreads = kBM / kTM * kAcross;
  static constexpr int kRowStride = kBM / (kTM / 4), kColumnStride = kBN / (kTN / 4);
};

template <bool kAligned, int kBM, int kBN, int kBK, int kTM, int kTN>
__global__ void __launch_bounds__(Tiling<kBM, kBN, kBK, kTM, kTN>::kThreads, kAligned ? 2 : 1)
    vectorized(Problem p, TileGrid<kBM, kBN> grid, const float* __restrict__ a,
               const float* __restrict__ b, float* __restrict__ c) {
  using Shape = Tiling<kBM, kBN, kBK, kTM, kTN>;
  __shared__ SharedKTile<kBM, kBN, kBK> k_tile;
  const int row = threadIdx.x / Shape::kAcross * 4, column = threadIdx.x % Shape::kAcross * 4;
  KTileLoader<kBM, kBN, kBK, Shape::kThreads, kAligned> loader(p, grid.first_row(),
                                                               grid.first_column(), a, b);
  Fragments<kTM, kTN, Shape::kRowStride, Shape::kColumnStride> fragments;
  float acc[kTM][kTN] = {};
#pragma unroll 1
  for (std::int64_t step = 0; step < p.k; step += kBK) {
    loader.load();
    loader.store(k_tile);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kBK; ++k) {
      fragments.load(&k_tile.a[k][row], &k_tile.b[k][column]);
      fragments.multiply(acc);
    }
    __syncthreads();
  }
  store_results<kAligned, Shape::kRowStride, Shape::kColumnStride>(
      p, grid.first_row() + row, grid.first_column() + column, acc, c);
}

template <int kBM, int kBN, int kBK, int kTM, int kTN>
Kernel point() {
  using Shape = Tiling<kBM, kBN, kBK, kTM, kTN>;
  return {
      .name = "Vectorized",
      .parameters = numbers({{"BM", kBM}, {"BN", kBN}, {"BK", kBK}, {"TM", kTM}, {"TN", kTN}}),
      .idea = "Vector loads and stores of 16 bytes, with A transposed in shared memory.",
      .source = "Boehm, How to Optimize a CUDA Matmul Kernel",
      .rung = 25,
      .precisions = {Precision::f32},
      .traffic =
          [](const Problem& p, const Device&) {
            constexpr int kWavefronts = k_tile_wavefronts<kBM, kBN, kBK, kTM, kTN>(
                [](int lane) { return lane / Shape::kAcross; },
                [](int lane) { return lane % Shape::kAcross; });
            return tile_traffic(p, kBM, kBN, kBK, kWavefronts);
          },
      .prepare = prepare_tiles<TileGrid<kBM, kBN>>(vectorized<true, kBM, kBN, kBK, kTM, kTN>,
                                                   vectorized<false, kBM, kBN, kBK, kTM, kTN>,
                                                   Shape::kThreads),
  };
}

const TunableRegistration registration({
    point<128, 128, 16, 8, 8>(),
    point<128, 128, 8, 8, 8>(),
    point<64, 128, 8, 8, 8>(),
    point<64, 64, 16, 4, 8>(),
});

}  // namespace
}  // namespace gemm::simt::vectorized
