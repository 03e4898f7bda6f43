#include "bench/device.hpp"

#include <sched.h>
#include <unistd.h>

#include <cctype>
#include <fstream>

namespace gemm::bench {
namespace {

std::string version(int v) {
  return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
}

std::string host_name_of_cpu() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "CPU";
}

// The process may be confined to fewer cores than the machine has.
int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

std::string cuda_problem(const std::string& error, int driver, int runtime) {
  if (driver == 0) return "no NVIDIA driver is installed";
  if (driver < runtime)
    return "the driver supports CUDA " + version(driver) +
           " but this program was built with CUDA " + version(runtime) +
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

DeviceInfo query_host() {
  DeviceInfo info;
  info.kind = Device::Kind::cpu;
  info.name = host_name_of_cpu();
  info.cores = usable_cores();
  for (const int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (info.last_level_cache_bytes <= 0) info.last_level_cache_bytes = sysconf(level);
  if (info.last_level_cache_bytes <= 0) info.last_level_cache_bytes = std::int64_t{32} << 20;
  info.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  return info;
}

}  // namespace gemm::bench
