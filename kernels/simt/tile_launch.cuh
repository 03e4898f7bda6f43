// How the kernels of this folder are launched: all take the problem, a grid of tiles, A, B and C.
#pragma once

#include <cuda_runtime.h>

#include "kernels/gemm.hpp"

namespace gemm::simt {

template <typename T, typename Grid>
using TileKernel = void (*)(Problem, Grid, const T*, const T*, T*);

// One block of so many threads for each tile of C.
template <typename T, typename Grid>
Launch tile_launch(TileKernel<T, Grid> kernel, dim3 threads, const Problem& p, const Operands& o) {
  const Grid grid(p);
  return [=, blocks = grid.blocks()](Stream stream) {
    kernel<<<blocks, threads, 0, stream>>>(p, grid, static_cast<const T*>(o.a),
                                           static_cast<const T*>(o.b), static_cast<T*>(o.c));
  };
}

}  // namespace gemm::simt
