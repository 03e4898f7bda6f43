// Negative controls: wrong or slow on purpose. They are linked into gemm_bench_wrong together with
// the real kernels, so that tests see what a user would see.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <thread>

#include "kernels/registry.hpp"

namespace gemm {
namespace {

// A correct product, after which `kSpoil` corrupts C; it gets the number of earlier calls.
template <auto kSpoil>
Kernel wrong(const char* name) {
  return {.name = name,
          .idea = "Wrong on purpose.",
          .source = "negative control",
          .rung = 99,
          .precisions = {Precision::f32},
          .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
            return [=, call = 0](Stream) mutable {
              const auto *a = static_cast<const float*>(o.a), *b = static_cast<const float*>(o.b);
              auto* c = static_cast<float*>(o.c);
              for (std::int64_t i = 0; i < p.m; ++i)
                for (std::int64_t j = 0; j < p.n; ++j) {
                  float sum = 0;
                  for (std::int64_t l = 0; l < p.k; ++l) sum += a[i * p.k + l] * b[l * p.n + j];
                  c[i * p.n + j] = sum;
                }
              kSpoil(p, c, call++);
            };
          }};
}

const Registration writes_nan(
    wrong<[](const Problem&, float* c, int) { c[0] = std::nanf(""); }>("WrongNaN"),
    Device::Kind::cpu);
const Registration writes_past(
    wrong<[](const Problem& p, float* c, int) { c[p.m * p.n] = 0; }>("WrongPastTheEnd"),
    Device::Kind::cpu);
// Stops writing after many launches and leaves the correct C of an earlier one: only a later
// repetition detects it.
Launch right_until_it_stops(const Problem& p, const Device& d, const Operands& o) {
  const Launch right = wrong<[](const Problem&, float*, int) {}>("").prepare(p, d, o);
  static int calls = 0;
  return [right](Stream stream) {
    if (calls++ < 100000) right(stream);
  };
}
const Registration stops({.name = "WrongStops",
                          .idea = "Wrong on purpose.",
                          .source = "negative control",
                          .rung = 99,
                          .precisions = {Precision::f32},
                          .prepare = right_until_it_stops},
                         Device::Kind::cpu);
// Always correct, but slow after a while, as on a machine where another program starts.
Launch fast_until_it_slows_down(const Problem& p, const Device& d, const Operands& o) {
  const Launch right = wrong<[](const Problem&, float*, int) {}>("").prepare(p, d, o);
  static int calls = 0;
  return [right](Stream stream) {
    right(stream);
    if (calls++ > 5000) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
}
const Registration slows_down({.name = "SlowsDown",
                               .idea = "Slow on purpose.",
                               .source = "negative control",
                               .rung = 99,
                               .precisions = {Precision::f32},
                               .prepare = fast_until_it_slows_down},
                              Device::Kind::cpu);
// Correct when it is verified first, wrong once it is timed.
const Registration degrades(wrong<[](const Problem&, float* c, int call) {
                              if (call >= 3) c[1] += 1;
                            }>("WrongLater"),
                            Device::Kind::cpu);
// Declares layout tn but reads nn.
const Registration ignores_layout(
    [] {
      Kernel kernel = wrong<[](const Problem&, float*, int) {}>("WrongLayout");
      kernel.layouts.assign(1, Layout::tn);
      return kernel;
    }(),
    Device::Kind::cpu);
const Registration throws({.name = "WrongThrows",
                           .idea = "Wrong on purpose.",
                           .source = "negative control",
                           .rung = 99,
                           .precisions = {Precision::f32},
                           .prepare = [](const Problem&, const Device&, const Operands&) -> Launch {
                             throw std::runtime_error("no plan for this problem");
                           }},
                          Device::Kind::cpu);

}  // namespace
}  // namespace gemm
