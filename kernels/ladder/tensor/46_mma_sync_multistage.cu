// A multistage pipeline: `cp.async` copies K tiles into a ring of stages without registers, three K
// tiles ahead of the MMAs. Latency of global memory is spread over three K tiles, and one barrier
// per K tile remains of two. Cost: shared memory.
//
// The next bottleneck: fragments. The MMAs of a step wait for its `ldmatrix`, and all warps begin a
// K tile with one.
#include <cstddef>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/ladder/tensor/mma_sync_tile.cuh"
#include "kernels/parts/async_copy.cuh"
#include "kernels/parts/mma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::mma_sync_multistage {
namespace {

template <typename Arithmetic>
using Of = MmaSyncTile<Arithmetic, 128, 128, 64, 64, 4>;

template <typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, 2)
    mma_sync_multistage(Problem p, Tiles tiles, const typename Tile::Element* __restrict__ a,
                        const typename Tile::Element* __restrict__ b,
                        typename Tile::Output* __restrict__ c) {
  extern __shared__ __align__(128) std::byte shared[];
  Tile tile(p, tiles.place(static_cast<int>(blockIdx.x)), a, b, shared);
  const int k_tiles = Tile::k_tiles(p);
  constexpr int kStages = Tile::kStages;
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    tile.copy_to(tile.stage(stage));
    commit_copies();
  }
  int reads = 0, writes = kStages - 1;
  typename Tile::Fragments fragments;
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // the K tile has arrived, and the previous stage is free
    tile.copy_to(tile.stage(writes));
    commit_copies();
#pragma unroll
    for (int step = 0; step < Tile::kSteps; ++step) {
      tile.load(fragments, tile.stage(reads), step);
      tile.multiply(fragments);
    }
    reads = reads + 1 == kStages ? 0 : reads + 1;
    writes = writes + 1 == kStages ? 0 : writes + 1;
  }
  tile.store(c);
}

template <typename Arithmetic>
Launch launch(const Problem& p, const Device&, const Operands& o) {
  return launched_tiles<Of<Arithmetic>>(mma_sync_multistage<Of<Arithmetic>>, p, o);
}

const Registration registration(nt_rung(
    {
        .name = "MmaSyncMultistage",
        .idea = "A multistage cp.async pipeline, three K tiles ahead of the MMAs.",
        .source = "CUTLASS, Efficient GEMM: multistage pipelines of compute capability 8.0",
        .rung = 46,
        .unsupported = since(80),
    },
    {Of<Bf16>::kBM, Of<Bf16>::kBN, Of<Bf16>::kLine, Of<Bf16>::kMovedBytes},
    {{Precision::bf16, launch<Bf16>}, {Precision::f16, launch<F16>}}));

}  // namespace
}  // namespace gemm::tensor::mma_sync_multistage
