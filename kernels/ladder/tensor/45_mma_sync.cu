// The PTX instruction beneath wmma: `mma.sync`, with fragments loaded by `ldmatrix` from swizzled
// shared memory, so that neither it nor the copies have bank conflicts, and without padding. The
// mapping of elements to threads is known, so the epilogue needs no shared memory. K tiles go
// through registers: the next one is loaded during the MMAs of the current one and stored once all
// warps are done.
#include <cstddef>

#include "kernels/parts/mma_launch.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::mma_sync_rung {
namespace {

struct MmaSync {
  template <typename Arithmetic>
  using Shape = MmaShape<128, 128, 64, 64, 64, 1, 2>;
  static constexpr int kSince = 75, kGroup = 1;

  template <typename Tile>
  static __device__ void multiply(Tile& tile, int k_tiles, std::byte* shared) {
    typename Tile::KTileRegisters registers;
    typename Tile::Fragments fragments;
    tile.load_k_tile(registers);
#pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      __syncthreads();  // all warps are done with the last K tile
      tile.store_k_tile(registers, shared);
      __syncthreads();
      if (k_tile + 1 < k_tiles) tile.load_k_tile(registers);
#pragma unroll
      for (int step = 0; step < Tile::Shape::kSteps; ++step) {
        tile.load_fragments(fragments, tile.stage(0), step);
        tile.multiply(fragments);
      }
    }
  }
};

const Registration registration(mma_kernel<MmaSync, Bf16, F16, Tf32, S8>({
    .name = "MmaSync",
    .idea = "mma.sync with fragments loaded by ldmatrix from swizzled shared memory.",
    .source = "PTX ISA, mma.sync and ldmatrix; CUTLASS, Efficient GEMM",
    .rung = 45,
}));

}  // namespace
}  // namespace gemm::tensor::mma_sync_rung
