// One thread computes one element of C, directly from global memory. The lanes of a warp compute
// consecutive columns: their loads of B and stores of C are coalesced, and they share one element
// of A (a broadcast). Every FMA needs two loads, so the load/store units and the L1 behind them are
// the bottleneck, not DRAM.
#include <cstdint>

#include "kernels/ladder/fp32/naive_launch.cuh"
#include "kernels/parts/element.cuh"
#include "kernels/registry.hpp"

namespace gemm::simt::naive {
namespace {

using enum Precision;

template <typename T, typename Offset>
__global__ void naive(Problem p, NaiveGrid grid, const T* __restrict__ a, const T* __restrict__ b,
                      T* __restrict__ c) {
  const Offset m = p.m, n = p.n, k = p.k;
  const Offset row = grid.first_row() + threadIdx.y;
  const Offset column = grid.first_column() + threadIdx.x;
  if (row >= m || column >= n) return;
  Accumulator<T> sum = 0;
#pragma unroll 32  // as many loads in flight at once
  for (Offset l = 0; l < k; ++l) sum += widen(a[row * k + l]) * widen(b[l * n + column]);
  c[row * n + column] = narrow<T>(sum);
}

template <Precision... kPrecisions>
Kernel kernel() {
  return {
      .name = "Naive",
      .idea = "One thread per element of C, with coalesced loads of B.",
      .source =
          "course report on CUDA matrix multiplication (Quadro RTX 5000), block 32 x 32; with "
          "blocks of 16 x 16 in the blog (Tesla T4), the post on int matrices (GTX 1060) and "
          "course "
          "5kk73",
      .rung = 11,
      .precisions = {kPrecisions...},
      .traffic = [](const Problem& p,
                    const Device&) { return naive_traffic(p, p.n, p.m, {.a = 0, .b = 1, .c = 1}); },
      .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
        return with_element<kPrecisions...>(p.precision, [&]<typename T>(T) {
          return naive_launch<T>(naive<T, int>, naive<T, std::int64_t>, p, o);
        });
      },
  };
}

const Registration registration(kernel<f32, bf16, f16, f64, s32>());

}  // namespace
}  // namespace gemm::simt::naive
