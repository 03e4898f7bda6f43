// Multiply-adds outside the tensor cores, from registers alone.
//
// Each thread walks independent chains of x = x * x - 1.9: a chaotic map that stays in (-2, 2), so
// that no value overflows, settles or can be computed ahead. Squaring modulo 2^32 would settle; the
// integers walk x = a * x + c, whose period is 2^32.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/peaks/probes_cuda.hpp"

namespace gemm::bench {
namespace {

constexpr std::uint64_t kSeed = 5;

template <typename T>
struct Real {  // f32, f64
  using Value = T;
  static constexpr Value kFactor = 0, kAddend = static_cast<T>(-1.9);
  static constexpr Value start(std::int64_t chain) {
    return fill_value(Fill::uniform, kSeed, chain);
  }
  static __device__ Value step(Value x, Value, Value c) { return fma(x, x, c); }
  static Value plain_step(Value x) { return std::fma(x, x, kAddend); }
};

struct Integer {
  using Value = std::uint32_t;
  static constexpr Value kFactor = 1664525, kAddend = 1013904223;  // of Numerical Recipes
  static constexpr Value start(std::int64_t chain) {
    return static_cast<Value>(random_bits(kSeed, chain));
  }
  static __device__ Value step(Value x, Value a, Value c) { return a * x + c; }
  static Value plain_step(Value x) { return kFactor * x + kAddend; }
};

// 32 warps an SM and 8 chains a thread cover the latency; one branch comes with 512 multiply-adds.
constexpr int kThreads = 1024, kChains = 8, kUnrolled = 64;

template <typename Kind, typename Value = typename Kind::Value>
__global__ void __launch_bounds__(kThreads, 1)
    walk_chains(Value factor, Value addend, int rounds, Value* results) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  Value x[kChains];
  for (int chain = 0; chain < kChains; ++chain) x[chain] = Kind::start(thread * kChains + chain);
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int step = 0; step < kUnrolled; ++step)
#pragma unroll
      for (int chain = 0; chain < kChains; ++chain) x[chain] = Kind::step(x[chain], factor, addend);
  }
  for (int chain = 0; chain < kChains; ++chain) results[thread * kChains + chain] = x[chain];
}

// About 2 ms where `rounds` is right.
template <typename Kind>
Probe probe(const DeviceInfo& device, const char* name, const char* arithmetic, int rounds) {
  using Value = typename Kind::Value;
  const int blocks = device.sm_count;
  const std::int64_t chains = std::int64_t{blocks} * kThreads * kChains,
                     steps = std::int64_t{rounds} * kUnrolled, bytes = chains * sizeof(Value);
  const auto launch = [=](const std::shared_ptr<std::byte>& results) -> Launch {
    return [=](Stream stream) {
      walk_chains<Kind><<<blocks, kThreads, 0, stream>>>(Kind::kFactor, Kind::kAddend, rounds,
                                                         reinterpret_cast<Value*>(results.get()));
    };
  };
  const auto complaint = [=](Backend& backend) -> std::optional<std::string> {
    const auto results = shared_memory(backend, bytes);
    backend.poison(results.get(), bytes);
    backend.run(launch(results));
    constexpr int kChecked = 16;
    for (int i = 0; i < kChecked; ++i) {
      const std::int64_t chain = (chains - 1) * i / (kChecked - 1);
      Value expected = Kind::start(chain), found;
      for (std::int64_t step = 0; step < steps; ++step) expected = Kind::plain_step(expected);
      backend.copy(&found, results.get() + chain * sizeof(Value), sizeof(Value));
      if (!(found == expected))
        return "chain " + std::to_string(chain) + " ends with " + std::to_string(found) +
               ", expected " + std::to_string(expected);
    }
    return std::nullopt;
  };
  return {
      .name = name,
      .arithmetic = arithmetic,
      .what = std::to_string(kChains) + " chains a thread, " + std::to_string(kThreads) +
              " threads an SM, registers only",
      .work = 2.0 * chains * steps,
      .prepare = [=](Backend& backend) { return launch(shared_memory(backend, bytes)); },
      .complaint = complaint,
  };
}

}  // namespace

std::vector<Probe> fma_probes(const DeviceInfo& device) {
  return {
      probe<Real<float>>(device, "FP32_FMA", "f32", 1024),
      probe<Real<double>>(device, "FP64_FMA", "f64",
                          has_full_fp64(device.compute_capability) ? 512 : 32),
      probe<Integer>(device, "INT32_FMA", "s32", 512),
  };
}

}  // namespace gemm::bench
