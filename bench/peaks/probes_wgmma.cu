// Tensor cores of compute capability 9.0 by wgmma: two warpgroups of an SM multiply tiles of 64 x
// 256 out of shared memory, each with an A of its own, and share B.
//
// Shared memory holds 16 different K tiles of A and B. The accumulators are reset after a while, so
// that they keep the size that they have in a product of matrices (and because FP8 accumulates with
// no more than 13 bits), and are added to a total: with ones everywhere it counts the
// multiplications.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/base/cuda.hpp"
#include "bench/peaks/probes_cuda.hpp"
#include "kernels/parts/wgmma_sizes.cuh"

namespace gemm::bench {
namespace {

// An A or B of 128 bytes a row, in the 128-byte swizzle, is a block; a wgmma takes a K tile of 32
// bytes of each row.
constexpr int kM = 64, kN = 256;
constexpr int kGroups = 2, kThreads = 128 * kGroups;
constexpr int kBlocks = 4, kKTiles = 4 * kBlocks;
constexpr int kABytes = kM * 128, kBBytes = kN * 128;
constexpr int kOperandBytes = kBlocks * (kGroups * kABytes + kBBytes);
constexpr int kAlignment = 1024;  // of the swizzle

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr int kSums = kM * kN / 128;  // of a thread
constexpr int kSteps = 16;            // of all K tiles, at most, before a reset
#endif

template <typename Element, typename Sum = tensor::AccumulatorOf<Element>>
__global__ void __launch_bounds__(kThreads, 1)
    multiply_tiles([[maybe_unused]] const uint4* operands, [[maybe_unused]] int steps,
                   [[maybe_unused]] Sum* results) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ uint4 shared[];
  const auto unaligned = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  const std::uint32_t base = (unaligned + kAlignment - 1) / kAlignment * kAlignment;
  uint4* tiles = shared + (base - unaligned) / sizeof(uint4);
  for (int i = threadIdx.x; i < kOperandBytes / static_cast<int>(sizeof(uint4)); i += kThreads)
    tiles[i] = operands[i];
  tensor::fence_async_proxy();
  __syncthreads();

  const int group = static_cast<int>(threadIdx.x) / 128;
  const std::uint64_t b = tensor::k_major_descriptor(base);
  const std::uint64_t a = tensor::k_major_descriptor(base + kBlocks * (kBBytes + group * kABytes));
  Sum d[kSums] = {}, totals[4] = {};
  // The groups' first sums differ in length, so that one multiplies while the other adds up.
  for (int step = 0, until = kSteps / (1 + group); step < steps; until += kSteps) {
#pragma unroll 1
    for (int keep = 0; step < min(until, steps); ++step, keep = 1) {
      tensor::wgmma_fence();
#pragma unroll
      for (int k_tile = 0; k_tile < kKTiles; ++k_tile) {
        const int block = k_tile / 4, offset = k_tile % 4 * 32;
        tensor::multiply<Element, false, false>(d, a + (block * kABytes + offset) / 16,
                                                b + (block * kBBytes + offset) / 16,
                                                k_tile > 0 || keep);
      }
      tensor::wgmma_commit();
      tensor::wgmma_wait<1>();
    }
    tensor::wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < kSums; ++i) totals[i % 4] += d[i];
  }
  results[blockIdx.x * kThreads + threadIdx.x] = totals[0] + totals[1] + totals[2] + totals[3];
#endif
}

template <typename Element>
Probe probe(const DeviceInfo& device, DeviceCode code, const char* name, const char* arithmetic) {
  constexpr int kAllSteps = 1024;  // 2.1 ms on an H200
  constexpr int kSharedBytes = kOperandBytes + kAlignment, kK = tensor::kMmaK<Element>;
  using Sum = tensor::AccumulatorOf<Element>;
  const int blocks = device.sm_count;
  const auto launch = [=](Backend& backend, Values filled,
                          const std::shared_ptr<std::byte>& results) -> Launch {
    check(cudaFuncSetAttribute(multiply_tiles<Element>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               kSharedBytes));
    const auto operands = shared_memory(backend, operand_bytes(arithmetic, filled, kOperandBytes));
    return [=](Stream stream) {
      multiply_tiles<Element><<<blocks, kThreads, kSharedBytes, stream>>>(
          reinterpret_cast<const uint4*>(operands.get()), kAllSteps,
          reinterpret_cast<Sum*>(results.get()));
    };
  };
  Probe probe = counting_products<Sum>(
      {.name = name,
       .arithmetic = arithmetic,
       .what = "wgmma m64n256k" + std::to_string(kK) + " out of shared memory, " +
               std::to_string(kGroups) + " warpgroups an SM",
       .work = 2.0 * kM * kN * kK * kKTiles * kAllSteps * kGroups * blocks},
      std::int64_t{blocks} * kThreads, launch);
  if (device.compute_capability != 90)
    probe.unsupported = "only compute capability 9.0 has wgmma";
  else if (!code.sm_90a)
    probe.unsupported = "this build has no sm_90a code: -DCMAKE_CUDA_ARCHITECTURES=90a";
  return probe;
}

}  // namespace

std::vector<Probe> wgmma_probes(const DeviceInfo& device, DeviceCode code) {
  return {probe<float>(device, code, "TF32_wgmma", "tf32"),
          probe<__nv_bfloat16>(device, code, "BF16_wgmma", "bf16"),
          probe<__half>(device, code, "FP16_wgmma", "f16"),
          probe<__nv_fp8_e4m3>(device, code, "FP8_wgmma", "e4m3"),
          probe<std::int8_t>(device, code, "INT8_wgmma", "s8")};
}

}  // namespace gemm::bench
