// How the rungs of wgmma_tile.cuh are launched: instances by precision and layout, operands laid as
// wgmma takes them, maps, workspace, and what a launch moves.
//
// Factors of 16 bits are read in either direction, and only copied if their rows do not begin at
// multiples of 16 bytes. Of TF32 one may lie across k: A, or B, for which the transpose of C is
// computed. Others that do not lie along k are turned in every launch: B of TF32 in layout tn, and
// in one byte all but those of nt.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kernels/common/device_array.cuh"
#include "kernels/common/laid_operand.cuh"
#include "kernels/common/tensor_map.hpp"
#include "kernels/common/tile_launch.cuh"
#include "kernels/common/tile_schedule.hpp"
#include "kernels/gemm.hpp"
#include "kernels/layout.hpp"
#include "kernels/tensor/wgmma/wgmma_slice.cuh"
#include "kernels/tensor/wgmma/wgmma_tile.cuh"

namespace gemm::tensor {

constexpr int kSliceBytes128 = 128;  // of k, a slice

// Elements of k in a slice.
inline int slice_depth(Precision precision) {
  return kSliceBytes128 / traits_of(precision).input_bytes;
}

// use.operator()<Element, Output>() for the types of a precision.
template <typename Use>
auto with_types(Precision precision, Use use) {
  switch (precision) {
    case Precision::bf16:
      return use.template operator()<__nv_bfloat16, __nv_bfloat16>();
    case Precision::f16:
      return use.template operator()<__half, __half>();
    case Precision::tf32:
      return use.template operator()<float, float>();
    case Precision::e4m3:
    case Precision::e4m3fast:
      return use.template operator()<__nv_fp8_e4m3, __nv_bfloat16>();
    case Precision::e5m2:
    case Precision::e5m2fast:
      return use.template operator()<__nv_fp8_e5m2, __nv_bfloat16>();
    case Precision::s8:
      return use.template operator()<std::int8_t, std::int32_t>();
    default:
      throw std::logic_error("wgmma has no such precision");
  }
}

// How a launch goes through the tiles.
struct WgmmaOrder {
  simt::TileSchedule schedule;  // of clusters
  int group;                    // rows of tiles that neighbouring tiles walk down
  bool overlaps;  // blocks begin, but touch nothing, before the launch before has ended
};

// What the host has to know of a WgmmaTile, and its kernel: launches are compiled once for each
// precision and not for each tile.
struct TileFacts {
  void (*kernel)(WgmmaWork, CUtensorMap, CUtensorMap, CUtensorMap);
  int rows, columns, depth, cluster, consumers, threads, shared_bytes;
  bool a_across, b_across, turns_c, shares_a, stores_by_copy;
};
template <typename Tile>
TileFacts facts_of() {
  return {.kernel = wgmma_tiles<Tile>,
          .rows = Tile::kBM,
          .columns = Tile::kBN,
          .depth = Tile::kBK,
          .cluster = Tile::kCluster,
          .consumers = Tile::kConsumers,
          .threads = Tile::kThreads,
          .shared_bytes = Tile::kSharedBytes,
          .a_across = Tile::kAAcross,
          .b_across = Tile::kBAcross,
          .turns_c = Tile::kTurnsC,
          .shares_a = Tile::kSharesA,
          .stores_by_copy = Tile::kStoresByCopy};
}

// `parts` blocks of a cluster copy a part each.
template <typename Element>
CUtensorMap factor_map(const LaidOperand<Element>& factor, std::int64_t x_size, std::int64_t k_size,
                       int rows, int depth, int parts) {
  constexpr auto kSwizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  // The copies round FP32 to TF32.
  constexpr CUtensorMapDataType kType = [] {
    if constexpr (std::is_same_v<Element, float>)
      return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    else
      return kMapType<Element>;
  }();
  if (factor.along_k)
    return tensor_map(factor.matrix, x_size, k_size, factor.pitch, rows / parts, depth, kSwizzle,
                      kType);
  return tensor_map(factor.matrix, k_size, x_size, factor.pitch, depth / parts, depth, kSwizzle,
                    kType);
}

// Whether factors of so many bytes are multiplied lying along k, or across it.
struct Lying {
  bool a, b;
};
constexpr Lying lying_along_k(int bytes, Layout layout) {
  return {bytes == 1 || !transposes_a(layout),
          bytes == 1 || transposes_b(layout) || bytes == 4 && transposes_a(layout)};
}

// What the tiles of the rungs compute: TF32 in layout nn the transpose of C. Only nt has no factor
// that goes through registers.
constexpr bool a_in_registers(const Problem& p) {
  return p.precision == Precision::tf32 && p.layout != Layout::nt;
}
constexpr bool turns_c(const Problem& p) { return a_in_registers(p) && p.layout == Layout::nn; }
constexpr Problem tiled_problem(Problem p) {
  if (turns_c(p)) std::swap(p.m, p.n);
  return p;
}

// `order` is that of the tiled problem. Throws std::exception if there is too little memory.
template <typename Element, typename Output>
Launch launch_tiles(const Problem& stored, const Operands& o, const WgmmaOrder& order,
                    const TileFacts& tile) {
  const Problem p = tiled_problem(stored);
  const simt::TileSchedule& schedule = order.schedule;
  simt::allow_shared_bytes(tile.kernel, tile.shared_bytes);
  const Operand<Element> first = operand_a<Element>(stored, o.a),
                         second = operand_b<Element>(stored, o.b);
  const auto a = laid(tile.turns_c ? second : first, !tile.a_across),
             b = laid(tile.turns_c ? first : second, !tile.b_across);
  const int a_parts = tile.shares_a ? tile.cluster : 1, b_parts = tile.shares_a ? 1 : tile.cluster;
  const CUtensorMap a_map = factor_map<Element>(a, p.m, p.k, tile.rows, tile.depth, a_parts);
  const CUtensorMap b_map = factor_map<Element>(b, p.n, p.k, tile.columns, tile.depth, b_parts);
  CUtensorMap c_map{};
  const bool by_copy = tile.stores_by_copy && p.n * sizeof(Output) % 16 == 0 &&
                       reinterpret_cast<std::uintptr_t>(o.c) % 16 == 0;
  if constexpr (sizeof(Output) == 2)
    if (by_copy)
      c_map =
          tensor_map(static_cast<Output*>(o.c), p.m, p.n, p.n, 64, 64, CU_TENSOR_MAP_SWIZZLE_128B);
  WgmmaWork work{.schedule = schedule,
                 .m = p.m,
                 .n = p.n,
                 .group = order.group,
                 .by_copy = by_copy,
                 .c = o.c,
                 .partials = nullptr,
                 .arrived = nullptr};
  std::shared_ptr<float> partials;
  std::shared_ptr<int> arrived;
  if (schedule.streamed() > 0) {
    const std::int64_t places = std::int64_t{schedule.streaming} * tile.cluster;
    const std::int64_t flags = places * tile.consumers;
    partials = simt::device_array<float>(places * tile.rows * tile.columns);
    arrived = simt::device_array<int>(flags);
    cudaError_t status = cudaMemset(arrived.get(), 0, flags * sizeof(int));
    if (status == cudaSuccess) status = cudaStreamSynchronize(nullptr);  // launches do not wait
    if (status != cudaSuccess)
      throw std::runtime_error(std::string("cudaMemset: ") + cudaGetErrorString(status));
    work.partials = partials.get();
    work.arrived = arrived.get();
  }
  const int clusters = schedule.whole > 0 ? schedule.blocks : schedule.streaming;
  return [=, laying = lay(a, b), overlaps = order.overlaps, partials = std::move(partials),
          arrived = std::move(arrived)](Stream stream) {
    if (laying) laying(stream);
    cudaLaunchAttribute attributes[2]{};
    unsigned count = 0;
    if (tile.cluster > 1) {
      attributes[count].id = cudaLaunchAttributeClusterDimension;
      attributes[count++].val.clusterDim = {static_cast<unsigned>(tile.cluster), 1, 1};
    }
    if (overlaps) {
      attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attributes[count++].val.programmaticStreamSerializationAllowed = 1;
    }
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(clusters * tile.cluster));
    config.blockDim = dim3(static_cast<unsigned>(tile.threads));
    config.dynamicSmemBytes = static_cast<std::size_t>(tile.shared_bytes);
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = count;
    // Its error is found by who launches.
    cudaLaunchKernelEx(&config, tile.kernel, work, a_map, b_map, c_map);
  };
}
template <typename Tile>
Launch launch_tiles(const Problem& stored, const Operands& o, const WgmmaOrder& order) {
  return launch_tiles<typename Tile::Element, typename Tile::Output>(stored, o, order,
                                                                     facts_of<Tile>());
}

