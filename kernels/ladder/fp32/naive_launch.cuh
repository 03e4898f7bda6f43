// Launches of kernels in which each thread computes one element of C without shared memory, and the
// bytes that they move.
#pragma once

#include <cstdint>

#include "kernels/gemm.hpp"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/warp_access.hpp"

namespace gemm::simt {

constexpr int kNaiveBlock = 32;
using NaiveGrid = TileGrid<kNaiveBlock, kNaiveBlock>;

// Launches one of two instances: with 32-bit offsets where they suffice, else with 64-bit ones.
template <typename T>
Launch naive_launch(TileKernel<T, NaiveGrid> of_32_bits, TileKernel<T, NaiveGrid> of_64_bits,
                    const Problem& p, const Operands& o) {
  return tile_launch<T, NaiveGrid>(offsets_fit_int(p) ? of_32_bits : of_64_bits,
                                   dim3(kNaiveBlock, kNaiveBlock), p, o);
}

// Distance between the elements of consecutive lanes; 0 if all lanes share one.
struct LaneStrides {
  std::int64_t a, b, c;
};

// A warp covers 32 elements of C in the direction of extent `along`; `across` is the other extent.
inline Traffic naive_traffic(const Problem& p, std::int64_t along, std::int64_t across,
                             LaneStrides strides) {
  const PrecisionTraits& traits = traits_of(p.precision);
  const double warps_along = 1.0 * ceil_div(along, kLanes);
  const double lanes = static_cast<double>(along) / warps_along;
  const auto sectors_of = [&](std::int64_t stride, int bytes) {
    return sectors(static_cast<double>(stride * bytes), lanes);
  };
  const double each_step =
      sectors_of(strides.a, traits.input_bytes) + sectors_of(strides.b, traits.input_bytes);
  const double of_warp =
      each_step * static_cast<double>(p.k) + sectors_of(strides.c, traits.output_bytes);
  return {.dram = bytes_minimum(p),
          .l2 = 32 * of_warp * warps_along * static_cast<double>(across),
          .shared = 0};
}

}  // namespace gemm::simt
