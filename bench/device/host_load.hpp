// How much of the host's CPUs others had while something was timed.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

namespace gemm::bench {

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
  bool disturbs() const;
};

// Nothing for less than 0.2 s: the kernel counts in ticks of 10 ms.
std::optional<OthersLoad> others_between(const std::optional<CpuTimes>& before,
                                         const std::optional<CpuTimes>& after);

// Mean length of the run queue of the last minute; none where there is no /proc/loadavg.
std::optional<double> load_average();

}  // namespace gemm::bench
