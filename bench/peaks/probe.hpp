// A microbenchmark of a peak: a launch that does a known amount of one kind of work and nothing
// else.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/device/backend.hpp"

namespace gemm::bench {

struct Probe {
  enum class Unit { flop, bytes };
  enum class Clock { sm, memory, none };  // what the figure grows with

  std::string name;        // "FP32_FMA", "BF16_wgmma", "DRAM_read", "PCIe_to_device"
  std::string arithmetic;  // f32 f64 s32 tf32 bf16 f16 e4m3 s8; empty for memory
  std::string fill;        // "random"; empty where the values make no difference
  std::string what;        // how it is done, in a line
  Unit unit = Unit::flop;
  Clock clock = Clock::sm;
  bool on_request = false;                 // measured only if it is named: it uses another GPU
  double work = 0;                         // FLOP (2 for a multiply-add) or bytes of one launch
  std::optional<std::string> unsupported;  // why this device or this build cannot
  // Allocates and fills; what it makes lives as long as the launch. Throws as Backend does.
  std::function<Launch(Backend&)> prepare;
  // Runs the same code on values with a known outcome; returns what is wrong with it, also if not
  // all of `work` was done. Takes longer than a launch.
  std::function<std::optional<std::string>(Backend&)> complaint;

  std::string label() const { return fill.empty() ? name : name + "/" + fill; }
};

// The fastest of several ways to do the same, in batches of so many launches.
Launch fastest_of(Backend& backend, const std::vector<Launch>& ways, std::int64_t batch);

std::vector<Probe> host_probes(const DeviceInfo& device);
// For the device that make_cuda_backend made current; none in a build without CUDA.
std::vector<Probe> cuda_probes(const DeviceInfo& device);

}  // namespace gemm::bench
