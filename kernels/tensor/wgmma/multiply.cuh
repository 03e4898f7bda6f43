// The product of some K tiles of the ring: a consumer's loop, whose accumulators stay in registers.
#pragma once

#include <cstdint>

#include "kernels/common/ring.cuh"
#include "kernels/tensor/wgmma/wgmma.cuh"

namespace gemm::tensor {

// accumulators = the product of so many K tiles, of A the 64 kParts rows from part `first` on. A K
// tile's products are waited for once those of the next are enqueued. on_enqueued() once all are.
template <typename Tile, int kCluster, typename Accumulator, int kParts, typename OnEnqueued>
__device__ void multiply_k_tiles(Ring<Tile::kStageBytes>& ring, int k_tiles, int first,
                                 Accumulator (&acc)[kParts][Tile::kAccumulators],
                                 OnEnqueued on_enqueued) {
  std::uint32_t before = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
    ring.wait_for_stage();
    wgmma_fence();
    Tile::enqueue_mmas(acc, ring.data(), first, k_tile > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (k_tile > 0) release<kCluster>(before);
    before = ring.empty();
  }
  on_enqueued();
  wgmma_wait_all(acc);
  release<kCluster>(before);
}
template <typename Tile, int kCluster = 1, typename Accumulator, int kParts>
__device__ void multiply_k_tiles(Ring<Tile::kStageBytes>& ring, int k_tiles, int first,
                                 Accumulator (&acc)[kParts][Tile::kAccumulators]) {
  multiply_k_tiles<Tile, kCluster>(ring, k_tiles, first, acc, [] {});
}

// The same for FP8 whose accumulators are promoted: the tensor cores add up FP8 with 14 bits, so
// their accumulators of each K tile, 128 steps of k, are added to accumulators in FP32. While one
// consumer adds, others multiply.
template <typename Tile, int kCluster, int kParts>
__device__ void multiply_promoted(Ring<Tile::kStageBytes>& ring, int k_tiles, int first,
                                  float (&acc)[kParts][Tile::kAccumulators]) {
  float partial[1][Tile::kAccumulators];
#pragma unroll
  for (int part = 0; part < kParts; ++part)
#pragma unroll
    for (int i = 0; i < Tile::kAccumulators; ++i) acc[part][i] = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
    ring.wait_for_stage();
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      wgmma_fence();
      Tile::enqueue_mmas(partial, ring.data(), first + part, false);
      wgmma_commit();
      wgmma_wait<0>();
      if (part + 1 == kParts) release<kCluster>(ring.empty());
      fence_accumulators(partial[0]);
#pragma unroll
      for (int i = 0; i < Tile::kAccumulators; ++i) acc[part][i] += partial[0][i];
    }
  }
}

}  // namespace gemm::tensor
