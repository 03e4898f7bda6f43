#include "bench/device/host_limits.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <string>

namespace gemm::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Nothing where the file does not begin with a number: "max".
std::optional<double> number_in_file(const fs::path& file) {
  std::ifstream in(file);
  double number = 0;
  if (!(in >> number)) return std::nullopt;
  return number;
}

// The sum of the values of these keys in a file of lines "key value" or "key: value".
double sum_of(const fs::path& file, const std::function<bool(const std::string&)>& wanted) {
  std::ifstream in(file);
  double sum = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string key;
    double value = 0;
    if (words >> key >> value && wanted(key)) sum += value;
  }
  return sum;
}

// The folders of the cgroup of this process and of all above it. A container may see its own cgroup
// as the root, under a path that is not there.
std::vector<fs::path> cgroups(const fs::path& root, const std::string& controller) {
  std::vector<fs::path> folders;
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find("," + controller + ",") == std::string::npos) continue;
    const fs::path mount = root / "sys/fs/cgroup" / (unified ? "" : controller);
    for (fs::path path = fs::path(line.substr(second + 1)).relative_path(); !path.empty();
         path = path.parent_path())
      folders.push_back(mount / path);
    folders.push_back(mount);
  }
  return folders;
}

double cgroup_limit(const fs::path& folder) {
  double least = kUnlimited;
  for (const char* name : {"memory.max", "memory.high", "memory.limit_in_bytes"})
    least = std::min(least, number_in_file(folder / name).value_or(kUnlimited));
  return least;
}

double cgroup_usage(const fs::path& folder) {
  const bool unified = fs::exists(folder / "memory.current");
  const double usage =
      number_in_file(folder / (unified ? "memory.current" : "memory.usage_in_bytes")).value_or(0);
  const std::string prefix = unified ? "" : "total_";
  const double cached = sum_of(folder / "memory.stat", [&](const std::string& key) {
    return key == prefix + "active_file" || key == prefix + "inactive_file";
  });
  return std::max(0.0, usage - cached);
}

// "0-1,4" as a list.
std::vector<int> list_of(std::istream& in) {
  std::vector<int> numbers;
  for (int first = 0; in >> first;) {
    int last = first;
    if (in.peek() == '-' && in.ignore()) in >> last;
    for (; first <= last; ++first) numbers.push_back(first);
    if (in.peek() != ',' || !in.ignore()) break;
  }
  return numbers;
}

// Bytes of the NUMA nodes that a cpuset leaves: all of them, and those that are free or hold a
// page cache. Without a limit where it leaves every node.
double node_bytes(const fs::path& root, bool free) {
  std::ifstream status(root / "proc/self/status");
  std::vector<int> allowed;
  for (std::string key; status >> key;)
    if (key == "Mems_allowed_list:") allowed = list_of(status);
  std::ifstream file(root / "sys/devices/system/node/has_memory");
  const std::vector<int> present = list_of(file);
  if (allowed.empty() || std::ranges::includes(allowed, present)) return kUnlimited;
  double kibibytes = 0;
  for (const int node : allowed) {
    std::ifstream info(root / "sys/devices/system/node" / ("node" + std::to_string(node)) /
                       "meminfo");
    std::string word, key;
    int number = 0;
    double value = 0;
    for (std::string line; std::getline(info, line);)  // Node 0 MemFree: 123 kB
      if (std::istringstream words(line); words >> word >> number >> key >> value)
        if (free ? key == "MemFree:" || key == "Active(file):" || key == "Inactive(file):"
                 : key == "MemTotal:")
          kibibytes += value;
  }
  return kibibytes * 1024;
}

// What RLIMIT_AS and RLIMIT_DATA leave; statm has pages: all, ..., data and stack sixth.
double resource_bytes(const fs::path& root, bool free) {
  std::ifstream statm(root / "proc/self/statm");
  double pages[6] = {};
  for (double& page : pages) statm >> page;
  double least = kUnlimited;
  const auto bound = [&](auto resource, double used) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    used *= free ? static_cast<double>(sysconf(_SC_PAGE_SIZE)) : 0;
    least = std::min(least, std::max(0.0, static_cast<double>(limit.rlim_cur) - used));
  };
  bound(RLIMIT_AS, pages[0]);
  bound(RLIMIT_DATA, pages[5]);
  return least;
}

}  // namespace

double HostLimits::free_bytes() const {
  double least = 1024 * sum_of(root / "proc/meminfo",
                               [](const std::string& key) { return key == "MemAvailable:"; });
  if (least == 0) least = static_cast<double>(memory_bytes());
  least = std::min({least, node_bytes(root, true), resource_bytes(root, true)});
  for (const fs::path& folder : cgroups(root, "memory"))
    least = std::min(least, std::max(0.0, cgroup_limit(folder) - cgroup_usage(folder)));
  return least;
}

std::int64_t HostLimits::memory_bytes() const {
  double least =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  least = std::min({least, node_bytes(root, false), resource_bytes(root, false)});
  for (const fs::path& folder : cgroups(root, "memory"))
    least = std::min(least, cgroup_limit(folder));
  return static_cast<std::int64_t>(least);
}

std::optional<double> HostLimits::cpu_quota() const {
  double least = kUnlimited;
  for (const fs::path& folder : cgroups(root, "cpu")) {
    double quota = 0, period = 0;
    std::ifstream both(folder / "cpu.max");
    if (!(both >> quota >> period)) {
      quota = number_in_file(folder / "cpu.cfs_quota_us").value_or(0);
      period = number_in_file(folder / "cpu.cfs_period_us").value_or(0);
    }
    if (quota > 0 && period > 0) least = std::min(least, quota / period);
  }
  return least < kUnlimited ? std::optional(least) : std::nullopt;
}

std::vector<int> HostLimits::cores() {
  std::vector<int> found;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) found.push_back(core);
  } else {  // more cores than a set holds
    for (int core = 0; core < sysconf(_SC_NPROCESSORS_ONLN); ++core) found.push_back(core);
  }
  if (found.empty()) found.push_back(0);
  return found;
}

}  // namespace gemm::bench
