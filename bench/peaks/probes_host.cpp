// The peaks of a CPU: multiply-adds from registers and streams through memory, on all cores.
//
// Each lane walks x = x * x - 1.9, a chaotic map that stays in (-2, 2): no value overflows or
// settles, and none can be computed ahead.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bench/peaks/probe.hpp"

namespace gemm::bench {
namespace {

using Memory = std::shared_ptr<std::byte>;

template <typename T>
constexpr T kAddend = static_cast<T>(-1.9);
constexpr std::uint64_t kSeed = 5;

// --- Multiply-adds -------------------------------------------------------------------------------

// Steps of one chain times the number of chains, whatever the number is. About 15 ms.
constexpr std::int64_t kChainSteps = std::int64_t{96} << 20;

// The vectors are in registers only if the loops over them are unrolled.
template <typename T, int kBytes, int kChains>
[[gnu::always_inline]] inline void walk(T* x) {
  using Vector [[gnu::vector_size(kBytes)]] = T;
  Vector chains[kChains];
  std::memcpy(chains, x, sizeof chains);
  const Vector addend = Vector{} + kAddend<T>;
  for (std::int64_t step = 0; step < kChainSteps / kChains; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) chains[i] = chains[i] * chains[i] + addend;
  }
  std::memcpy(x, chains, sizeof chains);
}

using Walk = void (*)(void*);

// One walk, compiled for each set of instructions.
template <typename T, int kChains>
struct Walks {
#if defined(__x86_64__)
  [[gnu::target("avx512f")]] static void avx512(void* x) {
    walk<T, 64, kChains>(static_cast<T*>(x));
  }
  [[gnu::target("avx2,fma")]] static void avx2(void* x) {
    walk<T, 32, kChains>(static_cast<T*>(x));
  }
#endif
  static void library_rate(void* x) { walk<T, 16, kChains>(static_cast<T*>(x)); }
};

struct Isa {
  const char* name;
  int bytes;   // of a vector
  bool fused;  // one rounding a step
};

Isa best_isa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {"AVX-512", 64, true};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"AVX2", 32, true};
#endif
#if defined(__FP_FAST_FMA)
  return {"128-bit vectors", 16, true};
#else
  return {"128-bit vectors without fused multiply-add", 16, false};
#endif
}

template <typename T, int kChains>
Walk walk_for([[maybe_unused]] int bytes) {
#if defined(__x86_64__)
  if (bytes == 64) return Walks<T, kChains>::avx512;
  if (bytes == 32) return Walks<T, kChains>::avx2;
#endif
  return Walks<T, kChains>::library_rate;
}

// Latency times ports of the multiply-add unit, and the number of registers, say how many chains
// are best; CPUs differ in all three.
struct Variant {
  int chains;
  Walk walk;
};

