// The device as queried: for the record and the nominal peaks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/gemm.hpp"

namespace gemm::bench {

// A value the driver does not report stays empty, never 0.
struct DeviceInfo : Device {
  std::optional<std::string> uuid_hash, pci_bus_id, driver, runtime;
  std::optional<double> clock_hz, memory_clock_hz;
  std::optional<std::int64_t> bus_width_bits, memory_bytes;
  std::optional<std::string> cpu_id;  // of a CPU, as the next line
  std::optional<std::int64_t> l1_data_bytes, l2_bytes, l3_bytes;
  std::optional<double> cpu_quota;  // cores whose time a cgroup grants
  bool integrated = false;          // shares the host's memory
};

// 13000 -> "13.0"
std::string cuda_version(int version);

// 90 -> "9.0"
std::string capability_text(int compute_capability);

// Why no GPU can be used, from an error of the CUDA runtime; versions as 1000 * major + 10 * minor.
// `driver` is 0 where none is installed.
std::string cuda_problem(const std::string& error, int driver, int runtime);

// The name as a folder: "NVIDIA H200" -> "nvidia-h200".
std::string slug(const std::string& name);

// Sets the rates of time models from the queried clocks; those that are not known stay as they are.
void set_queried_rates(DeviceInfo& device);

DeviceInfo query_host();

}  // namespace gemm::bench
