// Tensor cores of compute capability 9.0 by wgmma: two warpgroups of an SM multiply tiles of 64 x
// 256 out of shared memory, each with an A of its own, and share B.
//
// Shared memory holds 16 different K tiles of A and B. The accumulators are reset after a while, so
// that they keep the size that they have in a product of matrices (and because FP8 accumulates with
// no more than 13 bits), and are added to a total: with ones everywhere it counts the
// multiplications.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/device/cuda_check.hpp"
#include "bench/peaks/probes_cuda.hpp"

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

template <typename SumOf, int kKOf>
struct Instruction {
  using Sum = SumOf;
  static constexpr int kK = kKOf;
};
struct Tf32 : Instruction<float, 8> {};
struct Bf16 : Instruction<float, 16> {};
struct Fp16 : Instruction<float, 16> {};
struct Fp8 : Instruction<float, 32> {};
struct Int8 : Instruction<std::int32_t, 32> {};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int kSums = kM * kN / 128;  // of a thread
constexpr int kSteps = 16;            // of all K tiles, at most, before a reset

#define FOUR(sum, i) "+" sum(d[i]), "+" sum(d[i + 1]), "+" sum(d[i + 2]), "+" sum(d[i + 3])
#define SIXTEEN(sum, i) FOUR(sum, i), FOUR(sum, i + 4), FOUR(sum, i + 8), FOUR(sum, i + 12)
// d = a * b + (keep ? d : 0)
#define WGMMA(shape_and_types, sum, signs)                                                       \
  asm volatile(                                                                                  \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"                                              \
      "wgmma.mma_async.sync.aligned." shape_and_types                                            \
      " {"                                                                                       \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                   \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "         \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "         \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "         \
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "         \
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "         \
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, "         \
      "%110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, "           \
      "%123, %124, %125, %126, %127}, %128, %129, p" signs ";\n}"                                \
      : SIXTEEN(sum, 0), SIXTEEN(sum, 16), SIXTEEN(sum, 32), SIXTEEN(sum, 48), SIXTEEN(sum, 64), \
        SIXTEEN(sum, 80), SIXTEEN(sum, 96), SIXTEEN(sum, 112)                                    \
      : "l"(a), "l"(b), "r"(keep))

using Descriptor = std::uint64_t;
using Floats = float (&)[kSums];
using Integers = std::int32_t (&)[kSums];

__device__ void multiply(Tf32, Floats d, Descriptor a, Descriptor b, int keep) {
  WGMMA("m64n256k8.f32.tf32.tf32", "f", ", 1, 1");
}
__device__ void multiply(Bf16, Floats d, Descriptor a, Descriptor b, int keep) {
  WGMMA("m64n256k16.f32.bf16.bf16", "f", ", 1, 1, 0, 0");
}
__device__ void multiply(Fp16, Floats d, Descriptor a, Descriptor b, int keep) {
  WGMMA("m64n256k16.f32.f16.f16", "f", ", 1, 1, 0, 0");
}
__device__ void multiply(Fp8, Floats d, Descriptor a, Descriptor b, int keep) {
  WGMMA("m64n256k32.f32.e4m3.e4m3", "f", ", 1, 1");
}
__device__ void multiply(Int8, Integers d, Descriptor a, Descriptor b, int keep) {
  WGMMA("m64n256k32.s32.s8.s8", "r", "");
}

// A K-major matrix in the 128-byte swizzle: address, leading offset (not used), 1024 bytes from
// eight rows to the next eight, swizzle; lengths in units of 16 bytes.
__device__ Descriptor descriptor_of(std::uint32_t address) {
  return (address & 0x3ffff) >> 4 | Descriptor{1} << 16 | Descriptor{kAlignment >> 4} << 32 |
         Descriptor{1} << 62;
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

template <typename I, typename Sum = typename I::Sum>
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
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();

  const int group = static_cast<int>(threadIdx.x) / 128;
  const Descriptor b = descriptor_of(base);
  const Descriptor a = descriptor_of(base + kBlocks * (kBBytes + group * kABytes));
  Sum d[kSums] = {}, totals[4] = {};
  // The groups' first sums differ in length, so that one multiplies while the other adds up.
  for (int step = 0, until = kSteps / (1 + group); step < steps; until += kSteps) {
#pragma unroll 1
    for (int keep = 0; step < min(until, steps); ++step, keep = 1) {
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int k_tile = 0; k_tile < kKTiles; ++k_tile) {
        const int block = k_tile / 4, offset = k_tile % 4 * 32;
        multiply(I{}, d, a + (block * kABytes + offset) / 16, b + (block * kBBytes + offset) / 16,
                 k_tile > 0 || keep);
      }
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < kSums; ++i) totals[i % 4] += d[i];
  }
  results[blockIdx.x * kThreads + threadIdx.x] = totals[0] + totals[1] + totals[2] + totals[3];
#endif
}

template <typename I>
Probe probe(const DeviceInfo& device, DeviceCode code, const char* name, const char* arithmetic,
            Values values) {
  constexpr int kAllSteps = 1024;  // 2.1 ms on an H200
  constexpr int kSharedBytes = kOperandBytes + kAlignment;
  const int blocks = device.sm_count;
  const auto launch = [=](Backend& backend, Values filled,
                          const std::shared_ptr<std::byte>& results) -> Launch {
    check(cudaFuncSetAttribute(multiply_tiles<I>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               kSharedBytes));
    const auto operands = shared_memory(backend, operand_bytes(arithmetic, filled, kOperandBytes));
    return [=](Stream stream) {
      multiply_tiles<I><<<blocks, kThreads, kSharedBytes, stream>>>(
          reinterpret_cast<const uint4*>(operands.get()), kAllSteps,
          reinterpret_cast<typename I::Sum*>(results.get()));
    };
  };
  Probe probe = counting_products<typename I::Sum>(
      {.name = name,
       .arithmetic = arithmetic,
       .what = "wgmma m64n256k" + std::to_string(I::kK) + " out of shared memory, " +
               std::to_string(kGroups) + " warpgroups an SM",
       .work = 2.0 * kM * kN * I::kK * kKTiles * kAllSteps * kGroups * blocks},
      values, std::int64_t{blocks} * kThreads, launch);
  if (device.compute_capability != 90)
    probe.unsupported = "only compute capability 9.0 has wgmma";
  else if (!code.sm_90a)
    probe.unsupported = "this build has no sm_90a code: -DCMAKE_CUDA_ARCHITECTURES=90a";
  return probe;
}

}  // namespace

std::vector<Probe> wgmma_probes(const DeviceInfo& device, DeviceCode code) {
  std::vector<Probe> probes;
  for (const Values values : {Values::random, Values::zeros}) {
    probes.push_back(probe<Tf32>(device, code, "TF32_wgmma", "tf32", values));
    probes.push_back(probe<Bf16>(device, code, "BF16_wgmma", "bf16", values));
    probes.push_back(probe<Fp16>(device, code, "FP16_wgmma", "f16", values));
    probes.push_back(probe<Fp8>(device, code, "FP8_wgmma", "e4m3", values));
    probes.push_back(probe<Int8>(device, code, "INT8_wgmma", "s8", values));
  }
  return probes;
}

}  // namespace gemm::bench
