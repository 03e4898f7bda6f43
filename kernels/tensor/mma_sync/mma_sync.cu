// `mma.sync`, the instruction under WMMA, with operands laid out by hand: `ldmatrix` fetches four
// parts of fragments at once, from shared memory whose chunks of 16 bytes change places so that
// neither it nor the copies ever meet a bank twice. WMMA must pad its rows instead, and knows not
// which thread has which result. Slices come through registers: what is loaded while a slice is
// multiplied is put down when all have done with that.
#include <cstddef>

#include "kernels/registry.hpp"
#include "kernels/tensor/mma_sync/mma_launch.cuh"

namespace gemm::tensor {
namespace {

struct MmaSync {
  template <typename Arithmetic>
  using Shape = MmaShape<128, 128, 64, 64, 64, 1, 2>;
  static constexpr int kSince = 75, kGroup = 1;

  template <typename Tile>
  static __device__ void multiply(Tile& tile, int slices, std::byte* shared) {
    typename Tile::Carried carried;
    typename Tile::Fragments fragments;
    tile.carry(carried);
#pragma unroll 1
    for (int slice = 0; slice < slices; ++slice) {
      __syncthreads();  // nobody reads the slice before it any more
      tile.put_down(carried, shared);
      __syncthreads();
      if (slice + 1 < slices) tile.carry(carried);
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
    .idea = "mma.sync on fragments that ldmatrix fetches from swizzled shared memory.",
    .source = "PTX ISA, mma.sync and ldmatrix; CUTLASS, Efficient GEMM",
    .rung = 45,
}));

}  // namespace
}  // namespace gemm::tensor