template <typename T>
Probe multiply_add_probe(const DeviceInfo& device, const char* name, const char* arithmetic) {
  constexpr std::int64_t kStride = 16 * 64 / sizeof(T);  // between the threads: 16 chains
  const Isa isa = best_isa();
  const int threads = device.cores;
  const std::array<Variant, 3> variants = {Variant{8, walk_for<T, 8>(isa.bytes)},
                                           {12, walk_for<T, 12>(isa.bytes)},
                                           {16, walk_for<T, 16>(isa.bytes)}};
  const auto value_at = [](std::int64_t i) -> T { return fill_value(Fill::uniform, kSeed, i); };
  const auto start = [=](Backend& backend) {
    Memory values = backend.allocate(sizeof(T) * kStride * threads);
    for (std::int64_t i = 0; i < kStride * threads; ++i)
      reinterpret_cast<T*>(values.get())[i] = value_at(i);
    return values;
  };
  // Each launch walks on from where the last one ended.
  const auto launch = [threads](Walk walk, const Memory& values) -> Launch {
    return [=](Stream) {
#pragma omp parallel for schedule(static) num_threads(threads)
      for (int thread = 0; thread < threads; ++thread)
        walk(reinterpret_cast<T*>(values.get()) + thread * kStride);
    };
  };
  // Follows the first lane of the first thread and the last chain's last lane of the last.
  const auto complaint = [=](Backend& backend) -> std::optional<std::string> {
    for (const Variant& variant : variants) {
      const Memory values = start(backend);
      backend.run(launch(variant.walk, values));
      const int lanes = isa.bytes / static_cast<int>(sizeof(T)) * variant.chains;
      for (const std::int64_t at :
           {std::int64_t{0}, std::int64_t{threads - 1} * kStride + lanes - 1}) {
        T expected = value_at(at);
        for (std::int64_t step = 0; step < kChainSteps / variant.chains; ++step)
          expected = isa.fused ? std::fma(expected, expected, kAddend<T>)
                               : expected * expected + kAddend<T>;
        const T found = reinterpret_cast<const T*>(values.get())[at];
        if (!(found == expected))
          return "lane " + std::to_string(at) + " of " + std::to_string(variant.chains) +
                 " chains ends with " + std::to_string(found) + ", expected " +
                 std::to_string(expected);
      }
    }
    return std::nullopt;
  };
  const auto fastest = [=](Backend& backend) {
    std::vector<Launch> ways;
    for (const Variant& variant : variants) ways.push_back(launch(variant.walk, start(backend)));
    return fastest_of(backend, ways, 1);
  };
  return {
      .name = name,
      .arithmetic = arithmetic,
      .what = std::string(isa.name) + ", registers only, the fastest of 8, 12 and 16 chains, " +
              std::to_string(threads) + " threads",
      .clock = Probe::Clock::none,
      .work = 2.0 * kChainSteps * threads * isa.bytes / static_cast<double>(sizeof(T)),
      .prepare = fastest,
      .complaint = complaint,
  };
}

// --- Streams through memory ----------------------------------------------------------------------

constexpr std::int64_t kMiB = 1 << 20;
constexpr int kBlock = 16;  // doubles in two cache lines
constexpr double kScale = 3;

// a = b + s * c of one block.
inline void triad_block(double* a, const double* b, const double* c) {
#if defined(__x86_64__)
  const __m128d scale = _mm_set1_pd(kScale);
  for (int i = 0; i < kBlock; i += 2)
    _mm_stream_pd(a + i, _mm_add_pd(_mm_load_pd(b + i), _mm_mul_pd(scale, _mm_load_pd(c + i))));
#else
  for (int i = 0; i < kBlock; ++i) a[i] = b[i] + kScale * c[i];
#endif
}

// Non-temporal stores are seen by other threads only behind a fence.
inline void finish_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

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

// Each thread has its part of every array, and touches it first.
class Streams {
 public:
  Streams(int threads, std::int64_t bytes)
      : threads_(threads), blocks_(bytes / (kBlock * static_cast<std::int64_t>(sizeof(double)))) {}

  std::int64_t count() const { return blocks_ * kBlock; }
  std::int64_t array_bytes() const { return count() * static_cast<int>(sizeof(double)); }

  template <typename F>
  void in_parts(F&& part) const {
#pragma omp parallel for schedule(static) num_threads(threads_)
    for (int thread = 0; thread < threads_; ++thread) {
      const std::int64_t first = blocks_ * thread / threads_;
      part(thread, first * kBlock, blocks_ * (thread + 1) / threads_ - first);
    }
  }

  // Element i is i modulo `period`, so that sums and triads are exact.
  Memory array(Backend& backend, int period) const {
    Memory memory = backend.allocate(array_bytes());
    auto* to = reinterpret_cast<double*>(memory.get());
    in_parts([=](int, std::int64_t first, std::int64_t blocks) {
      for (std::int64_t i = first; i < first + blocks * kBlock; ++i)
        to[i] = static_cast<double>(i % period);
    });
    return memory;
  }
  static double value_at(std::int64_t i, int period) { return static_cast<double>(i % period); }

  Launch triad(const Memory& a, const Memory& b, const Memory& c) const {
    return [*this, a, b, c](Stream) {
      const auto doubles = [](const Memory& m) { return reinterpret_cast<double*>(m.get()); };
      in_parts([to = doubles(a), x = doubles(b), y = doubles(c)](int, std::int64_t first,
                                                                 std::int64_t blocks) {
        for (std::int64_t i = first; i < first + blocks * kBlock; i += kBlock)
          triad_block(to + i, x + i, y + i);
        finish_stores();
      });
    };
  }

