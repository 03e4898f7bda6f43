// What the families of GPU probes share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/peaks/probe.hpp"

namespace gemm::bench {

// The code of this build that the device runs, which may be older than the device. Tells whether
// instructions that need an architecture were compiled at all.
struct DeviceCode {
  int capability = 0;   // 90 for sm_90 and sm_90a; 0: none that the device can run
  bool sm_90a = false;  // with what only sm_90a has
};

std::vector<Probe> fma_probes(const DeviceInfo& device);
std::vector<Probe> mma_probes(const DeviceInfo& device, DeviceCode code);
std::vector<Probe> wgmma_probes(const DeviceInfo& device, DeviceCode code);
std::vector<Probe> memory_probes(const DeviceInfo& device);

// 9.0, 10.0 and 8.0 have a whole FP64 unit; the others 1/32 or 1/64 of the FP32 rate.
constexpr bool has_full_fp64(int capability) {
  return capability == 80 || capability == 90 || capability == 100;
}

enum class Values { random, ones };  // random: uniform in [-1, 1); s8: -128..127

// Operands of a tensor core: so many bytes of elements of an arithmetic (tf32 as f32, and so on).
std::vector<std::byte> operand_bytes(std::string_view arithmetic, Values values,
                                     std::int64_t bytes);

// Memory that is shared by the copies of a launch.
std::shared_ptr<std::byte> shared_memory(Backend& backend, std::int64_t bytes);
std::shared_ptr<std::byte> shared_memory(Backend& backend, std::span<const std::byte> contents);

// Completes the probe of a kernel in which each of so many threads adds up products: of ones the
// sum counts them. launch(backend, values, results) makes operands, and a launch on them.
template <typename Sum, typename MakeLaunch>
Probe counting_products(Probe probe, std::int64_t threads, MakeLaunch launch) {
  const std::int64_t bytes = sizeof(Sum) * threads;
  probe.fill = "random";
  probe.prepare = [=](Backend& backend) {
    return launch(backend, Values::random, shared_memory(backend, bytes));
  };
  probe.complaint = [=, expected = static_cast<Sum>(probe.work / 2 / static_cast<double>(threads))](
                        Backend& backend) -> std::optional<std::string> {
    const auto results = shared_memory(backend, bytes);
    backend.poison(results.get(), bytes);
    backend.run(launch(backend, Values::ones, results));
    std::vector<Sum> found(threads);
    backend.copy(found.data(), results.get(), bytes);
    const auto wrong = std::ranges::find_if(found, [&](Sum each) { return !(each == expected); });
    if (wrong == found.end()) return std::nullopt;
    return "thread " + std::to_string(wrong - found.begin()) + " ends with " +
           std::to_string(*wrong) + ", expected " + std::to_string(expected);
  };
  return probe;
}

}  // namespace gemm::bench
