// How much of the host this process may use: cgroups, cpusets and resource limits leave it less
// than the machine has, and the kernel kills what takes more memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace gemm::bench {

struct HostLimits {
  std::filesystem::path root = "/";  // of the files that are read

  // Bytes that can still be allocated; what the page cache holds counts as free.
  double free_bytes() const;
  // Bytes that a process may have at all.
  std::int64_t memory_bytes() const;
  // The cores whose time a cgroup grants, such as 1.5; empty without a quota.
  std::optional<double> cpu_quota() const;
  // The cores that threads may run on, in ascending order; not fewer than one.
  static std::vector<int> cores();
};

}  // namespace gemm::bench
