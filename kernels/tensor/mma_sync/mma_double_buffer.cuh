// The loop of a ring of stages with fragments in two sets of registers: while the tensor cores
// multiply one step, the fragments of the next are loaded, across the end of a slice too. Copies
// are spread over the products of a slice: asked for all at once they cost 5 % more clocks (H200).
#pragma once

#include "kernels/tensor/mma_sync/mma_tile.cuh"

namespace gemm::tensor {

template <typename Tile>
__device__ void multiply_double_buffered(Tile& tile, int slices) {
  constexpr int kStages = Tile::Shape::kStages, kSteps = Tile::Shape::kSteps;
  static_assert(kSteps % 2 == 0, "a slice ends with the second set");
  typename Tile::Fragments fragments[2];
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    tile.copy_to(tile.stage(stage));
    commit_copies();
  }
  int reads = 0, writes = kStages - 1;
  wait_for_copies<kStages - 2>();
  __syncthreads();
  tile.load_fragments(fragments[0], tile.stage(reads), 0);
#pragma unroll 1
  for (int slice = 0; slice < slices; ++slice) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step + 1 == kSteps) {
        // The next slice has arrived, and all have loaded what they want of this one.
        wait_for_copies<kStages - 3>();
        __syncthreads();
        reads = reads + 1 == kStages ? 0 : reads + 1;
      }
      tile.load_fragments(fragments[(step + 1) % 2], tile.stage(reads), (step + 1) % kSteps);
      tile.multiply(fragments[step % 2], [&](int row) {
        tile.template copy_part_to<kSteps * Tile::kRows>(tile.stage(writes),
                                                         step * Tile::kRows + row);
      });
    }
    commit_copies();
    writes = writes + 1 == kStages ? 0 : writes + 1;
    tile.end_slice();
  }
}

}  // namespace gemm::tensor
