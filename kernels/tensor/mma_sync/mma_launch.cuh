// Launches of the MmaSync rungs. A rung is a main loop over K tiles and a tile shape for each
// precision.
//
// Any m, n, k and layout. Operands need rows aligned to 16 bytes, and must be K-major unless they
// have 16-bit elements; others are first copied K-major, in every launch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/common/device_array.cuh"
#include "kernels/common/tile_grid.cuh"
#include "kernels/common/tile_launch.cuh"
#include "kernels/common/tile_traffic.hpp"
#include "kernels/layout.hpp"
#include "kernels/registry.hpp"
#include "kernels/tensor/k_major_copy.cuh"
#include "kernels/tensor/mma_sync/mma_tile.cuh"

namespace gemm::tensor {

// Rung::multiply(tile, k_tiles, shared) is the main loop.
template <typename Rung, typename Tile, typename Grid>
__global__ void __launch_bounds__(Tile::Shape::kThreads, Tile::Shape::kBlocks)
    mma_sync(Problem p, Grid grid, Rows a, Rows b, typename Tile::Output* __restrict__ c) {
  extern __shared__ __align__(kBankBytes) std::byte shared[];
  const auto place = grid.place();
  Tile tile(p, place.first_row, place.first_column, a, b, shared);
  Rung::multiply(tile, Tile::k_tiles(p), shared);
  tile.store(c);
}

// An operand as stored, and whether it must be copied.
struct Stored {
  std::int64_t lines, length;  // rows of A or columns of B; k
  bool k_major;
  int element_bytes;

  bool in_16_bytes() const { return (k_major ? length : lines) * element_bytes % kChunkBytes == 0; }
  bool is_copied() const { return !in_16_bytes() || (!k_major && element_bytes != 2); }
  // Elements per row of the copy.
  std::int64_t copy_pitch() const {
    const int chunk = kChunkBytes / element_bytes;
    return ceil_div(length, chunk) * chunk;
  }
  double bulk_load() const { return is_copied() ? 1.0 * element_bytes * lines * copy_pitch() : 0; }
};
inline Stored stored_a(const Problem& p) {
  return {p.m, p.k, !transposes_a(p.layout), traits_of(p.precision).input_bytes};
}
inline Stored stored_b(const Problem& p) {
  return {p.n, p.k, transposes_b(p.layout), traits_of(p.precision).input_bytes};
}

// An operand as the kernel reads it, and the copy that must run before.
struct PackedRows {
  Rows rows;
  bool k_major;
  Launch copying;
};
template <typename Element>
PackedRows packed(const Stored& stored, const void* operand) {
  const auto* from = static_cast<const Element*>(operand);
  if (!stored.is_copied())
    return {{reinterpret_cast<const std::byte*>(from),
             (stored.k_major ? stored.length : stored.lines) * stored.element_bytes},
            stored.k_major,
            [](Stream) {}};
  const std::int64_t pitch = stored.copy_pitch();
  const auto copy = simt::device_array<Element>(stored.lines * pitch);
  const auto kernel = stored.k_major ? copy_k_major<Element, true> : copy_k_major<Element, false>;
  return {{reinterpret_cast<const std::byte*>(copy.get()), pitch * stored.element_bytes},
          true,
          [=, grid = CopyGrid(stored.lines, stored.length)](Stream stream) {
            kernel<<<grid.blocks(), kCopyThreads, 0, stream>>>(grid, from, stored.lines,
                                                               stored.length, copy.get(), pitch);
          }};
}

template <typename Rung, typename Arithmetic>
Launch mma_launch(const Problem& p, const Operands& o) {
  using Element = typename Arithmetic::Element;
  using Output = typename Arithmetic::Output;
  using Shape = typename Rung::template Shape<Arithmetic>;
  using Grid = simt::GroupedGrid<Shape::kBM, Shape::kBN>;
  using Kernel = void (*)(Problem, Grid, Rows, Rows, Output*);
  const PackedRows a = packed<Element>(stored_a(p), o.a), b = packed<Element>(stored_b(p), o.b);
  const Kernel kernel = [&]() -> Kernel {
    if constexpr (sizeof(Element) == 2) {
      if (a.k_major && !b.k_major)
        return mma_sync<Rung, MmaTile<Arithmetic, Shape, true, false>, Grid>;
      if (!a.k_major && b.k_major)
        return mma_sync<Rung, MmaTile<Arithmetic, Shape, false, true>, Grid>;
      if (!a.k_major && !b.k_major)
        return mma_sync<Rung, MmaTile<Arithmetic, Shape, false, false>, Grid>;
    }
    return mma_sync<Rung, MmaTile<Arithmetic, Shape, true, true>, Grid>;
  }();
  simt::allow_shared_bytes(kernel, Shape::kSharedBytes);
  const Grid grid{simt::TileGrid<Shape::kBM, Shape::kBN>(p), Rung::kGroup};
  return [=, blocks = grid.blocks(), c = static_cast<Output*>(o.c)](Stream stream) {
    a.copying(stream);
    b.copying(stream);
    kernel<<<blocks, Shape::kThreads, Shape::kSharedBytes, stream>>>(p, grid, a.rows, b.rows, c);
  };
}

template <typename Rung, typename Arithmetic>
Traffic mma_traffic(const Problem& p) {
  using Shape = typename Rung::template Shape<Arithmetic>;
  Traffic traffic = simt::tile_traffic(
      p, Shape::kBM, Shape::kBN,
      Shape::kDepth / static_cast<int>(sizeof(typename Arithmetic::Element)), Shape::kWavefronts);
  for (const Stored& stored : {stored_a(p), stored_b(p)}) {
    traffic.dram += 2 * stored.bulk_load();
    traffic.l2 += 2 * stored.bulk_load();
    traffic.shared += 2 * stored.bulk_load();
  }
  return traffic;
}

// Calls f<Arithmetic>() for the one with that precision.
template <typename First, typename... Others, typename F>
auto with_arithmetic(Precision precision, F&& f) {
  if constexpr (sizeof...(Others) > 0)
    if (precision != First::kPrecision) return with_arithmetic<Others...>(precision, f);
  return f.template operator()<First>();
}

// Completes the description of a rung.
template <typename Rung, typename... Arithmetics>
Kernel mma_kernel(Kernel kernel) {
  kernel.precisions = {Arithmetics::kPrecision...};
  kernel.layouts.assign(kLayouts.begin(), kLayouts.end());
  kernel.unsupported = [](const Problem& p, const Device& device) {
    return with_arithmetic<Arithmetics...>(
        p.precision, [&]<typename A>() -> std::optional<std::string> {
          constexpr int kSince = std::max(Rung::kSince, A::kSince);
          if (device.compute_capability < kSince)
            return "requires compute capability " + std::to_string(kSince / 10) + "." +
                   std::to_string(kSince % 10);
          return simt::shared_memory_unsupported(Rung::template Shape<A>::kSharedBytes, device);
        });
  };
  kernel.traffic = [](const Problem& p, const Device&) {
    return with_arithmetic<Arithmetics...>(p.precision,
                                           [&]<typename A>() { return mma_traffic<Rung, A>(p); });
  };
  kernel.prepare = [](const Problem& p, const Device&, const Operands& o) {
    return with_arithmetic<Arithmetics...>(p.precision,
                                           [&]<typename A>() { return mma_launch<Rung, A>(p, o); });
  };
  return kernel;
}

}  // namespace gemm::tensor
