// FP64 tensor cores: `mma.sync` in FP64 has twice the rate of FP64 FMAs on compute capability 8.0
// and 9.0, and one load of a fragment serves many of them. K tiles are copied by `cp.async`; a
// block waits for each of them, so that only the other block of an SM hides the latency of global
// memory.
//
// The next bottleneck: that latency, and shared memory: warp tiles of 32 x 32 load a byte for every
// two FMAs.
#include <cstddef>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/ladder/tensor/mma_f64_tile.cuh"
#include "kernels/parts/async_copy.cuh"
#include "kernels/parts/mma_f64.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::mma_f64_rung {
namespace {

using Tile = MmaF64Tile<64, 64, 32, 32, 1, F64Mma::m8n8k4>;

__global__ void __launch_bounds__(Tile::kThreads, 2)
    mma_f64([[maybe_unused]] Problem p, [[maybe_unused]] Tiles tiles,
            [[maybe_unused]] const double* __restrict__ a,
            [[maybe_unused]] const double* __restrict__ b,
            [[maybe_unused]] double* __restrict__ c) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) std::byte shared[];
  Tile tile(p, tiles.place(static_cast<int>(blockIdx.x)), a, b, shared);
  const int k_tiles = Tile::k_tiles(p);
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    __syncthreads();  // all warps are done with the last K tile
    tile.copy_to(tile.stage(0));
    wait_for_copies<0>();
    __syncthreads();
#pragma unroll
    for (int step = 0; step < Tile::kSteps; ++step) tile.multiply(tile.stage(0), step);
  }
  tile.store(c);
#endif
}

Launch launch(const Problem& p, const Device&, const Operands& o) {
  const Tiles tiles(p, Tile::kBM, Tile::kBN);
  return launched(mma_f64, {tiles.count(), Tile::kThreads, Tile::kSharedBytes}, p, tiles,
                  static_cast<const double*>(o.a), static_cast<const double*>(o.b),
                  static_cast<double*>(o.c));
}

const Registration registration(nt_rung(
    {
        .name = "MmaF64",
        .idea = "FP64 tensor cores: mma.sync m8n8k4, operands in swizzled shared memory.",
        .source = "PTX ISA, mma.sync with .f64",
        .rung = 45,
        .unsupported = since(80),
    },
    {Tile::kBM, Tile::kBN, Tile::kLine, Tile::kMovedBytes}, {{Precision::f64, launch}}));

}  // namespace
}  // namespace gemm::tensor::mma_f64_rung
