// Tensor cores by mma.sync: a warp multiplies fragments that stay in its registers.
//
// A warp holds two K tiles of 2 fragments of A and 4 of B, and 8 tiles of accumulators: 16
// different MMAs before one repeats. The accumulators are reset after a while, so that they keep
// the size that they have in a product of matrices, and are added to a total: with ones everywhere
// it counts the multiplications.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/peaks/probes_cuda.hpp"
#include "kernels/parts/mma.cuh"

namespace gemm::bench {
namespace {

#ifdef __CUDA_ARCH__
constexpr int kCompiledFor = __CUDA_ARCH__ / 10;
#else
constexpr int kCompiledFor = 0;
#endif

// An instruction: what a thread holds of the fragments, the shape, and since when it exists.
template <typename PartOf, int kAParts, int kBParts, typename SumOf, int kCParts, int kM, int kK,
          int kCapabilityOf>
struct Instruction {
  using Part = PartOf;
  using Sum = SumOf;
  using A = Part[kAParts];
  using B = Part[kBParts];
  using C = Sum[kCParts];
  static constexpr int kCapability = kCapabilityOf;
  static constexpr double kFlop = 2.0 * kM * 8 * kK;
};

// Those of the kernels in mma.cuh: 16 x 8 with 32 bytes of k a row.
template <typename Of, int kK, int kSince = 80>
struct Mma : Instruction<std::uint32_t, 4, 2, typename Of::Accumulator, 4, 16, kK, kSince> {
  static __device__ void multiply(auto& c, const auto& a, const auto& b) {
    tensor::multiply_16x8<Of>(c, {{a[0], a[1], a[2], a[3]}}, {{b[0], b[1]}}, 0);
  }
};
using Tf32 = Mma<tensor::Tf32, 8>;
using Bf16 = Mma<tensor::Bf16, 16>;
using Fp16 = Mma<tensor::F16, 16>;
using Fp8 = Mma<tensor::E4m3, 32, 89>;
using Int8 = Mma<tensor::S8, 32>;

struct Fp64Ampere : Instruction<double, 1, 1, double, 2, 8, 4, 80> {
  static __device__ void multiply(auto& c, const auto& a, const auto& b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(c[0]), "+d"(c[1])
                 : "d"(a[0]), "d"(b[0]));
  }
};
struct Fp64 : Instruction<double, 4, 2, double, 4, 16, 8, 90> {
  static __device__ void multiply(auto& c, const auto& a, const auto& b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
  }
};

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kKTiles = 2, kRows = 2, kColumns = 4, kTiles = kRows * kColumns;
constexpr int kSteps = 64;  // before the accumulators are reset

template <typename I>
struct Fragments {
  typename I::A a[kKTiles][kRows];
  typename I::B b[kKTiles][kColumns];
};

template <typename I>
__global__ void __launch_bounds__(kThreads, 1)
    multiply_fragments([[maybe_unused]] const Fragments<I>* fragments, [[maybe_unused]] int rounds,
                       [[maybe_unused]] typename I::Sum* results) {
  if constexpr (kCompiledFor >= I::kCapability) {
    const Fragments<I> mine = fragments[threadIdx.x];
    typename I::C sums[kRows][kColumns], totals = {};
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
      for (auto& row : sums)
        for (auto& tile : row)
          for (auto& sum : tile) sum = 0;
#pragma unroll 2
      for (int step = 0; step < kSteps; ++step)
#pragma unroll
        for (int k_tile = 0; k_tile < kKTiles; ++k_tile)
#pragma unroll
          for (int i = 0; i < kTiles; ++i)
            I::multiply(sums[i / kColumns][i % kColumns], mine.a[k_tile][i / kColumns],
                        mine.b[k_tile][i % kColumns]);
      for (const auto& row : sums)
        for (const auto& tile : row)
          for (int i = 0; i < static_cast<int>(std::size(tile)); ++i) totals[i] += tile[i];
    }
    typename I::Sum total = 0;
    for (const auto& one : totals) total += one;
    results[blockIdx.x * kThreads + threadIdx.x] = total;
  }
}

template <typename I>
Probe probe(const DeviceInfo& device, DeviceCode code, const char* name, const char* arithmetic,
            const char* shape, int rounds) {
  const int blocks = device.sm_count;
  const auto launch = [=](Backend& backend, Values filled,
                          const std::shared_ptr<std::byte>& results) -> Launch {
    constexpr std::size_t kBytes = sizeof(Fragments<I>) * kThreads;
    const auto fragments = shared_memory(backend, operand_bytes(arithmetic, filled, kBytes));
    return [=](Stream stream) {
      multiply_fragments<I><<<blocks, kThreads, 0, stream>>>(
          reinterpret_cast<const Fragments<I>*>(fragments.get()), rounds,
          reinterpret_cast<typename I::Sum*>(results.get()));
    };
  };
  Probe probe = counting_products<typename I::Sum>(
      {.name = name,
       .arithmetic = arithmetic,
       .what = std::string("mma.sync ") + shape + ", " + std::to_string(kTiles) +
               " tiles a warp, " + std::to_string(kWarps) + " warps an SM",
       .work = 1.0 * blocks * kWarps * rounds * kSteps * kKTiles * kTiles * I::kFlop},
      std::int64_t{blocks} * kThreads, launch);
  // Seen in the machine code of nvcc 13.0.
  if (std::is_same_v<I, Fp8> && (code.capability == 90 || code.capability == 100))
    probe.what += ", which is FP16 here: this device has no mma.sync of FP8";
  if (device.compute_capability < I::kCapability)
    probe.unsupported = "needs compute capability " + capability_text(I::kCapability);
  else if (code.capability < I::kCapability)
    probe.unsupported = "this build has no code for compute capability " +
                        capability_text(I::kCapability) +
                        ": -DCMAKE_CUDA_ARCHITECTURES=" + std::to_string(device.compute_capability);
  return probe;
}

}  // namespace

std::vector<Probe> mma_probes(const DeviceInfo& device, DeviceCode code) {
  constexpr int kRounds = 256;  // 1.6 ms on an H200
  const int fp64_rounds = has_full_fp64(device.compute_capability) ? 32 : 1;
  return {
      probe<Tf32>(device, code, "TF32_mma", "tf32", "m16n8k8", kRounds),
      probe<Bf16>(device, code, "BF16_mma", "bf16", "m16n8k16", kRounds),
      probe<Fp16>(device, code, "FP16_mma", "f16", "m16n8k16", kRounds),
      probe<Fp8>(device, code, "FP8_mma", "e4m3", "m16n8k32", kRounds),
      probe<Int8>(device, code, "INT8_mma", "s8", "m16n8k32", kRounds),
      code.capability < Fp64::kCapability
          ? probe<Fp64Ampere>(device, code, "FP64_mma", "f64", "m8n8k4", fp64_rounds)
          : probe<Fp64>(device, code, "FP64_mma", "f64", "m16n8k8", fp64_rounds),
  };
}

}  // namespace gemm::bench
