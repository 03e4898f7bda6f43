// A multistage pipeline, two K tiles ahead of the MMAs, with the larger MMAs of compute capability
// 9.0 (elsewhere they are made of m8n8k4), and warp tiles of 32 x 64, which read a quarter less
// from shared memory than 32 x 32. Tiles are computed in groups of eight rows.
//
// The next bottleneck: MMAs wait for the fragments of their own step, and the last wave of tiles
// leaves SMs idle. MmaF64StreamK (kernels/best) loads fragments ahead and cuts tiles along k.
#include <cstddef>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/ladder/tensor/mma_f64_tile.cuh"
#include "kernels/parts/async_copy.cuh"
#include "kernels/parts/mma_f64.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::mma_f64_multistage {
namespace {

constexpr int kGroup = 8;  // rows of tiles
using Tile = MmaF64Tile<64, 128, 32, 64, 3, F64Mma::m16n8k8>;

__global__ void __launch_bounds__(Tile::kThreads, 2)
    mma_f64_multistage([[maybe_unused]] Problem p, [[maybe_unused]] Tiles tiles,
                       [[maybe_unused]] const double* __restrict__ a,
                       [[maybe_unused]] const double* __restrict__ b,
                       [[maybe_unused]] double* __restrict__ c) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) std::byte shared[];
  Tile tile(p, tiles.place(static_cast<int>(blockIdx.x)), a, b, shared);
  const int k_tiles = Tile::k_tiles(p);
  constexpr int kStages = Tile::kStages;
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) tile.copy_to(tile.stage(stage));
  int reads = 0, writes = kStages - 1;
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // the K tile has arrived, and the previous stage is free
    tile.copy_to(tile.stage(writes));
#pragma unroll
    for (int step = 0; step < Tile::kSteps; ++step) tile.multiply(tile.stage(reads), step);
    reads = reads + 1 == kStages ? 0 : reads + 1;
    writes = writes + 1 == kStages ? 0 : writes + 1;
  }
  tile.store(c);
#endif
}

Launch launch(const Problem& p, const Device&, const Operands& o) {
  const Tiles tiles(p, Tile::kBM, Tile::kBN, kGroup);
  return launched(mma_f64_multistage, {tiles.count(), Tile::kThreads, Tile::kSharedBytes}, p, tiles,
                  static_cast<const double*>(o.a), static_cast<const double*>(o.b),
                  static_cast<double*>(o.c));
}

const Registration registration(nt_rung(
    {
        .name = "MmaF64Multistage",
        .idea = "A multistage cp.async pipeline, and MMAs of 16 x 8 x 8.",
        .source = "CUTLASS, Efficient GEMM: multistage pipelines of compute capability 8.0",
        .rung = 46,
        .unsupported = since(80),
    },
    {Tile::kBM, Tile::kBN, Tile::kLine, Tile::kMovedBytes}, {{Precision::f64, launch}}));

}  // namespace
}  // namespace gemm::tensor::mma_f64_multistage
