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
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/registry.hpp"

namespace gemm::tensor {

// The tiles of C in the order in which they are computed: groups of `group` rows of tiles, one
// after another; within a group, column by column. Groups of one are the row-major order.
struct Tiles {
  int rows, columns, group;

  Tiles(const Problem& p, int tile_rows, int tile_columns, int group = 1)
      : rows(static_cast<int>(ceil_div(p.m, tile_rows))),
        columns(static_cast<int>(ceil_div(p.n, tile_columns))),
        group(group) {}
  __host__ __device__ int count() const { return rows * columns; }
  struct Place {
    int row, column;  // of tiles
  };
  __device__ Place place(int tile) const {
    const int in_group = group * columns;
    const int before = tile / in_group, index = tile - before * in_group;
    const int height = min(group, rows - before * group);
    return {before * group + index % height, index / height};
  }
};

// What a wgmma rung computes, its kernel's parameter.
struct Work {
  Tiles tiles;
  std::int64_t m, n;
  int k_tiles;
  void* c;
  CUtensorMap a_map, b_map, c_map;
  bool stores_by_tma;  // c_map is set: TMA stores rows of C at multiples of 16 bytes only
};

// A launch of so many blocks of the kernel. Throws std::runtime_error if the device has too little
// shared memory.
struct Blocks {
  int count, threads, shared_bytes = 0, cluster = 1;
};
template <typename... Parameters>
Launch launched(void (*kernel)(Parameters...), const Blocks& blocks,
                std::type_identity_t<Parameters>... arguments) {
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           blocks.shared_bytes) != cudaSuccess) {
    cudaGetLastError();  // clear the error, else the next launch would report it
    throw std::runtime_error("a block cannot have " + std::to_string(blocks.shared_bytes) +
                             " bytes of shared memory");
  }
  return [=](Stream stream) {
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {static_cast<unsigned>(blocks.cluster), 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks.count));
    config.blockDim = dim3(static_cast<unsigned>(blocks.threads));
    config.dynamicSmemBytes = static_cast<std::size_t>(blocks.shared_bytes);
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = blocks.cluster > 1 ? 1 : 0;
    cudaLaunchKernelEx(&config, kernel, arguments...);
  };
}

// Kernel::prepare: the launch of the problem's precision.
struct LaunchOf {
  Precision precision;
  Launch (*prepare)(const Problem&, const Device&, const Operands&);
};
inline auto by_precision(std::vector<LaunchOf> launches) {
  return [=](const Problem& p, const Device& device, const Operands& o) {
    return std::ranges::find(launches, p.precision, &LaunchOf::precision)->prepare(p, device, o);
  };
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
  constexpr std::int64_t kMost = 1 << 30;
  if (std::max({p.m, p.n, p.k}) > kMost || p.m * p.n > kMost * 1024)
    return "requires m, n and k of at most 2^30, and m n of at most 2^40";
  return std::nullopt;
}
// Kernel::unsupported of a rung whose kernel has a body only in code for sm_90a, with mbarriers in
// static shared memory.
template <typename... Parameters>
auto needs_sm_90a(void (*kernel)(Parameters...)) {
  return [=](const Problem& p, const Device& device) -> std::optional<std::string> {
    if (device.compute_capability != 90) return "requires compute capability 9.0";
    cudaFuncAttributes attributes{};
    if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess)
      cudaGetLastError();  // no device
    else if (attributes.sharedSizeBytes == 0)
      return "requires sm_90a code (rebuild with -DCMAKE_CUDA_ARCHITECTURES=90a)";
    return unsupported_before(90, p, device);
  };
}

// Blocks load their rows of A and columns of B in K tiles of `depth` steps, each of which moves so
// many bytes through shared memory. A cluster has vertically adjacent tiles and loads B once.
// stores: bytes of L2 sectors that are written, for each byte of C.
inline Traffic traffic_of(const Problem& p, int rows, int columns, int depth, double shared_bytes,
                          double stores = 1, int cluster = 1) {
  const PrecisionTraits& traits = traits_of(p.precision);
  const double down = 1.0 * ceil_div(p.m, cluster * rows), across = 1.0 * ceil_div(p.n, columns);
  const double a = 1.0 * traits.input_bytes * p.m * p.k, b = 1.0 * traits.input_bytes * p.n * p.k;
  const double c = 1.0 * traits.output_bytes * p.m * p.n;
  return {.dram = bytes_minimum(p),
          .l2 = a * across + b * down + stores * c,
          .shared = shared_bytes * cluster * down * across * ceil_div(p.k, depth)};
}
// `stores` of two 16-bit elements at a time, or one: they fill sectors in part.
inline double stores_of_pairs(const Problem& p) { return p.n % 2 == 0 ? 2 : 4; }

}  // namespace gemm::tensor
