// Operands as the copy engine can bring them: lying along x, which is m for A and n for B, in rows
// that begin at multiples of 16 bytes. A matrix that lies along k is turned on the way, one whose
// rows begin anywhere gets longer ones; both cost a reading and a writing of the matrix.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <stdexcept>

#include "kernels/gemm.hpp"
#include "kernels/layout.hpp"
#include "kernels/simt/device_array.cuh"
#include "kernels/simt/transpose.cuh"

namespace gemm::simt {

// Element (x, k) lies at x * x_stride + k * k_stride; one of them is 1, and the other the size
// along the first.
struct Operand {
  const float* matrix;
  std::int64_t x_size, k_size, x_stride, k_stride;

  bool along_x() const { return x_stride == 1; }
  bool rows_of_16_bytes() const {
    return (along_x() ? k_stride : x_stride) % 4 == 0 &&
           reinterpret_cast<std::uintptr_t>(matrix) % 16 == 0;
  }
  std::int64_t elements() const { return x_size * k_size; }
};

inline Operand operand_a(const Problem& p, const void* a) {
  const auto* matrix = static_cast<const float*>(a);
  return transposes_a(p.layout) ? Operand{matrix, p.m, p.k, 1, lda(p)}
                                : Operand{matrix, p.m, p.k, lda(p), 1};
}
inline Operand operand_b(const Problem& p, const void* b) {
  const auto* matrix = static_cast<const float*>(b);
  return transposes_b(p.layout) ? Operand{matrix, p.n, p.k, ldb(p), 1}
                                : Operand{matrix, p.n, p.k, 1, ldb(p)};
}

// A thread turns 4 x 4 elements in its registers. Eight lanes of a warp lie along k and four along
// x, so that it reads whole cache lines of a matrix that lies along k, and writes whole sectors.
constexpr int kLaidX = 128, kLaidK = 32, kLaidThreads = 256;

// to[k * pitch + x], for x below pitch; beyond the matrix lie zeros.
template <bool kByFour>
__global__ void __launch_bounds__(kLaidThreads)
    lay_along_x(Operand from, float* to, std::int64_t pitch, std::int64_t blocks_along_x) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::int64_t x = blockIdx.x % blocks_along_x * kLaidX + warp * 16 + lane / 8 * 4;
  const std::int64_t k = blockIdx.x / blocks_along_x * kLaidK + lane % 8 * 4;
  if (x >= pitch || k >= from.k_size) return;
  const float* element = from.matrix + x * from.x_stride + k * from.k_stride;
  float block[4][4];  // [along x][along k]
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (kByFour) {
      *reinterpret_cast<float4*>(block[i]) =
          x + i < from.x_size ? *reinterpret_cast<const float4*>(element + i * from.x_stride)
                              : make_float4(0, 0, 0, 0);
    } else {
#pragma unroll
      for (int l = 0; l < 4; ++l)
        block[i][l] = x + i < from.x_size && k + l < from.k_size
                          ? element[i * from.x_stride + l * from.k_stride]
                          : 0;
    }
  }
#pragma unroll
  for (int l = 0; l < 4; ++l)
    if (k + l < from.k_size)
      *reinterpret_cast<float4*>(to + (k + l) * pitch + x) =
          make_float4(block[0][l], block[1][l], block[2][l], block[3][l]);
}

// An operand along x, and what has to be enqueued before it is there: null for one that lies so.
struct LaidOperand {
  const float* matrix;
  std::int64_t pitch;  // elements from one k to the next
  Launch lay;
};

// Whether the tiled transpose gives rows of a multiple of 16 bytes.
inline bool transposes(const Operand& operand) {
  return !operand.along_x() && operand.x_size % 4 == 0;
}

inline LaidOperand laid_along_x(const Operand& operand) {
  if (operand.along_x() && operand.rows_of_16_bytes())
    return {operand.matrix, operand.k_stride, nullptr};
  if (transposes(operand)) {
    // Faster than turning blocks in registers, which writes 64 bytes at a time (NOTES.md).
    auto memory = device_array<float>(operand.elements());
    float* to = memory.get();
    return {to, operand.x_size, [=, memory = std::move(memory)](Stream stream) {
              enqueue_transpose(operand.matrix, to, operand.x_size, operand.k_size, stream);
            }};
  }
  const auto pieces = [](std::int64_t whole, int piece) { return (whole + piece - 1) / piece; };
  const std::int64_t pitch = pieces(operand.x_size, 4) * 4;
  const std::int64_t along_x = pieces(pitch, kLaidX),
                     blocks = along_x * pieces(operand.k_size, kLaidK);
  if (blocks > 0x7fffffff) throw std::length_error("an operand has more blocks than a grid");
  auto memory = device_array<float>(pitch * operand.k_size);
  const auto kernel =
      !operand.along_x() && operand.rows_of_16_bytes() ? lay_along_x<true> : lay_along_x<false>;
  float* to = memory.get();
  return {to, pitch, [=, memory = std::move(memory)](Stream stream) {
            kernel<<<static_cast<unsigned>(blocks), kLaidThreads, 0, stream>>>(operand, to, pitch,
                                                                               along_x);
          }};
}

// What laying it moves: the matrix is read and written once more.
inline double laid_bytes(const Operand& operand) {
  const bool lies = operand.along_x() && operand.rows_of_16_bytes();
  return lies ? 0 : 2.0 * sizeof(float) * static_cast<double>(operand.elements());
}

// Of both operands, on an H200 (NOTES.md).
inline double laid_seconds(const Problem& p) {
  constexpr double kLaunchSeconds = 3e-6, kTransposed = 3.3e12, kInRegisters = 1.7e12;
  double seconds = 0;
  for (const Operand& operand : {operand_a(p, nullptr), operand_b(p, nullptr)})
    if (const double bytes = laid_bytes(operand); bytes > 0)
      seconds += kLaunchSeconds + bytes / (transposes(operand) ? kTransposed : kInRegisters);
  return seconds;
}

}  // namespace gemm::simt