// kThroughRegisters: a_in_registers(p).
template <WgmmaShape kShape, typename Element, typename Output, bool kThroughRegisters = false>
Launch launch_shape(const Problem& p, const Operands& o, const WgmmaOrder& order) {
  if constexpr (sizeof(Element) == 2) {
    switch (p.layout) {
      case Layout::nn:
        return launch_tiles<WgmmaTile<Element, Output, false, true, kShape>>(p, o, order);
      case Layout::nt:
        return launch_tiles<WgmmaTile<Element, Output, false, false, kShape>>(p, o, order);
      case Layout::tn:
        return launch_tiles<WgmmaTile<Element, Output, true, true, kShape>>(p, o, order);
      case Layout::tt:
        return launch_tiles<WgmmaTile<Element, Output, true, false, kShape>>(p, o, order);
    }
    throw std::logic_error("no such layout");
  } else {
    if constexpr (kThroughRegisters) {
      if (turns_c(p))
        return launch_tiles<WgmmaTile<Element, Output, true, false, kShape, true>>(p, o, order);
      return launch_tiles<WgmmaTile<Element, Output, true, false, kShape>>(p, o, order);
    } else {
      return launch_tiles<WgmmaTile<Element, Output, false, false, kShape>>(p, o, order);
    }
  }
}

