// Launches of wgmma kernels in every precision and layout: instances, packed operands, tensor maps,
// and the traffic model.
//
// 16-bit operands are read K-major or MN-major, and only copied if their rows are not aligned to 16
// bytes. In TF32 one operand may be MN-major: A, or B, for which the transpose of C is computed.
// Others are packed K-major in every launch: B of TF32 in layout tn, and 8-bit operands in all
// layouts but nt.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/gemm.hpp"
#include "kernels/layout.hpp"
#include "kernels/parts/cluster_launch.cuh"
#include "kernels/parts/device_array.cuh"
#include "kernels/parts/packed_operand.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/staged_operand.cuh"
#include "kernels/parts/store.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_order.cuh"
#include "kernels/parts/tile_schedule.hpp"

namespace gemm::tensor {

// The kernel parameter. A kernel sets `tiles`, wgmma_launch the rest.
struct WgmmaWork {
  TileOrder tiles;  // per cluster, or per block
  std::int64_t m, n;
  int k_tiles;  // of 128 bytes along k
  bool by_tma;  // C's rows are aligned to 16 bytes, as TMA stores require
  void* c;
  CUtensorMap a_map, b_map, c_map;
};
template <typename Work>
using WgmmaKernel = void (*)(Work);

// 65,536 registers are 168 for each of 384 threads; setmaxnreg redistributes them among a producer
// and two consumer warpgroups.
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;

// Elements of a K tile along k.
inline int k_tile_depth(Precision precision) {
  return kLineBytes128 / traits_of(precision).input_bytes;
}

// use.operator()<WgmmaOperands>() for 16-bit operands as stored.
template <typename T, typename Use>
auto with_16_bit_operands(Layout layout, Use use) {
  return with_transposes(layout, [&]<bool kA, bool kB>() {
    return use.template operator()<WgmmaOperands<T, T, !kA, kB>>();
  });
}

// TF32: whether A goes through registers (all layouts but nt), and whether the transpose of C is
// computed (nn).
constexpr bool a_in_registers(const Problem& p) {
  return p.precision == Precision::tf32 && p.layout != Layout::nt;
}
constexpr bool transposes_c(const Problem& p) {
  return a_in_registers(p) && p.layout == Layout::nn;
}
// The C that is cut into tiles. Where the transpose of C is computed, m is its columns. Of a batch,
// which has to be in layout nt, the C of all products are one below another.
constexpr Problem tiled_problem(Problem p, bool transposed) {
  p.m *= std::exchange(p.batch, 1);
  if (transposed) std::swap(p.m, p.n);
  return p;
}

// use.operator()<WgmmaOperands>() for every precision of the tensor cores.
template <typename Use>
auto with_operands(const Problem& p, Use use) {
  switch (p.precision) {
    case Precision::bf16:
      return with_16_bit_operands<__nv_bfloat16>(p.layout, use);
    case Precision::f16:
      return with_16_bit_operands<__half>(p.layout, use);
    case Precision::tf32:
      if (transposes_c(p))
        return use.template operator()<WgmmaOperands<float, float, false, true, true>>();
      if (a_in_registers(p))
        return use.template operator()<WgmmaOperands<float, float, false, true>>();
      return use.template operator()<WgmmaOperands<float, float, true, true>>();
    case Precision::e4m3:
    case Precision::e4m3fast:
      return use.template operator()<WgmmaOperands<__nv_fp8_e4m3, __nv_bfloat16, true, true>>();
    case Precision::e4m3block:
      return use.template operator()<ScaledOperands>();
    case Precision::e5m2:
    case Precision::e5m2fast:
      return use.template operator()<WgmmaOperands<__nv_fp8_e5m2, __nv_bfloat16, true, true>>();
    case Precision::s8:
      return use.template operator()<WgmmaOperands<std::int8_t, std::int32_t, true, true>>();
    default:
      throw std::logic_error("wgmma does not support this precision");
  }
}

// The same where the transpose of C is computed, if can_transpose(p): rows of A, the columns of
// C^T, are then K-major.
constexpr bool can_transpose(const Problem& p) {
  const PrecisionTraits& traits = traits_of(p.precision);
  return p.precision != Precision::tf32 && traits.output_bytes == 2 && !promotes(p.precision) &&
         (traits.input_bytes == 1 || p.layout == Layout::nn || p.layout == Layout::nt);
}
template <typename Use>
auto with_transposed_operands(const Problem& p, Use use) {
  const auto of_16_bit = [&]<typename T>(T) {
    return p.layout == Layout::nt
               ? use.template operator()<WgmmaOperands<T, T, true, true, true>>()
               : use.template operator()<WgmmaOperands<T, T, false, true, true>>();
  };
  switch (p.precision) {
    case Precision::bf16:
      return of_16_bit(__nv_bfloat16{});
    case Precision::f16:
      return of_16_bit(__half{});
    case Precision::e4m3fast:
      return use
          .template operator()<WgmmaOperands<__nv_fp8_e4m3, __nv_bfloat16, true, true, true>>();
    case Precision::e5m2fast:
      return use
          .template operator()<WgmmaOperands<__nv_fp8_e5m2, __nv_bfloat16, true, true, true>>();
    default:
      throw std::logic_error("C^T of this precision is not computed");
  }
}

// A and B as stored, all of a batch; exchanged if the transpose of C is computed.
template <typename Of>
std::pair<Operand<typename Of::Element>, Operand<typename Of::Element>> operands_of(
    Problem stored, const Operands& o) {
  stored.m *= stored.batch;
  stored.n *= stored.batch;
  const auto a = operand_a<typename Of::Element>(stored, o.a),
             b = operand_b<typename Of::Element>(stored, o.b);
  return Of::kTransposesC ? std::pair(b, a) : std::pair(a, b);
}
// Bytes that packing them moves.
inline double packing_bytes(const Problem& stored) {
  return with_operands(stored, [&]<typename Of>() {
    const auto [a, b] = operands_of<Of>(stored, {});
    return packing_bytes(a, Of::kAKMajor) + packing_bytes(b, Of::kBKMajor);
  });
}

// A launch in which blocks, or clusters that share B, compute tiles of C. Fills in the WgmmaWork
// part of `work` and keeps `memory` alive. Throws std::exception if allocation fails.
template <typename Tile, typename Work>
Launch wgmma_launch(WgmmaKernel<Work> kernel, const LaunchShape& shape, bool stores_by_tma,
                    const Problem& stored, const Operands& o, Work work,
                    simt::DeviceMemory memory = {}) {
  using Output = typename Tile::Output;
  constexpr bool kTransposed = Tile::Operands::kTransposesC;
  const Problem p = tiled_problem(stored, kTransposed);
  simt::allow_shared_bytes(kernel, shape.shared_bytes);
  const auto [first, second] = operands_of<typename Tile::Operands>(stored, o);
  const auto a = packed(first, Tile::Operands::kAKMajor),
             b = packed(second, Tile::Operands::kBKMajor);
  work.a_map = Tile::A::map(a, p.m, p.k);
  work.b_map = Tile::B::map(b, stored.batch * p.n, p.k, shape.cluster);
  if constexpr (requires { work.a_edge; }) {
    work.a_edge = Tile::A::edge_map(a, p.m, p.k);
    work.b_edge = Tile::B::edge_map(b, p.n, p.k, shape.cluster);
  }
  work.m = p.m;
  work.n = p.n;
  work.k_tiles = static_cast<int>(ceil_div(p.k, Tile::kBK));
  work.by_tma = stores_by_tma && sizeof(Output) == 2 && stored.n % 8 == 0 &&
                reinterpret_cast<std::uintptr_t>(o.c) % 16 == 0;
  work.c = o.c;
  if constexpr (sizeof(Output) == 2)
    if (work.by_tma) {
      constexpr int kColumns = kTransposed ? 64 : box_columns(Tile::kBN);
      work.c_map =
          tensor_map(static_cast<Output*>(o.c), stored.batch * stored.m, stored.n, stored.n,
                     kTransposed ? kTransposedRows : 64, kColumns,
                     kColumns == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B);
    }
  return [=, packing = pack(a, b), memory = std::move(memory)](Stream stream) {
    if (packing) packing(stream);
    enqueue(kernel, shape, stream, work);
  };
}

template <typename Work>
std::optional<std::string> wgmma_unsupported(WgmmaKernel<Work> kernel, const Problem& p,
                                             const Device& device) {
  if (!simt::counts_fit(tiled_problem(p, false), 64, 64, 64)) return simt::kCountsDoNotFit;
  return sm_90a_unsupported(kernel, device);
}

// The parameters of the traffic model.
struct WgmmaTraffic {
  int rows, columns;        // of C, per block
  int cluster;              // blocks with vertically adjacent tiles, which share loads of B
  bool stores_by_tma;       // else by threads; two 16-bit elements fill a sector in part
  bool transposed = false;  // rows and columns are those of C^T
};

// K tiles are loaded once per tile of C, or once per cluster if shared, MN-major B in boxes of 64
// columns; the tensor cores read those of B for every 64 rows of A.
inline Traffic wgmma_traffic(const Problem& stored, const WgmmaTraffic& of) {
  const Problem p = tiled_problem(stored, of.transposed);
  const PrecisionTraits& traits = traits_of(p.precision);
  const double rows = 1.0 * ceil_div(p.m, of.cluster * of.rows) * of.cluster;
  const double columns = 1.0 * ceil_div(p.n, of.columns);
  const double a = 1.0 * traits.input_bytes * p.m * p.k, b = 1.0 * traits.input_bytes * p.n * p.k;
  const double c = 1.0 * traits.output_bytes * p.m * p.n;
  const double packed = packing_bytes(stored);
  const auto added = static_cast<double>(elements_of_bias(stored) + elements_of_residual(stored));
  const bool in_boxes = traits.input_bytes == 2 && !of.transposed && !transposes_b(p.layout);
  const double loaded = in_boxes ? 64.0 * ceil_div(of.columns, 64) : of.columns;  // of B
  const bool halves = traits.output_bytes == 2, staged = halves && of.stores_by_tma;
  const bool by_tma = staged && stored.n % 8 == 0;
  // Of 128 bytes stored by rows, in five sectors, or six with the elements at the ends.
  const double by_rows = stored.n % 2 == 0 ? 1.25 * c : 1.5 * c;
  const double by_threads = stored.n % 2 == 0 ? 2 * c : 4 * c;
  const double written = !halves || by_tma ? c : staged ? by_rows : by_threads;
  const double of_k_tile = 1.0 * kLineBytes128 * (2 * of.rows + loaded + of.rows / 64 * of.columns);
  return {.dram = bytes_minimum(stored) + packed,
          .l2 = packed + a * columns + b * rows / of.cluster * loaded / of.columns + written +
                traits.output_bytes * added,
          .shared = packed + of_k_tile * rows * columns * ceil_div(p.k, k_tile_depth(p.precision)) +
                    (staged ? 2 * c : 0)};
}

}  // namespace gemm::tensor
