// Launches of the MmaF64 rungs with one block per tile of C. A rung is a main loop and a tile
// shape.
//
// Any m, n, k and layout: where rows of A or B do not begin at multiples of 16 bytes, copies are of
// 8 bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "kernels/layout.hpp"
#include "kernels/parts/mma_f64_tile.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_order.cuh"
#include "kernels/parts/tile_schedule.hpp"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/registry.hpp"

namespace gemm::tensor {

// Rung::multiply(tile, k_tiles) is the main loop.
template <typename Rung, typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::Shape::kBlocks)
    mma_f64([[maybe_unused]] const __grid_constant__ F64Problem p,
            [[maybe_unused]] const __grid_constant__ TileOrder tiles) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) std::byte shared[];
  const TileOrder::Place place = tiles.place(static_cast<int>(blockIdx.x));
  const int k_tiles = (p.k - 1) / Tile::Shape::kDepth + 1;
  const int row = place.row * Tile::Shape::kBM, column = place.column * Tile::Shape::kBN;
  Tile tile(p, shared);
  tile.begin(row, column);
  tile.copy_from(p, row, column, 0, k_tiles);
  Rung::multiply(tile, k_tiles);
  tile.store(p);
#endif
}

// Calls f<Tile>() for the tile of that shape that runs the problem.
template <typename Shape, typename F>
auto with_f64_tile(const Problem& p, F&& f) {
  return with_transposes(p.layout, [&]<bool kTransposesA, bool kTransposesB>() {
    if (lda(p) % 2 == 0 && ldb(p) % 2 == 0)
      return f.template operator()<F64Tile<Shape, !kTransposesA, kTransposesB, 2>>();
    return f.template operator()<F64Tile<Shape, !kTransposesA, kTransposesB, 1>>();
  });
}

template <typename Shape>
std::optional<std::string> f64_unsupported(const Problem& p, const Device& device) {
  if (device.compute_capability < 80) return "requires compute capability 8.0";
  if (!simt::counts_fit(p, Shape::kBM, Shape::kBN, Shape::kDepth)) return simt::kCountsDoNotFit;
  return simt::shared_memory_unsupported(Shape::kSharedBytes, device);
}

template <typename Shape>
Traffic f64_traffic(const Problem& p) {
  return simt::tile_traffic(p, Shape::kBM, Shape::kBN, Shape::kDepth, Shape::kWavefronts);
}

// Completes the description of a rung.
template <typename Rung>
Kernel f64_kernel(Kernel kernel) {
  using Shape = typename Rung::Shape;
  kernel.precisions = {Precision::f64};
  kernel.layouts.assign(kLayouts.begin(), kLayouts.end());
  kernel.unsupported = f64_unsupported<Shape>;
  kernel.traffic = [](const Problem& p, const Device&) { return f64_traffic<Shape>(p); };
  kernel.prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
    return with_f64_tile<Shape>(p, [&]<typename Tile>() -> Launch {
      const simt::TileSchedule whole = simt::whole_tiles(p, Shape::kBM, Shape::kBN, Shape::kDepth);
      const auto launched = mma_f64<Rung, Tile>;
      simt::allow_shared_bytes(launched, Shape::kSharedBytes);
      return [=, problem = F64Problem(p, o),
              tiles = TileOrder{whole.tile_rows, whole.tile_columns, Rung::kGroup}](Stream stream) {
        launched<<<whole.blocks, Shape::kThreads, Shape::kSharedBytes, stream>>>(problem, tiles);
      };
    });
  };
  return kernel;
}

}  // namespace gemm::tensor
