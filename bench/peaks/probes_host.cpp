// The peaks of a CPU: multiply-adds from registers and reads of memory, on all cores.
//
// Each lane walks x = x * x - 1.9, a chaotic map that stays in (-2, 2): no value overflows or
// settles, and none can be computed ahead.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/peaks/probe.hpp"

namespace gemm::bench {
namespace {

using Memory = std::shared_ptr<std::byte>;

// --- Multiply-adds -------------------------------------------------------------------------------

constexpr float kAddend = -1.9F;

// Steps of one chain times the number of chains, whatever the number is. About 15 ms.
constexpr std::int64_t kChainSteps = std::int64_t{96} << 20;

// The vectors are in registers only if the loops over them are unrolled.
template <int kBytes, int kChains>
[[gnu::always_inline]] inline void walk(void* x) {
  using Vector [[gnu::vector_size(kBytes)]] = float;
  Vector chains[kChains];
  std::memcpy(chains, x, sizeof chains);
  const Vector addend = Vector{} + kAddend;
  for (std::int64_t step = 0; step < kChainSteps / kChains; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) chains[i] = chains[i] * chains[i] + addend;
  }
  std::memcpy(x, chains, sizeof chains);
}

// A walk with a set of instructions. Units of today need 8 chains at least, and up to 16 with 128
// bits (latency times ports); 16 fit where there are 32 registers.
struct Isa {
  const char* name;
  int bytes, chains;  // of a vector
  bool fused;         // one rounding a step
  void (*walk)(void*);
};

#if defined(__x86_64__)
[[gnu::target("avx512f")]] void walk_avx512(void* x) { walk<64, 16>(x); }
[[gnu::target("avx2,fma")]] void walk_avx2(void* x) { walk<32, 12>(x); }
#endif

Isa best_isa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {"AVX-512", 64, 16, true, walk_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {"AVX2", 32, 12, true, walk_avx2};
  constexpr int kChains = 12;
#else
  constexpr int kChains = 16;
#endif
#if defined(__FP_FAST_FMA)
  return {"128-bit vectors", 16, kChains, true, walk<16, kChains>};
#else
  return {"128-bit vectors without fused multiply-add", 16, kChains, false, walk<16, kChains>};
#endif
}

Probe multiply_add_probe(const DeviceInfo& device) {
  constexpr std::int64_t kStride = 16 * 64 / sizeof(float);  // between the threads: 16 chains
  constexpr std::uint64_t kSeed = 5;
  const Isa isa = best_isa();
  const int threads = device.cores;
  const auto value_at = [](std::int64_t i) { return fill_value(Fill::uniform, kSeed, i); };
  const auto start = [=](Backend& backend) {
    Memory values = backend.allocate(sizeof(float) * kStride * threads);
    for (std::int64_t i = 0; i < kStride * threads; ++i)
      reinterpret_cast<float*>(values.get())[i] = value_at(i);
    return values;
  };
  // Each launch walks on from where the last one ended.
  const auto launch = [=](const Memory& values) -> Launch {
    return [=](Stream) {
#pragma omp parallel for schedule(static) num_threads(threads)
      for (int thread = 0; thread < threads; ++thread)
        isa.walk(reinterpret_cast<float*>(values.get()) + thread * kStride);
    };
  };
  // Follows the first lane of the first thread and the last chain's last lane of the last.
  const auto complaint = [=](Backend& backend) -> std::optional<std::string> {
    const Memory values = start(backend);
    backend.run(launch(values));
    const int lanes = isa.bytes / static_cast<int>(sizeof(float)) * isa.chains;
    for (const std::int64_t at :
         {std::int64_t{0}, std::int64_t{threads - 1} * kStride + lanes - 1}) {
      float expected = value_at(at);
      for (std::int64_t step = 0; step < kChainSteps / isa.chains; ++step)
        expected =
            isa.fused ? std::fma(expected, expected, kAddend) : expected * expected + kAddend;
      const float found = reinterpret_cast<const float*>(values.get())[at];
      if (!(found == expected))
        return "lane " + std::to_string(at) + " ends with " + std::to_string(found) +
               ", expected " + std::to_string(expected);
    }
    return std::nullopt;
  };
  return {
      .name = "FP32_FMA",
      .arithmetic = "f32",
      .what = std::string(isa.name) + ", registers only, " + std::to_string(isa.chains) +
              " chains, " + std::to_string(threads) + " threads",
      .clock = Probe::Clock::none,
      // Steps that do not fill a round over the chains are not done.
      .work = 2.0 * (kChainSteps / isa.chains * isa.chains) * threads * isa.bytes / sizeof(float),
      .prepare = [=](Backend& backend) { return launch(start(backend)); },
      .complaint = complaint,
  };
}

// --- Reads of memory -----------------------------------------------------------------------------

constexpr std::int64_t kMiB = 1 << 20;
constexpr int kBlock = 16;  // doubles in two cache lines

double sum_of(const double* from, std::int64_t blocks) {
  using Pair [[gnu::vector_size(16), gnu::may_alias]] = double;
  const auto* pairs = reinterpret_cast<const Pair*>(from);
  Pair sums[kBlock / 2] = {};
  for (std::int64_t block = 0; block < blocks; ++block, pairs += kBlock / 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kBlock / 2; ++i) sums[i] += pairs[i];
  }
  double sum = 0;
  for (const Pair& pair : sums) sum += pair[0] + pair[1];
  return sum;
}

