// Warp tiles: between block tile and thread tile, each warp computes a compact rectangle, so that
// its lanes share more operands. With 4 x 8 lanes one load of a warp touches at most 128 bytes of
// shared memory, where a row of 16 threads touched 256. A load of 16 bytes per lane takes 4
// wavefronts, or 2 if lanes pair up on one address, so lanes are arranged in pairs (PairedLanes).
// Warps are independent between two barriers, as tensor cores will require.
#include <cstdint>

#include "kernels/ladder/fp32/vector_tile.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::warp_tile {
namespace {

template <typename Tiling, bool kAligned>
__global__ void __launch_bounds__(Tiling::kThreads, kAligned ? 2 : 1)
    warp_tile(Problem p, typename Tiling::Grid grid, const float* __restrict__ a,
              const float* __restrict__ b, float* __restrict__ c) {
  __shared__ typename Tiling::KTile k_tile;
  typename Tiling::template Loader<kAligned> loader(p, grid.first_row(), grid.first_column(), a, b);
  typename Tiling::Fragments fragments;
  float acc[Tiling::kTM][Tiling::kTN] = {};
#pragma unroll 1
  for (std::int64_t step = 0; step < p.k; step += Tiling::kBK) {
    loader.load();
    loader.store(k_tile);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < Tiling::kBK; ++k) {
      fragments.load(&k_tile.a[k][Tiling::row()], &k_tile.b[k][Tiling::column()]);
      fragments.multiply(acc);
    }
    __syncthreads();
  }
  Tiling::template store<kAligned>(p, grid, acc, c);
}

template <typename Tiling>
Kernel point() {
  return {
      .name = "WarpTile",
      .parameters = Tiling::parameters(),
      .idea =
          "Warp tiles: the lanes of a warp share operands, one load touches 128 bytes of shared "
          "memory.",
      .source = "Boehm, How to Optimize a CUDA Matmul Kernel; CUTLASS, Efficient GEMM",
      .rung = 26,
      .precisions = {Precision::f32},
      .traffic = Tiling::traffic,
      .prepare = prepare_tiles<typename Tiling::Grid>(warp_tile<Tiling, true>,
                                                      warp_tile<Tiling, false>, Tiling::kThreads),
  };
}

const TunableRegistration registration({
    point<WarpTiling<64, 128, 16, 32, 64>>(),
    point<WarpTiling<128, 128, 8, 64, 32>>(),
    point<WarpTiling<128, 128, 8, 32, 64>>(),
    point<WarpTiling<128, 128, 16, 64, 32>>(),
    point<WarpTiling<128, 128, 16, 32, 64>>(),
    point<WarpTiling<64, 64, 16, 32, 64>>(),
});

}  // namespace
}  // namespace gemm::simt::warp_tile
