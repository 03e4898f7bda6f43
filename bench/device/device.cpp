#include "bench/device/device.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <vector>

#include "bench/device/host.hpp"
#include "build_info.hpp"

namespace gemm::bench {
namespace {

// The process may be confined to fewer cores than the machine has, or to less of their time: more
// threads than that would wait for each other.
int usable_cores(std::int64_t allowed, std::optional<double> quota) {
  if (!build_info::kOpenMp) return 1;
  constexpr double kRounding = 0.01;
  const double granted = std::floor(quota.value_or(HUGE_VAL) + kRounding);
  return static_cast<int>(std::max(1.0, std::min(static_cast<double>(allowed), granted)));
}

}  // namespace

std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string capability_text(int compute_capability) {
  return std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10);
}

std::string cuda_problem(const std::string& error, int driver, int runtime) {
  if (driver == 0) return "no NVIDIA driver is installed";
  if (driver < runtime)
    return "the driver supports CUDA " + cuda_version(driver) +
           " but this program was built with CUDA " + cuda_version(runtime) +
           ": update the driver or build with an older toolkit";
  return "the CUDA runtime finds no GPU (" + error + ")";
}

std::string slug(const std::string& name) {
  std::string slug;
  for (const char ch : name) {
    if (std::isalnum(static_cast<unsigned char>(ch)))
      slug += static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
    else if (!slug.empty() && slug.back() != '-')
      slug += '-';
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() ? "device" : slug;
}

void set_queried_rates(DeviceInfo& device) {
  // What reads reach on an H200 (results/nvidia-h200): 96 % of DRAM's nominal rate, and from the L2
  // 37.6 bytes per cycle and SM.
  constexpr double kOfDram = 0.961, kL2BytesPerClock = 37.6;
  if (device.memory_clock_hz && device.bus_width_bits && !device.integrated)
    device.dram_bytes_per_second =
        kOfDram * 2 * *device.memory_clock_hz * static_cast<double>(*device.bus_width_bits) / 8;
  if (!device.clock_hz) return;
  device.sm_hz = *device.clock_hz;
  device.l2_bytes_per_second = kL2BytesPerClock * device.sm_count * device.sm_hz;
}

DeviceInfo query_host() {
  DeviceInfo info;
  info.kind = Device::Kind::cpu;
  const HostLimits limits;
  const std::vector<int> cores = limits.cores();
  const Cpu cpu = read_cpu(cores.front());
  info.name = cpu.name;
  info.cpu_id = cpu.id;
  info.l1_data_bytes = cpu.l1_data_bytes;
  info.l2_bytes = cpu.l2_bytes;
  info.l3_bytes = cpu.l3_bytes;
  info.cpu_quota = limits.cpu_quota();
  info.cores = usable_cores(std::ssize(cores), info.cpu_quota);
  constexpr std::int64_t kUsualCache = std::int64_t{32} << 20;
  info.last_level_cache_bytes =
      cpu.l3_bytes.value_or(cpu.l2_bytes.value_or(cpu.l1_data_bytes.value_or(kUsualCache)));
  info.memory_bytes = limits.memory_bytes();
  return info;
}

}  // namespace gemm::bench