// A cluster for each tile.
inline simt::TileSchedule cluster_tiles(const Problem& p, const WgmmaShape& shape) {
  return simt::whole_tiles(p, shape.cluster_rows(), shape.cluster_columns(),
                           slice_depth(p.precision));
}
// As many clusters as fit the device at once, for all tiles.
inline simt::TileSchedule persistent_tiles(const Problem& p, const WgmmaShape& shape,
                                           const Device& device) {
  simt::TileSchedule schedule = cluster_tiles(p, shape);
  schedule.blocks = std::min(schedule.blocks, std::max(1, device.sm_count / shape.cluster));
  return schedule;
}

// What laying the operands reads and writes.
inline double wgmma_laid_bytes(const Problem& p) {
  return with_types(p.precision, [&]<typename Element, typename Output>() {
    const Lying along_k = lying_along_k(sizeof(Element), p.layout);
    return laying_bytes(operand_a<Element>(p, nullptr), along_k.a) +
           laying_bytes(operand_b<Element>(p, nullptr), along_k.b);
  });
}

// Slices come once for each tile, what a cluster shares once for all its tiles; the tensor cores
// read that of B for every 64 rows of A's. So many pieces of tiles are stored and loaded again.
// What threads store are half sectors of 16-bit elements.
inline Traffic wgmma_tile_traffic(const Problem& stored, const WgmmaShape& shape,
                                  double pieces = 0) {
  const auto count = [](std::int64_t whole, int piece) {
    return static_cast<double>((whole + piece - 1) / piece);
  };
  const Problem p = tiled_problem(stored);
  const PrecisionTraits& traits = traits_of(p.precision);
  const double rows = count(p.m, shape.cluster_rows()) * shape.cluster_rows() / shape.rows;
  const double columns =
      count(p.n, shape.cluster_columns()) * shape.cluster_columns() / shape.columns;
  const double a = 1.0 * traits.input_bytes * p.m * p.k, b = 1.0 * traits.input_bytes * p.n * p.k;
  const double c = 1.0 * traits.output_bytes * p.m * p.n;
  const double laid = wgmma_laid_bytes(stored);
  const double partials = pieces * 2 * sizeof(float) * shape.cluster * shape.rows * shape.columns;
  const int a_shared = shape.shares_a ? shape.cluster : 1;
  const int b_shared = shape.shares_a ? 1 : shape.cluster;
  const bool copied = shape.stores_by_copy && p.n * traits.output_bytes % 16 == 0;
  const double written = traits.output_bytes == 2 && !copied ? 2 * c : c;
  const double of_slice =
      1.0 * kSliceBytes128 * (2 * shape.rows + shape.columns + shape.rows / 64 * shape.columns);
  return {.dram = bytes_minimum(p) + laid + partials,
          .l2 = laid + a * columns / a_shared + b * rows / b_shared + written + partials,
          .shared = laid + of_slice * rows * columns * count(p.k, slice_depth(p.precision)) +
                    (copied && traits.output_bytes == 2 ? 2 * c : 0)};
}

// Why a device cannot run the tiles of a shape, one of which is asked for all.
template <WgmmaShape kShape>
std::optional<std::string> wgmma_tiles_unsupported(const Problem& p, const Device& device) {
  return wgmma_unsupported(
      wgmma_tiles<WgmmaTile<__nv_bfloat16, __nv_bfloat16, false, false, kShape>>, p, device);
}

// A rung of 16-bit precisions: one shape of tile.
template <WgmmaShape kShape, bool kPersistent, int kGroup>
Kernel wgmma_rung(std::string_view name, int rung, std::string_view idea, std::string_view source) {
  const auto order_of = [](const Problem& p, const Device& device) {
    return kPersistent ? persistent_tiles(p, kShape, device) : cluster_tiles(p, kShape);
  };
  return {
      .name = name,
      .idea = idea,
      .source = source,
      .rung = rung,
      .precisions = {Precision::bf16, Precision::f16},
      .layouts = {kLayouts.begin(), kLayouts.end()},
      .unsupported = wgmma_tiles_unsupported<kShape>,
      .traffic = [](const Problem& p, const Device&) { return wgmma_tile_traffic(p, kShape); },
      .prepare = [order_of](const Problem& p, const Device& device, const Operands& o) -> Launch {
        const WgmmaOrder order{order_of(p, device), kGroup, false};
        return with_types(p.precision, [&]<typename Element, typename Output>() -> Launch {
          if constexpr (sizeof(Element) == 2)
            return launch_shape<kShape, Element, Output>(p, o, order);
          else
            throw std::logic_error("a rung of 16-bit precisions");
        });
      },
  };
}

}  // namespace gemm::tensor
