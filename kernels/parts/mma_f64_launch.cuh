// Which instance of F64Tile runs a problem, and why none does.
//
// Any m, n, k and layout: where rows of A or B do not begin at multiples of 16 bytes, copies are of
// 8 bytes.
#pragma once

#include <optional>
#include <string>

#include "kernels/layout.hpp"
#include "kernels/parts/mma_f64_tile.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_schedule.hpp"
#include "kernels/parts/tile_traffic.hpp"

namespace gemm::tensor {

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

}  // namespace gemm::tensor
