// The main loops over K tiles of a consumer, with accumulators in registers.
#pragma once

#include <cstdint>

#include "kernels/parts/block_factors.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma_sizes.cuh"

namespace gemm::tensor {

// acc = the product over so many K tiles, for 64 * kParts rows of A from part `first` on. Waits for
// the MMAs of a K tile only after those of the next one are issued. Calls on_issued() once all are.
template <typename Tile, int kCluster, typename Accumulator, int kParts, typename OnIssued>
__device__ void multiply_k_tiles(Ring<Tile::kStageBytes>& ring, int k_tiles, int first,
                                 Accumulator (&acc)[kParts][Tile::kAccumulators],
                                 OnIssued on_issued) {
  std::uint32_t before = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
    ring.wait_for_stage();
    wgmma_fence();
    Tile::issue_mmas(acc, ring.data(), first, k_tile > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (k_tile > 0) release<kCluster>(before);
    before = ring.empty();
  }
  on_issued();
  wgmma_wait_all(acc);
  release<kCluster>(before);
}

// The same with promotion, for FP8: tensor cores accumulate FP8 with 14 bits, so the accumulators
// of each K tile, 128 steps of k, are added to FP32 accumulators. Other consumers issue MMAs
// meanwhile. Calls on_issued() at the end.
template <typename Tile, int kCluster, int kParts, typename OnIssued>
__device__ void multiply_promoted(Ring<Tile::kStageBytes>& ring, int k_tiles, int first,
                                  float (&acc)[kParts][Tile::kAccumulators], OnIssued on_issued) {
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
      Tile::issue_mmas(partial, ring.data(), first + part, false);
      wgmma_commit();
      wgmma_wait<0>();
      if (part + 1 == kParts) release<kCluster>(ring.empty());
      fence_accumulators(partial[0]);
#pragma unroll
      for (int i = 0; i < Tile::kAccumulators; ++i) acc[part][i] += partial[0][i];
    }
  }
  on_issued();
}

// The same with a factor for each block.
template <typename Tile, int kCluster, int kParts, typename OnIssued>
__device__ void multiply_scaled(Ring<Tile::kStageBytes>& ring, int k_tiles, int first,
                                BlockFactors<kParts>& blocks,
                                float (&acc)[kParts][Tile::kAccumulators], OnIssued on_issued) {
  float partial[1][Tile::kAccumulators], factors[kParts][2];
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
      Tile::issue_mmas(partial, ring.data(), first + part, false);
      wgmma_commit();
      wgmma_wait<0>();
      if (part + 1 == kParts) release<kCluster>(ring.empty());
      fence_accumulators(partial[0]);
      if (part == 0) blocks.next(factors, k_tile + 1 < k_tiles);
      add_scaled(acc[part], partial[0], factors[part]);
    }
  }
  on_issued();
}

}  // namespace gemm::tensor
