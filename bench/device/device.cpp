#include "bench/device/device.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "build_info.hpp"

namespace gemm::bench {
namespace {

std::string host_name_of_cpu() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "CPU";
}

// The process may be confined to fewer cores than the machine has.
int usable_cores() {
  if (!build_info::kOpenMp) return 1;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

// From the kernel, for one core; sysconf may add up the caches of the whole socket.
std::int64_t largest_cache_bytes() {
  std::int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) +
                       "/size");
    std::int64_t kibibytes = 0;
    if (file >> kibibytes) largest = std::max(largest, kibibytes * 1024);
  }
  return largest > 0 ? largest : std::int64_t{32} << 20;
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
  info.name = host_name_of_cpu();
  info.cores = usable_cores();
  info.last_level_cache_bytes = largest_cache_bytes();
  info.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  return info;
}

}  // namespace gemm::bench
