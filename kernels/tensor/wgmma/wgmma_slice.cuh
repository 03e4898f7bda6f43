// What the first rungs of wgmma have in common: slices of the factors in shared memory, the store
// of the sums, and how a problem finds its instance of a kernel.
//
// A slice is a tile's share of 64 steps of k, 128 bytes of 16-bit elements. wgmma reads such
// factors in either direction, so they are copied as they lie, in boxes whose lines of 128 bytes
// are swizzled: a factor along k as one box, a line for each row of the tile; one along m or n as
// boxes of 64 of its elements, a line for each k. What lies outside the matrix is zero.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/common/asynchronous.cuh"
#include "kernels/common/tensor_map.hpp"
#include "kernels/common/tile_grid.cuh"
#include "kernels/common/tile_launch.cuh"
#include "kernels/common/tile_schedule.hpp"
#include "kernels/gemm.hpp"
#include "kernels/layout.hpp"
#include "kernels/tensor/along_k.cuh"
#include "kernels/tensor/wgmma/wgmma.cuh"

namespace gemm::tensor {

constexpr int kSliceDepth = 64, kSliceSteps = kSliceDepth / 16;  // of k; products of 16 each

// Of kX rows of A or columns of B. In shared memory it begins at a multiple of 1024 bytes.
template <typename T, int kX, bool kAlongK>
struct FactorSlice {
  static_assert(sizeof(T) == 2 && kX % 64 == 0);
  static constexpr int kBytes = kX * kSliceDepth * 2, kBoxBytes = 64 * kSliceDepth * 2;

  static CUtensorMap map(const LaidOperand<T>& factor, std::int64_t x_size, std::int64_t k_size) {
    return kAlongK ? tensor_map(factor.matrix, x_size, k_size, factor.pitch, kX, kSliceDepth,
                                CU_TENSOR_MAP_SWIZZLE_128B)
                   : tensor_map(factor.matrix, k_size, x_size, factor.pitch, kSliceDepth, 64,
                                CU_TENSOR_MAP_SWIZZLE_128B);
  }

  // By one thread; `full` counts its bytes.
  static __device__ void copy(std::uint32_t to, const CUtensorMap& map, int x, int k,
                              std::uint32_t full) {
    if constexpr (kAlongK) {
      copy_box(to, map, k, x, full);
    } else {
#pragma unroll
      for (int box = 0; box < kX / 64; ++box)
        copy_box(to + box * kBoxBytes, map, x + 64 * box, k, full);
    }
  }

  // As wgmma takes it, from its row or column 64 * `part` on, in steps of 16 of k.
  static __device__ std::uint64_t descriptor(std::uint32_t slice, int part, int step) {
    const std::uint32_t first = slice + part * kBoxBytes;
    return kAlongK ? swizzled_rows(first) + step * (32 / 16)
                   : swizzled_across(first, kBoxBytes) + step * (2048 / 16);
  }
};

// An instance of a kernel: the elements, their directions, and the tile of C.
template <typename Element_, bool kAAlongK_, bool kBAlongK_, int kBM_, int kBN_>
struct WgmmaInstance {
  using Element = Element_;
  static constexpr bool kAAlongK = kAAlongK_, kBAlongK = kBAlongK_;
  static constexpr int kBM = kBM_, kBN = kBN_;
  using A = FactorSlice<Element, kBM, kAAlongK>;
  using B = FactorSlice<Element, kBN, kBAlongK>;
  using Grid = simt::TileGrid<kBM, kBN>;
  static constexpr int kSums = kBN / 2;  // of a thread, in 64 rows
  static constexpr int kBytes = A::kBytes + B::kBytes;

