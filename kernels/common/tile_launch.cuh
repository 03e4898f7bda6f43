// How the kernels of this folder are launched: all take the problem, a grid of tiles, A, B and C.
#pragma once

#include <stdexcept>
#include <string>

#include "kernels/gemm.hpp"

namespace gemm::simt {

template <typename T, typename Grid>
using TileKernel = void (*)(Problem, Grid, const T*, const T*, T*);

// Of a kernel's blocks, which have 48 KiB without asking. Throws std::runtime_error if the device
// has not so much.
template <typename Kernel>
void allow_shared_bytes(Kernel kernel, int bytes) {
  constexpr int kWithoutAsking = 48 << 10;
  if (bytes <= kWithoutAsking) return;
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status == cudaSuccess) return;
  cudaGetLastError();  // or the next launch would be blamed for it
  throw std::runtime_error(std::to_string(bytes) +
                           " bytes of shared memory a block: " + cudaGetErrorString(status));
}

// One block of so many threads, with so much dynamic shared memory, for each tile of C. Throws
// std::runtime_error if the device has not so much of it.
template <typename T, typename Grid>
Launch tile_launch(TileKernel<T, Grid> kernel, dim3 threads, const Problem& p, const Operands& o,
                   const Grid& grid, int shared_bytes = 0) {
  allow_shared_bytes(kernel, shared_bytes);
  return [=, blocks = grid.blocks()](Stream stream) {
    kernel<<<blocks, threads, shared_bytes, stream>>>(
        p, grid, static_cast<const T*>(o.a), static_cast<const T*>(o.b), static_cast<T*>(o.c));
  };
}
template <typename T, typename Grid>
Launch tile_launch(TileKernel<T, Grid> kernel, dim3 threads, const Problem& p, const Operands& o) {
  return tile_launch<T, Grid>(kernel, threads, p, o, Grid(p));
}

}  // namespace gemm::simt
