// Bytes that a tiled kernel moves, from its tile sizes.
#pragma once

#include <cmath>

#include "kernels/gemm.hpp"
#include "kernels/parts/cost.hpp"
#include "kernels/parts/warp_access.hpp"

namespace gemm::simt {

// A block computes rows x columns of C, of one product of a batch. It loads its rows of A and
// columns of B (without padding beyond the edges), and in each step of `depth` along k its warps
// issue so many shared-memory wavefronts of 128 bytes, loads and stores.
inline Traffic tile_traffic(const Problem& p, int rows, int columns, int depth,
                            double wavefronts_per_step) {
  const PrecisionTraits& traits = traits_of(p.precision);
  const double tile_rows = 1.0 * ceil_div(p.m, rows), tile_columns = 1.0 * ceil_div(p.n, columns);
  const double a = traits.input_bytes * 1.0 * p.m * p.k, b = traits.input_bytes * 1.0 * p.k * p.n;
  const double c = traits.output_bytes * 1.0 * p.m * p.n;
  return {.dram = bytes_minimum(p),
          .l2 = p.batch * (a * tile_columns + b * tile_rows + c),
          .shared = p.batch * 128 * wavefronts_per_step * tile_rows * tile_columns *
                    ceil_div(p.k, depth)};
}

// The work of a grid of such tiles on CUDA cores, of which `blocks` fit an SM.
inline Work tile_work(const Problem& p, const Device& device, const Traffic& traffic, int rows,
                      int columns, int blocks) {
  const double tiles = 1.0 * ceil_div(p.m, rows) * ceil_div(p.n, columns),
               of_busiest = std::ceil(tiles / device.sm_count);
  return {.traffic = traffic,
          .cycles = fp32_cycles(tiles * rows * columns * static_cast<double>(p.k), device),
          .busiest = of_busiest * device.sm_count / tiles,
          .tiles = std::ceil(of_busiest / blocks),
          .tail = 1.0 * traits_of(p.precision).output_bytes * rows * columns};
}

// How many consecutive elements of a shared-memory row the compiler loads with one instruction.
constexpr int read_at_once(Precision precision) {
  return precision == Precision::f64 ? 2 : precision == Precision::bf16 ? 1 : 4;
}

// Where a lane stores its element if a warp stores consecutive elements.
constexpr int own_element(int lane) { return lane; }

// Of a block with a thread for each element of a square tile, which multiplies a row of A's tile
// (several elements per load) by a column of B's tile: lanes of one row share an element of A and
// read consecutive elements of B. A is stored by rows, B's tile at store_b(lane).
template <int kTile, typename StoreB = int (*)(int)>
Traffic square_tile_traffic(const Problem& p, StoreB store_b = own_element) {
  const int bytes = traits_of(p.precision).input_bytes, at_once = read_at_once(p.precision);
  const auto a = [](int lane) { return lane / kTile * kTile; };
  const auto b = [](int lane) { return lane % kTile; };
  const int stores = wavefronts(bytes, own_element) + wavefronts(bytes, store_b);
  const int reads = kTile / at_once * wavefronts(bytes, a, at_once) + kTile * wavefronts(bytes, b);
  return tile_traffic(p, kTile, kTile, kTile, kTile * kTile / kLanes * (stores + reads));
}

}  // namespace gemm::simt
