// The host side of the rungs on tensor cores, and the order of their tiles.
//
// These rungs multiply rows of A by columns of B, both contiguous along k (layout nt) and at
// multiples of 16 bytes, as TMA and cp.async copy them; m and n are any. The kernels of
// kernels/best take every layout and size.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/cluster_launch.cuh"
#include "kernels/parts/cost.hpp"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_order.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor {

// The tiles of C, in the order in which they are computed.
struct Tiles : TileOrder {
  Tiles(const Problem& p, int tile_rows, int tile_columns, int group = 1)
      : TileOrder{static_cast<int>(ceil_div(p.m, tile_rows)),
                  static_cast<int>(ceil_div(p.n, tile_columns)), group} {}
};

// What a wgmma rung computes, its kernel's parameter.
struct Work {
  Tiles tiles;
  std::int64_t m, n;
  int k_tiles;
  void* c;
  CUtensorMap a_map, b_map, c_map;
  // TMA stores rows of C that begin at multiples of 16 bytes.
  __device__ bool stores_by_tma() const { return n % 8 == 0; }
};

// Before the first TMA load needs them.
__device__ inline void prefetch_maps(const Work& work, bool stores_by_tma) {
  prefetch_tensor_map(work.a_map);
  prefetch_tensor_map(work.b_map);
  if (stores_by_tma) prefetch_tensor_map(work.c_map);
}

// A launch of so many blocks of the kernel. `overlaps`: the kernel calls wait_for_previous_launch
// (programmatic dependent launch). Throws std::runtime_error if the device has too little shared
// memory.
struct Blocks {
  int count, threads, shared_bytes = 0, cluster = 1;
  bool overlaps = false;
};
template <typename... Parameters>
Launch launched(void (*kernel)(Parameters...), const Blocks& blocks,
                std::type_identity_t<Parameters>... arguments) {
  simt::allow_shared_bytes(kernel, blocks.shared_bytes);
  const LaunchShape shape{blocks.count, dim3(static_cast<unsigned>(blocks.threads)),
                          blocks.shared_bytes, blocks.cluster, blocks.overlaps};
  return [=](Stream stream) { enqueue(kernel, shape, stream, arguments...); };
}

// The blocks of a persistent kernel: one per SM, in whole clusters.
inline int blocks_at_once(const Tiles& tiles, const Device& device, int cluster = 1) {
  return cluster * std::min(tiles.count(), std::max(1, device.sm_count / cluster));
}

// Why a rung that needs this compute capability (80: 8.0) cannot run, or nothing.
inline std::optional<std::string> unsupported_before(int since, const Problem& p,
                                                     const Device& device) {
  if (device.compute_capability < since)
    return "requires compute capability " + std::to_string(since / 10) + "." +
           std::to_string(since % 10);
  const int of_chunk = 16 / traits_of(p.precision).input_bytes;
  if (p.k % of_chunk != 0)
    return "requires k to be a multiple of " + std::to_string(of_chunk) +
           ", so that rows begin at multiples of 16 bytes";
  if (std::max({p.m, p.n, p.k}) > 1 << 30) return "requires m, n and k of at most 2^30";
  return std::nullopt;
}
inline auto since(int capability) {
  return [=](const Problem& p, const Device& d) { return unsupported_before(capability, p, d); };
}
// Kernel::unsupported of a rung whose kernel has a body only in code for sm_90a, with mbarriers in
// static shared memory.
template <typename... Parameters>
auto needs_sm_90a(void (*kernel)(Parameters...)) {
  return [=](const Problem& p, const Device& device) -> std::optional<std::string> {
    if (auto reason = sm_90a_unsupported(kernel, device)) return reason;
    return unsupported_before(90, p, device);
  };
}

// How C is stored: 16 bytes at a time; two elements, which fill a sector in part; two elements of
// 32 bits after a detour through shared memory (wmma); by TMA, where it can.
enum class Epilogue { chunks, pairs, wmma, tma };

// For the traffic model: a block's tile of C, the bytes along k of a K tile, and the bytes that a K
// tile moves through shared memory.
struct TileShape {
  int rows, columns, line;
  double moved;
  Epilogue epilogue = Epilogue::chunks;
  int cluster = 1;  // blocks with vertically adjacent tiles, which load B once
};

// What a K tile of wgmma moves: TMA writes it, wgmma reads A once and B for every 64 rows of A.
constexpr double wgmma_bytes(int rows, int columns) {
  return 128.0 * (2 * rows + columns + rows / 64 * columns);
}

inline Traffic traffic_of(const Problem& p, const TileShape& tile) {
  const PrecisionTraits& traits = traits_of(p.precision);
  const double down = 1.0 * ceil_div(p.m, tile.cluster * tile.rows);
  const double across = 1.0 * ceil_div(p.n, tile.columns);
  const double k_tiles = 1.0 * ceil_div(p.k, tile.line / traits.input_bytes);
  const double a = 1.0 * traits.input_bytes * p.m * p.k, b = 1.0 * traits.input_bytes * p.n * p.k;
  const double c = 1.0 * traits.output_bytes * p.m * p.n;
  const bool by_tma = tile.epilogue == Epilogue::tma, wmma = tile.epilogue == Epilogue::wmma;
  const bool whole = tile.epilogue == Epilogue::chunks || wmma || (by_tma && p.n % 8 == 0);
  const double stored = whole ? c : p.n % 2 == 0 ? 2 * c : 4 * c;
  const double staged = by_tma ? 2 * c : wmma ? 8.0 * p.m * p.n : 0;
  return {.dram = bytes_minimum(p),
          .l2 = p.batch * (a * across + b * down + stored),
          .shared = p.batch * (tile.moved * tile.cluster * down * across * k_tiles + staged)};
}

// What a launch asks of the device that computes so many tiles of C, so many at once: the whole
// traffic is `traffic`.
inline gemm::Work work_of(const Problem& p, const Device& device, const Traffic& traffic,
                          const TileShape& tile, double tiles, double at_once) {
  const PrecisionTraits& traits = traits_of(p.precision);
  const double elements = 1.0 * tile.rows * tile.columns, waves = std::ceil(tiles / at_once);
  return {.traffic = traffic,
          .cycles = tensor_cycles(elements * tiles * static_cast<double>(p.k), traits.input_bytes,
                                  device),
          .busiest = waves * at_once / tiles,
          .tail = waves * elements * traits.output_bytes};
}

// Completes a rung, given the launch in each precision.
struct LaunchOf {
  Precision precision;
  Launch (*prepare)(const Problem&, const Device&, const Operands&);
};
inline Kernel nt_rung(Kernel kernel, const TileShape& tile, std::vector<LaunchOf> launches) {
  for (const LaunchOf& each : launches) kernel.precisions.push_back(each.precision);
  kernel.layouts = {Layout::nt};
  kernel.traffic = [=](const Problem& p, const Device&) { return traffic_of(p, tile); };
  kernel.prepare = [=](const Problem& p, const Device& device, const Operands& o) {
    return std::ranges::find(launches, p.precision, &LaunchOf::precision)->prepare(p, device, o);
  };
  return kernel;
}

}  // namespace gemm::tensor