// Each thread touches its part of the array first, and then adds it up: four times the last level
// cache, within reason.
Probe read_probe(const DeviceInfo& device) {
  constexpr int kPeriod = 1021;  // element i is i modulo this, so that sums are exact
  const int threads = device.cores;
  const std::int64_t wanted = std::clamp(4 * device.last_level_cache_bytes, 64 * kMiB, 256 * kMiB);
  const std::int64_t bytes =
      std::min(wanted, device.memory_bytes.value_or(16 * wanted) / 16) / kMiB * kMiB;
  const std::int64_t blocks = bytes / (kBlock * static_cast<std::int64_t>(sizeof(double)));
  const auto in_parts = [=](auto&& part) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int thread = 0; thread < threads; ++thread) {
      const std::int64_t first = blocks * thread / threads;
      part(thread, first * kBlock, blocks * (thread + 1) / threads - first);
    }
  };
  const auto array = [=](Backend& backend) {
    Memory memory = backend.allocate(bytes);
    in_parts([to = reinterpret_cast<double*>(memory.get())](int, std::int64_t first,
                                                            std::int64_t count) {
      for (std::int64_t i = first; i < first + count * kBlock; ++i)
        to[i] = static_cast<double>(i % kPeriod);
    });
    return memory;
  };
  const auto launch = [=](const Memory& from, const std::shared_ptr<std::vector<double>>& sums) {
    return Launch([=](Stream) {
      in_parts([&](int thread, std::int64_t first, std::int64_t count) {
        (*sums)[thread] = sum_of(reinterpret_cast<const double*>(from.get()) + first, count);
      });
    });
  };
  const auto complaint = [=](Backend& backend) -> std::optional<std::string> {
    const auto sums = std::make_shared<std::vector<double>>(threads);
    backend.run(launch(array(backend), sums));
    double found = 0, expected = 0;
    for (const double sum : *sums) found += sum;
    for (std::int64_t i = 0; i < blocks * kBlock; ++i) expected += static_cast<double>(i % kPeriod);
    if (found == expected) return std::nullopt;
    return "the sum is " + std::to_string(found) + ", expected " + std::to_string(expected);
  };
  return {
      .name = "DRAM_read",
      .what = "sum of an array in f64, " + std::to_string(bytes / kMiB) + " MiB, " +
              std::to_string(threads) + " threads",
      .unit = Probe::Unit::bytes,
      .clock = Probe::Clock::none,
      .work = static_cast<double>(bytes),
      .prepare =
          [=](Backend& backend) {
            return launch(array(backend), std::make_shared<std::vector<double>>(threads));
          },
      .complaint = complaint,
  };
}

}  // namespace

std::vector<Probe> host_probes(const DeviceInfo& device) {
  return {multiply_add_probe(device), read_probe(device)};
}

}  // namespace gemm::bench
