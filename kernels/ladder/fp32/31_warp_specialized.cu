// Warp specialization with TMA: one producer warpgroup fills a ring of stages by TMA (from operands
// packed MN-major beforehand where needed), two consumer warpgroups only issue FMAs. Address
// arithmetic, bounds checks and copies are no longer in the main loop, and with 232 registers per
// thread (setmaxnreg) each consumer has a 16 x 8 thread tile with operands loaded ahead. Cost: a
// warpgroup that does not compute, and packing in most layouts.
#include <cstddef>
#include <cstdint>

#include "kernels/parts/specialized_tile.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::warp_specialized {
namespace {

using Tile = LargeTile;

template <Rows kRows>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    warp_specialized([[maybe_unused]] const __grid_constant__ SpecializedWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(128) std::byte shared[];
  const std::uint32_t ring = shared_address(shared);
  if (threadIdx.x == 0) init_ring<Tile>(ring);
  __syncthreads();

  // A block computes one tile. The loops over tiles must stay: without them ptxas allocates
  // accumulators for the stores, and the main loop has more conflicts of register banks.
  if (threadIdx.x >= Tile::kConsumerThreads) {
    dealloc_registers<Tile::kProducerRegisters>();
    if (threadIdx.x > Tile::kConsumerThreads) return;
    begin_loads();
    RingPosition<Tile> position(ring);
    for (int index = static_cast<int>(blockIdx.x); index < work.tiles.count(); index += gridDim.x)
      for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile)
        load_k_tile<Tile>(work, ring, position, work.tiles.place(index), k_tile);
    return;
  }

  alloc_registers<Tile::kConsumerRegisters>();
  Consumer<Tile> consumer(shared, work.k_tiles);
  for (int index = static_cast<int>(blockIdx.x); index < work.tiles.count(); index += gridDim.x) {
    consumer.multiply(work.k_tiles);
    consumer.store<kRows>(work.c, work.tiles.place(index), work.m, work.n, work.one);
  }
#endif
}

constexpr SpecializedKernels kKernels{warp_specialized<Rows::aligned>, warp_specialized<Rows::any>};

const Registration registration(specialized_kernel<Tile>(
    kKernels,
    {
        .name = "WarpSpecialized",
        .idea = "Warp specialization: one warpgroup loads K tiles by TMA, two only multiply.",
        .source = "CUTLASS, warp specialization; Bauer et al., CudaDMA (2011)",
        .rung = 31,
        .traffic = [](const Problem& p, const Device&) { return specialized_traffic<Tile>(p); },
        .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
          const int tiles = whole_tiles(p, Tile::kBM, Tile::kBN, Tile::kBK).tiles();
          return specialized_launch<Tile, SpecializedWork>(kKernels, p, o, {}, tiles);
        },
    }));

}  // namespace
}  // namespace gemm::simt::warp_specialized
