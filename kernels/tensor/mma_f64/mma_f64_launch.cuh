// Launches of the MmaF64 rungs with one block per tile of C. A rung is a main loop and a tile shape.
//
// Any m, n, k and layout: where rows of A or B do not begin at multiples of 16 bytes, copies are of
// 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "kernels/common/grouped_grid.cuh"
#include "kernels/common/tile_launch.cuh"
#include "kernels/common/tile_traffic.hpp"
#include "kernels/layout.hpp"
#include "kernels/registry.hpp"
#include "kernels/tensor/mma_f64/mma_f64_tile.cuh"

namespace gemm::tensor {

// Rung::multiply(tile, k_tiles) is the main loop.
template <typename Rung, typename Tile, typename Grid>
__global__ void __launch_bounds__(Tile::kThreads, Tile::Shape::kBlocks)
    mma_f64([[maybe_unused]] Problem p, [[maybe_unused]] Grid grid,
            [[maybe_unused]] const double* __restrict__ a,
            [[maybe_unused]] const double* __restrict__ b, [[maybe_unused]] double* __restrict__ c) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) std::byte shared[];
  const auto place = grid.place();
  const int k_tiles = static_cast<int>((p.k + kF64Depth - 1) / kF64Depth);
  Tile tile(p, place.first_row, place.first_column, 0, k_tiles, a, b, shared);
  Rung::multiply(tile, k_tiles);
  tile.store(c);
#endif
}

// Calls f<Tile>() for the tile of that shape that runs the problem.
template <typename Shape, typename F>
Launch with_f64_tile(const Problem& p, F&& f) {
  return with_transposes(p.layout, [&]<bool kTransposesA, bool kTransposesB>() -> Launch {
    if (lda(p) % 2 == 0 && ldb(p) % 2 == 0)
      return f.template operator()<F64Tile<Shape, !kTransposesA, kTransposesB, 2>>();
    return f.template operator()<F64Tile<Shape, !kTransposesA, kTransposesB, 1>>();
  });
}

template <typename Shape>
std::optional<std::string> f64_unsupported(const Device& device) {
  if (device.compute_capability < 80) return "requires compute capability 8.0";
  return simt::shared_memory_unsupported(Shape::kSharedBytes, device);
}

// Completes the description of a rung.
template <typename Rung>
Kernel f64_kernel(Kernel kernel) {
  using Shape = typename Rung::Shape;
  kernel.precisions = {Precision::f64};
  kernel.layouts.assign(kLayouts.begin(), kLayouts.end());
  kernel.unsupported = [](const Problem&, const Device& device) {
    return f64_unsupported<Shape>(device);
  };
  kernel.traffic = [](const Problem& p, const Device&) {
    return simt::tile_traffic(p, Shape::kBM, Shape::kBN, kF64Depth, Shape::kWavefronts);
  };
  kernel.prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
    return with_f64_tile<Shape>(p, [&]<typename Tile>() {
      using Grid = simt::GroupedGrid<Shape::kBM, Shape::kBN>;
      return simt::tile_launch<double, Grid>(mma_f64<Rung, Tile, Grid>, Shape::kThreads, p, o,
                                             {simt::TileGrid<Shape::kBM, Shape::kBN>(p), Rung::kGroup},
                                             Shape::kSharedBytes);
    });
  };
  return kernel;
}

}  // namespace gemm::tensor