  // sums (+)= 64 rows of A's slice from row 64 * `part` on, times B's slice.
  static __device__ void enqueue_products(float (&sums)[kSums], std::uint32_t a, std::uint32_t b,
                                          int part, bool keep) {
#pragma unroll
    for (int step = 0; step < kSliceSteps; ++step)
      multiply<Element, !kAAlongK, !kBAlongK>(sums, A::descriptor(a, part, step),
                                              B::descriptor(b, 0, step), step > 0 || keep);
  }
};

// What a kernel gets beside its grid and its maps.
template <typename T>
struct WgmmaProblem {
  std::int64_t m, n;
  int slices;  // of k
  T* c;
};

__device__ inline __nv_bfloat162 pair_of(__nv_bfloat16, float x, float y) {
  return __floats2bfloat162_rn(x, y);
}
__device__ inline __half2 pair_of(__half, float x, float y) { return __floats2half2_rn(x, y); }

// The 64 rows of C from (first_row, first_column) on that are in C, by a warpgroup. In wgmma's sums
// each warp has 16 rows, and a thread pairs of neighbours in two of them, eight apart.
template <typename T, int kSums>
__device__ void store_sums(const float (&sums)[kSums], const WgmmaProblem<T>& p,
                           std::int64_t first_row, std::int64_t first_column) {
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  const std::int64_t column = first_column + lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = first_row + thread / 32 * 16 + lane / 4 + 8 * half;
    if (row >= p.m) return;
    T* to = p.c + row * p.n + column;
#pragma unroll
    for (int j = 0; j < kSums / 4; ++j) {
      const auto pair = pair_of(T{}, sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
      if (p.n % 2 == 0) {
        if (column + 8 * j < p.n)
          *reinterpret_cast<decltype(pair_of(T{}, 0, 0))*>(to + 8 * j) = pair;
      } else {
        if (column + 8 * j < p.n) to[8 * j] = pair.x;
        if (column + 8 * j + 1 < p.n) to[8 * j + 1] = pair.y;
      }
    }
  }
}

template <typename Instance>
using WgmmaKernel = void (*)(WgmmaProblem<typename Instance::Element>, typename Instance::Grid,
                             CUtensorMap, CUtensorMap);

// use(instance) for the instance that the problem takes.
template <int kBM, int kBN, typename Use>
auto with_instance(const Problem& p, Use use) {
  const auto of_element = [&](auto element) {
    using T = decltype(element);
    switch (p.layout) {
      case Layout::nn:
        return use(WgmmaInstance<T, true, false, kBM, kBN>{});
      case Layout::nt:
        return use(WgmmaInstance<T, true, true, kBM, kBN>{});
      case Layout::tn:
        return use(WgmmaInstance<T, false, false, kBM, kBN>{});
      default:
        return use(WgmmaInstance<T, false, true, kBM, kBN>{});
    }
  };
  return p.precision == Precision::bf16 ? of_element(__nv_bfloat16{}) : of_element(__half{});
}

// A block for each tile. Throws std::exception if there is too little memory.
template <typename Instance>
Launch wgmma_launch(WgmmaKernel<Instance> kernel, int threads, int shared_bytes, const Problem& p,
                    const Operands& o) {
  using T = typename Instance::Element;
  simt::allow_shared_bytes(kernel, shared_bytes);
  const auto a = laid_aligned(operand_a<T>(p, o.a)), b = laid_aligned(operand_b<T>(p, o.b));
  const CUtensorMap a_map = Instance::A::map(a, p.m, p.k), b_map = Instance::B::map(b, p.n, p.k);
  const typename Instance::Grid grid(p);
  const WgmmaProblem<T> problem{p.m, p.n, static_cast<int>((p.k + kSliceDepth - 1) / kSliceDepth),
                                static_cast<T*>(o.c)};
  return [=, laying = lay(a, b), blocks = grid.blocks()](Stream stream) {
    if (laying) laying(stream);
    kernel<<<blocks, threads, shared_bytes, stream>>>(problem, grid, a_map, b_map);
  };
}

// The bodies of these kernels have barriers in shared memory; what stands in for them in builds for
// other architectures has not.
template <typename Kernel>
std::optional<std::string> wgmma_unsupported(Kernel kernel, const Problem& p,
                                             const Device& device) {
  if (device.compute_capability != 90) return "needs compute capability 9.0";
  if (!simt::counts_fit(p, 64, 64, kSliceDepth)) return simt::kCountsDoNotFit;
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess) {
    cudaGetLastError();  // no device to ask
    return std::nullopt;
  }
  if (attributes.sharedSizeBytes == 0)
    return "this build has no sm_90a code: -DCMAKE_CUDA_ARCHITECTURES=90a";
  return std::nullopt;
}

// Slices come once for each tile, and the tensor cores read that of B for every 64 rows of A's. A
// warp stores its sums in half sectors, 16 bytes of eight rows, or less of them where n is odd.
template <int kBM, int kBN>
Traffic wgmma_traffic(const Problem& p) {
  const auto pieces = [](std::int64_t whole, int piece) {
    return static_cast<double>((whole + piece - 1) / piece);
  };
  const double rows = pieces(p.m, kBM), columns = pieces(p.n, kBN);
  const double a = 2.0 * p.m * p.k, b = 2.0 * p.n * p.k, c = 2.0 * p.m * p.n;
  using T = __half;  // or another of this size
  const double laid =
      aligning_bytes(operand_a<T>(p, nullptr)) + aligning_bytes(operand_b<T>(p, nullptr));
  constexpr double kOfSlice = 128.0 * (2 * (kBM + kBN) + (kBM / 64 - 1) * kBN);
  return {.dram = bytes_minimum(p) + laid,
          .l2 = laid + a * columns + b * rows + c * (p.n % 2 == 0 ? 2 : 4),
          .shared = kOfSlice * rows * columns * pieces(p.k, kSliceDepth)};
}

}  // namespace gemm::tensor
