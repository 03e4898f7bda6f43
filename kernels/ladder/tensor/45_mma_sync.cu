// The PTX instruction beneath wmma: `mma.sync`, with fragments loaded by `ldmatrix` from swizzled
// shared memory (mma_sync_tile.cuh): neither it nor the copies have bank conflicts, and nothing is
// padded. The mapping of elements to threads is known, so the epilogue needs no shared memory. K
// tiles go through registers: the next one is loaded during the MMAs of the current one, and stored
// once all warps are done.
//
// The next bottleneck: latency. One K tile is in flight, in registers, and a block waits at two
// barriers for each.
#include <cstddef>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/ladder/tensor/mma_sync_tile.cuh"
#include "kernels/parts/mma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::mma_sync_rung {
namespace {

// Tiles of 128 x 128, warp tiles of 64 x 64, one stage.
template <typename Arithmetic>
using Of = MmaSyncTile<Arithmetic, 128, 128, 64, 64, 1>;

template <typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, 2)
    mma_sync(Problem p, Tiles tiles, const typename Tile::Element* __restrict__ a,
             const typename Tile::Element* __restrict__ b, typename Tile::Output* __restrict__ c) {
  extern __shared__ __align__(128) std::byte shared[];
  Tile tile(p, tiles.place(static_cast<int>(blockIdx.x)), a, b, shared);
  const int k_tiles = Tile::k_tiles(p);
  uint4 copied[Tile::kCopies];
  typename Tile::Fragments fragments;
  const auto load_k_tile = [&] {
#pragma unroll
    for (int i = 0; i < Tile::kCopies; ++i)
      tile.chunk(i, [&](const std::byte* from, int, bool inside) {
        copied[i] = inside ? *reinterpret_cast<const uint4*>(from) : uint4{};
      });
    tile.next_k_tile();
  };
  load_k_tile();
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    __syncthreads();  // all warps are done with the last K tile
#pragma unroll
    for (int i = 0; i < Tile::kCopies; ++i)
      tile.chunk(i, [&](const std::byte*, int to, bool) {
        *reinterpret_cast<uint4*>(shared + to) = copied[i];
      });
    __syncthreads();
    if (k_tile + 1 < k_tiles) load_k_tile();
#pragma unroll
    for (int step = 0; step < Tile::kSteps; ++step) {
      tile.load(fragments, tile.stage(0), step);
      tile.multiply(fragments);
    }
  }
  tile.store(c);
}

template <typename Arithmetic>
Launch launch(const Problem& p, const Device&, const Operands& o) {
  return launched_tiles<Of<Arithmetic>>(mma_sync<Of<Arithmetic>>, p, o);
}

const Registration registration(nt_rung(
    {
        .name = "MmaSync",
        .idea = "mma.sync with fragments loaded by ldmatrix from swizzled shared memory.",
        .source = "PTX ISA, mma.sync and ldmatrix; CUTLASS, Efficient GEMM",
        .rung = 45,
        .unsupported =
            [](const Problem& p, const Device& device) {
              const bool on_turing = p.precision == Precision::f16 || p.precision == Precision::s8;
              return unsupported_before(on_turing ? 75 : 80, p, device);
            },
    },
    {Of<Bf16>::kBM, Of<Bf16>::kBN, Of<Bf16>::kLine, Of<Bf16>::kMovedBytes},
    {{Precision::bf16, launch<Bf16>},
     {Precision::f16, launch<F16>},
     {Precision::tf32, launch<Tf32>},
     {Precision::s8, launch<S8>}}));

}  // namespace
}  // namespace gemm::tensor::mma_sync_rung
