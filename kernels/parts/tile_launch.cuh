// Launches of kernels that take the problem, a grid of tiles, A, B and C.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include "kernels/gemm.hpp"
#include "kernels/parts/cluster_launch.cuh"
#include "kernels/parts/tile_grid.cuh"

namespace gemm::simt {

template <typename T, typename Grid>
using TileKernel = void (*)(Problem, Grid, const T*, const T*, T*);

// Shared memory that a block can have, from compute capability 7.5 on.
inline int shared_memory_limit(const Device& device) {
  const int capability = device.compute_capability;
  if (capability == 75) return 64 << 10;
  if (capability == 80 || capability == 87) return 163 << 10;
  const bool small = capability == 86 || capability == 89 || capability == 120 || capability == 121;
  return (small ? 99 : 227) << 10;
}

// Why a block cannot have so much.
inline std::optional<std::string> shared_memory_unsupported(int bytes, const Device& device) {
  const int limit = shared_memory_limit(device);
  if (bytes <= limit) return std::nullopt;
  return "requires " + std::to_string(bytes >> 10) +
         " KiB of shared memory per block; the device has " + std::to_string(limit >> 10);
}

// Lets a kernel use that much dynamic shared memory; up to 48 KiB need no opt-in. Throws
// std::runtime_error if the device has less.
template <typename Kernel>
void allow_shared_bytes(Kernel kernel, int bytes) {
  constexpr int kWithoutOptIn = 48 << 10;
  if (bytes <= kWithoutOptIn) return;
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clear the error, else the next launch would report it
  throw std::runtime_error(std::to_string(bytes) +
                           " bytes of shared memory per block: " + cudaGetErrorString(status));
}

// One block per tile of C. Throws std::runtime_error if the device has too little shared memory.
// `overlaps`: the kernel calls wait_for_previous_launch (programmatic dependent launch).
template <typename T, typename Grid>
Launch tile_launch(TileKernel<T, Grid> kernel, dim3 threads, const Problem& p, const Operands& o,
                   const Grid& grid, int shared_bytes = 0, bool overlaps = false) {
  allow_shared_bytes(kernel, shared_bytes);
  const LaunchShape shape{static_cast<int>(grid.blocks()), threads, shared_bytes, 1,
                          overlaps && may_overlap(kernel)};
  return [=](Stream stream) {
    enqueue(kernel, shape, stream, p, grid, static_cast<const T*>(o.a), static_cast<const T*>(o.b),
            static_cast<T*>(o.c));
  };
}
template <typename T, typename Grid>
Launch tile_launch(TileKernel<T, Grid> kernel, dim3 threads, const Problem& p, const Operands& o) {
  return tile_launch<T, Grid>(kernel, threads, p, o, Grid(p));
}

// Kernel::prepare of a kernel, or of one of two: where rows begin at multiples of 16 bytes, and
// where not.
template <typename T, typename Grid>
auto prepare_tiles(TileKernel<T, Grid> kernel, dim3 threads) {
  return [=](const Problem& p, const Device&, const Operands& o) {
    return tile_launch<T, Grid>(kernel, threads, p, o);
  };
}
template <typename Grid>
auto prepare_tiles(TileKernel<float, Grid> aligned, TileKernel<float, Grid> any, dim3 threads) {
  return [=](const Problem& p, const Device&, const Operands& o) {
    return tile_launch<float, Grid>(rows_of_16_bytes(p) ? aligned : any, threads, p, o);
  };
}

}  // namespace gemm::simt
