#include "bench/device/host_load.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace gemm::bench {
namespace {

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

bool OthersLoad::disturbs() const {
  constexpr double kCpus = 0.25, kShare = 0.01;
  return missing_cpus() > std::max(kCpus, kShare * cpus);
}

std::optional<double> load_average() {
  double load = 0;
  if (std::ifstream("/proc/loadavg") >> load) return load;
  return std::nullopt;
}

}  // namespace gemm::bench