  // One sum a thread.
  Launch read(const Memory& from, const Memory& sums) const {
    return [*this, from, sums](Stream) {
      in_parts([x = reinterpret_cast<const double*>(from.get()),
                to = reinterpret_cast<double*>(sums.get())](int thread, std::int64_t first,
                                                            std::int64_t blocks) {
        to[thread] = sum_of(x + first, blocks);
      });
    };
  }

  Launch prepare_triad(Backend& backend) const {
    return triad(array(backend, 1), array(backend, kPeriodB), array(backend, kPeriodC));
  }
  std::optional<std::string> triad_complaint(Backend& backend) const {
    const Memory a = array(backend, 1);
    backend.poison(a.get(), array_bytes());
    backend.run(triad(a, array(backend, kPeriodB), array(backend, kPeriodC)));
    for (std::int64_t i = 0; i < count(); ++i) {
      const double found = reinterpret_cast<const double*>(a.get())[i];
      const double expected = value_at(i, kPeriodB) + kScale * value_at(i, kPeriodC);
      if (!(found == expected))
        return "a[" + std::to_string(i) + "] = " + std::to_string(found) + ", expected " +
               std::to_string(expected);
    }
    return std::nullopt;
  }

  Memory sums(Backend& backend) const {
    Memory memory = backend.allocate(sizeof(double) * threads_);
    backend.poison(memory.get(), sizeof(double) * threads_);
    return memory;
  }
  Launch prepare_read(Backend& backend) const {
    return read(array(backend, kPeriodB), sums(backend));
  }
  std::optional<std::string> read_complaint(Backend& backend) const {
    const Memory memory = sums(backend);
    backend.run(read(array(backend, kPeriodB), memory));
    double found = 0, expected = 0;
    for (int thread = 0; thread < threads_; ++thread)
      found += reinterpret_cast<const double*>(memory.get())[thread];
    for (std::int64_t i = 0; i < count(); ++i) expected += value_at(i, kPeriodB);
    if (found == expected) return std::nullopt;
    return "the sum is " + std::to_string(found) + ", expected " + std::to_string(expected);
  }

 private:
  static constexpr int kPeriodB = 1021, kPeriodC = 7;

  int threads_;
  std::int64_t blocks_;
};

// Four times the last level cache, within reason.
std::int64_t stream_bytes(const DeviceInfo& device) {
  const std::int64_t wanted = std::clamp(4 * device.last_level_cache_bytes, 64 * kMiB, 256 * kMiB);
  return std::min(wanted, device.memory_bytes.value_or(16 * wanted) / 16) / kMiB * kMiB;
}

Probe stream_probe(const DeviceInfo& device, const char* name, const char* what, int arrays) {
  const Streams streams(device.cores, stream_bytes(device));
  return {
      .name = name,
      .what = std::string(what) + ", " + std::to_string(stream_bytes(device) / kMiB) +
              " MiB an array, " + std::to_string(device.cores) + " threads",
      .unit = Probe::Unit::bytes,
      .clock = Probe::Clock::none,
      .work = 1.0 * arrays * streams.array_bytes(),
      .prepare =
          [=](Backend& backend) {
            return arrays == 1 ? streams.prepare_read(backend) : streams.prepare_triad(backend);
          },
      .complaint =
          [=](Backend& backend) {
            return arrays == 1 ? streams.read_complaint(backend) : streams.triad_complaint(backend);
          },
  };
}

#if defined(__x86_64__)
constexpr const char* kTriad = "a = b + s * c in f64 with non-temporal stores, 24 bytes an element";
#else
constexpr const char* kTriad = "a = b + s * c in f64, 24 bytes an element (no write-allocate)";
#endif

}  // namespace

std::vector<Probe> host_probes(const DeviceInfo& device) {
  return {
      multiply_add_probe<float>(device, "FP32_FMA", "f32"),
      multiply_add_probe<double>(device, "FP64_FMA", "f64"),
      stream_probe(device, "DRAM_triad", kTriad, 3),
      stream_probe(device, "DRAM_read", "sum of an array in f64", 1),
  };
}

}  // namespace gemm::bench
