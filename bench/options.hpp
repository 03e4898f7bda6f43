// The --gemm_* options: how a problem is chosen, filled and timed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/fill.hpp"
#include "bench/peaks.hpp"
#include "kernels/precision.hpp"

namespace gemm::bench {

struct Options {
  std::string device = "auto";  // auto, cpu, or the index of a GPU
  std::string shapes = "default";
  std::vector<Precision> precisions;  // empty: all
  Fill fill = Fill::uniform;
  std::uint64_t seed = 1;
  double warmup_seconds = 0.25;
  double sample_seconds = 0.005;
  double row_budget_seconds = 10;
  std::optional<double> run_budget_seconds;
  GivenPeaks peaks;
  bool allow_debug = false;
  bool name_record = false;
  bool help = false;
};

// Takes our options out of argv and leaves Google Benchmark's; --help is seen and left. Throws
// std::invalid_argument with one line that names the option, what is wrong and what it takes.
Options parse_options(int& argc, char** argv);

// What --help says of them.
std::string options_help();

}  // namespace gemm::bench
