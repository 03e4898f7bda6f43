// The host, as Linux says: which CPU it has, how much of it this process may use, since cgroups,
// cpusets and quotas leave it less than the machine has, and how much of its CPUs others used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gemm::bench {

// What is not known is empty.
struct Cpu {
  std::string name = "CPU";
  std::optional<std::string> id;  // vendor, family, model and stepping; of ARM the four of MIDR_EL1
  std::optional<std::int64_t> l1_data_bytes, l2_bytes, l3_bytes;  // that one core sees
};

// Of the core with this number; the files are those below `root`.
Cpu read_cpu(int core, const std::filesystem::path& root = "/");

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

// CPU time until now, in seconds, of the CPUs by number; and which of them this process may use.
struct CpuTimes {
  struct Cpu {
    double all = 0, busy = 0, stolen = 0;  // stolen: by other virtual machines
  };
  std::map<int, Cpu> cpus;
  std::set<int> own_cpus;
  double own = 0;  // of this process, and of those that it started and that have ended
};

// None where there is no /proc/stat.
std::optional<CpuTimes> read_cpu_times();

// The lines of /proc/stat; none without any of a single CPU. Times are in ticks of so many seconds.
std::map<int, CpuTimes::Cpu> parse_cpu_times(const std::string& stat, double tick_seconds);

// What others had of the CPUs that this process may use, as shares of all their time: other
// processes, and other virtual machines.
struct OthersLoad {
  int cpus = 0;
  double busy_share = 0, steal_share = 0;

  // So many CPUs were not to be had.
  double missing_cpus() const { return cpus * (busy_share + steal_share); }
  // Whether a time is doubtful. A product waits for its slowest thread, and a thread that gets
  // three quarters of a CPU takes a third longer: a quarter of a CPU is the limit. What monitors a
  // large host may take 1 % of it.
  double most_missing_cpus() const;
  bool disturbs() const { return missing_cpus() > most_missing_cpus(); }
};

// Nothing for less than 0.2 s: the kernel counts in ticks of 10 ms.
std::optional<OthersLoad> others_between(const std::optional<CpuTimes>& before,
                                         const std::optional<CpuTimes>& after);

// Mean length of the run queue of the last minute; none where there is no /proc/loadavg.
std::optional<double> load_average();

}  // namespace gemm::bench
