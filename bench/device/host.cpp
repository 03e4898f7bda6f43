#include "bench/device/host.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <sstream>
#include <system_error>

namespace gemm::bench {
namespace {

// The first block of /proc/cpuinfo.
std::map<std::string, std::string> first_processor(const std::filesystem::path& root) {
  std::map<std::string, std::string> values;
  std::ifstream info(root / "proc/cpuinfo");
  for (std::string line; std::getline(info, line) && !(line.empty() && !values.empty());) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto key_end = line.find_last_not_of(" \t", colon - 1);
    const auto value = line.find_first_not_of(' ', colon + 1);
    values[line.substr(0, key_end + 1)] = value == std::string::npos ? "" : line.substr(value);
  }
  return values;
}

// "32K" or "1M".
std::int64_t bytes_in(const std::filesystem::path& size) {
  std::ifstream file(size);
  std::int64_t number = 0;
  char unit = 'K';
  file >> number >> unit;
  return unit == 'M' ? number << 20 : number << 10;
}

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

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double cpu_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

// Of all threads together, since OMP_PROC_BIND gives each a CPU of its own.
std::set<int> allowed_cpus() {
  std::set<int> all;
  std::error_code ignored;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(std::atoi(thread.path().filename().c_str()), sizeof allowed, &allowed) !=
        0)
      continue;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &allowed)) all.insert(cpu);
  }
  return all;
}

}  // namespace

Cpu read_cpu(int core, const std::filesystem::path& root) {
  Cpu cpu;
  auto values = first_processor(root);
  if (values.contains("vendor_id") && values.contains("model"))
    cpu.id = values["vendor_id"] + " " + values["cpu family"] + "." + values["model"] + "." +
             values["stepping"];
  else if (values.contains("CPU part"))
    cpu.id = "ARM " + values["CPU implementer"] + "." + values["CPU part"] + "." +
             values["CPU variant"] + "." + values["CPU revision"];
  if (!values["model name"].empty())
    cpu.name = values["model name"];
  else if (cpu.id)
    cpu.name += " " + *cpu.id;

  const auto caches = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(core)) / "cache";
  for (int index = 0; index < 8; ++index) {
    const auto cache = caches / ("index" + std::to_string(index));
    int level = 0;
    std::string type;
    std::ifstream(cache / "level") >> level;
    std::ifstream(cache / "type") >> type;
    const std::int64_t bytes = bytes_in(cache / "size");
    if (bytes <= 0 || type == "Instruction") continue;
    if (level == 1) cpu.l1_data_bytes = bytes;
    if (level == 2) cpu.l2_bytes = bytes;
    if (level == 3) cpu.l3_bytes = bytes;
  }
  return cpu;
}

double HostLimits::free_bytes() const {
  double least = 1024 * sum_of(root / "proc/meminfo",
                               [](const std::string& key) { return key == "MemAvailable:"; });
  if (least == 0) least = static_cast<double>(memory_bytes());
  for (const fs::path& folder : cgroups(root, "memory"))
    least = std::min(least, std::max(0.0, cgroup_limit(folder) - cgroup_usage(folder)));
  return least;
}

std::int64_t HostLimits::memory_bytes() const {
  double least =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
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

std::map<int, CpuTimes::Cpu> parse_cpu_times(const std::string& stat, double tick_seconds) {
  std::map<int, CpuTimes::Cpu> cpus;
  std::istringstream lines(stat);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name;
    // What guests used is in user and nice, too.
    std::array<double, 8> ticks{};
    fields >> name;
    for (double& each : ticks) fields >> each;
    if (!fields || !name.starts_with("cpu") || name.size() == 3) continue;
    const auto& [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
    const double busy = user + nice + system + irq + softirq;
    cpus[std::atoi(name.c_str() + 3)] = {.all = (busy + idle + iowait + steal) * tick_seconds,
                                         .busy = busy * tick_seconds,
                                         .stolen = steal * tick_seconds};
  }
  return cpus;
}

std::optional<CpuTimes> read_cpu_times() {
  std::ifstream file("/proc/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CpuTimes times{.cpus = parse_cpu_times(text, 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK))),
                 .own_cpus = allowed_cpus(),
                 .own = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN)};
  if (times.cpus.empty()) return std::nullopt;
  return times;
}

std::optional<OthersLoad> others_between(const std::optional<CpuTimes>& before,
                                         const std::optional<CpuTimes>& after) {
  constexpr double kShortest = 0.2;
  if (!before || !after) return std::nullopt;
  int cpus = 0;
  double all = 0, busy = 0, stolen = 0;
  for (const auto& [cpu, now] : after->cpus) {
    const auto then = before->cpus.find(cpu);
    if (then == before->cpus.end() || !after->own_cpus.contains(cpu)) continue;
    ++cpus;
    all += now.all - then->second.all;
    busy += now.busy - then->second.busy;
    stolen += now.stolen - then->second.stolen;
  }
  if (cpus == 0 || !(all >= kShortest * cpus)) return std::nullopt;
  const double others = busy - (after->own - before->own);
  return OthersLoad{.cpus = cpus,
                    .busy_share = std::clamp(others / all, 0.0, 1.0),
                    .steal_share = std::clamp(stolen / all, 0.0, 1.0)};
}

double OthersLoad::most_missing_cpus() const {
  constexpr double kCpus = 0.25, kShare = 0.01;
  return std::max(kCpus, kShare * cpus);
}

std::optional<double> load_average() {
  double load = 0;
  if (std::ifstream("/proc/loadavg") >> load) return load;
  return std::nullopt;
}

}  // namespace gemm::bench
