// The --gemm_* options: how a problem is chosen, filled and timed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/peaks/peaks.hpp"
#include "bench/timing/timing.hpp"
#include "bench/verification/fill.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/layout.hpp"
#include "kernels/precision.hpp"

namespace gemm::bench {

// Where measured peaks come from: measured now, cached by an earlier run on this device and driver
// (and measured if there is none, or left out), or not used.
enum class PeaksFrom { measure, cached, stored, nominal };
std::string_view name_of(PeaksFrom from);

// A macro and its values.
struct Define {
  std::string name;
  std::vector<std::string> values;
};

struct Options {
  std::string device = "auto";        // auto, cpu, or the index of a GPU
  std::string shapes;                 // empty: the usual ones
  std::vector<Precision> precisions;  // empty: the usual ones of the device
  std::vector<Layout> layouts;        // empty: nn
  std::vector<Activation> epilogues;  // empty: none
  bool variants = false;              // the points of tuning spaces too
  Fill fill = Fill::uniform;
  std::uint64_t seed = 1;
  bool rotate = true;  // through several operand sets
  TimingPlan timing;
  // As given; timing has what they come to.
  std::optional<double> cooldown_seconds, row_budget_seconds;
  std::optional<double> run_budget_seconds;
  std::optional<std::string> versus;    // list of kernels
  bool library = true;                  // is measured where the filter leaves it out
  std::optional<std::string> cublas;    // file to open instead of the loader's
  std::optional<std::string> plans;     // file that keeps the plans of Best
  std::optional<double> monitor_given;  // as given,
  double monitor_seconds = 0.02;        // between two readings of the GPU; 0: none
  double patience_seconds = 60;
  PeaksFrom peaks_from = PeaksFrom::cached;
  GivenPeaks peaks;
  bool allow_debug = false;
  bool name_record = false;
  bool peaks_only = false;
  bool list_kernels = false;
  std::optional<std::string> tell_record;  // file for the record's path
  std::optional<std::string> node;         // name of the host, for its record
  bool help = false;

  // Kernels from files (bench/run/user_kernels.hpp).
  std::vector<std::string> kernels;          // FILE or FILE:ENTRY
  std::vector<std::string> includes;         // folders
  std::optional<std::string> machine_code;   // folder that keeps it
  std::optional<int> compile_for;            // compute capability, as 90
  std::vector<Define> defines;               // every combination is a row
  std::optional<double> kernel_limit_given;  // for a row with one, see kernel_limit_seconds
  bool verdict = false, cached_baselines = false;
  std::vector<std::string> arguments;  // as given, for a child
  bool is_child = false;               // measures one row for its parent,
  bool child_turns = false;            // sample by sample, when that says so
  // By default a row's budget and the time to compile the file and to start a process.
  double kernel_limit_seconds() const {
    return kernel_limit_given.value_or(timing.budget_seconds + 20);
  }
};

// Takes our options out of argv and leaves Google Benchmark's, and --help. Throws
// std::invalid_argument with one line that names the option, what is wrong and which values it
// takes.
Options parse_options(int& argc, char** argv);

// For --help.
std::string options_help();

}  // namespace gemm::bench
