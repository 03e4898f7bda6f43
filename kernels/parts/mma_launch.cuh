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

#include "kernels/layout.hpp"
#include "kernels/parts/device_array.cuh"
#include "kernels/parts/k_major_copy.cuh"
#include "kernels/parts/mma_tile.cuh"
#include "kernels/parts/packed_operand.cuh"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/registry.hpp"

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

// Whether an operand must be copied K-major.
template <typename T>
bool is_copied(const Operand<T>& operand) {
  return !operand.rows_of_16_bytes() || (!operand.k_major && sizeof(T) != 2);
}
// Elements per row of the copy.
template <typename T>
std::int64_t copy_pitch(const Operand<T>& operand) {
  constexpr std::int64_t kChunk = kChunkBytes / sizeof(T);
  return ceil_div(operand.k_size, kChunk) * kChunk;
}

// An operand as the kernel reads it, and the copy that must run before.
struct KernelOperand {
  Rows rows;
  bool k_major;
  Launch copying;
};
template <typename T>
KernelOperand kernel_operand(const Operand<T>& operand) {
  const auto rows = [](const T* first, std::int64_t pitch) {
    return Rows{reinterpret_cast<const std::byte*>(first),
                pitch * static_cast<std::int64_t>(sizeof(T))};
  };
  if (!is_copied(operand))
    return {rows(operand.matrix, operand.columns()), operand.k_major, [](Stream) {}};
  const std::int64_t pitch = copy_pitch(operand);
  const auto copy = simt::device_array<T>(operand.x_size * pitch);
  const auto kernel = operand.k_major ? copy_k_major<T, true> : copy_k_major<T, false>;
  return {rows(copy.get(), pitch), true,
          [=, grid = CopyGrid(operand.x_size, operand.k_size)](Stream stream) {
            kernel<<<grid.blocks(), kCopyThreads, 0, stream>>>(grid, operand.matrix, operand.x_size,
                                                               operand.k_size, copy.get(), pitch);
          }};
}

template <typename Rung, typename Arithmetic>
Launch mma_launch(const Problem& p, const Operands& o) {
  using Element = typename Arithmetic::Element;
  using Output = typename Arithmetic::Output;
  using Shape = typename Rung::template Shape<Arithmetic>;
  using Grid = simt::GroupedGrid<Shape::kBM, Shape::kBN>;
  using Kernel = void (*)(Problem, Grid, Rows, Rows, Output*);
  const KernelOperand a = kernel_operand(operand_a<Element>(p, o.a)),
                      b = kernel_operand(operand_b<Element>(p, o.b));
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
  using Element = typename Arithmetic::Element;
  using Shape = typename Rung::template Shape<Arithmetic>;
  Traffic traffic =
      simt::tile_traffic(p, Shape::kBM, Shape::kBN,
                         Shape::kDepth / static_cast<int>(sizeof(Element)), Shape::kWavefronts);
  for (const auto& operand : {operand_a<Element>(p, nullptr), operand_b<Element>(p, nullptr)}) {
    if (!is_copied(operand)) continue;
    const double copied = 2.0 * sizeof(Element) * operand.x_size * copy_pitch(operand);
    traffic.dram += copied;
    traffic.l2 += copied;
    traffic.shared += copied;
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
