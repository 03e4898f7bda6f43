// --gemm_peaks_only: the peaks of the device, nominal and measured, in place of rows.
#pragma once

#include <string>
#include <vector>

#include "bench/cases/options.hpp"

namespace gemm::bench {

// Measures what --gemm_peaks and --benchmark_filter ask for, stores it for other runs, and prints
// all. `arguments` are those of Google Benchmark. Returns the exit code; throws BadInput,
// Interrupted, DeviceLost.
int print_peaks(const Options& options, const std::vector<std::string>& arguments,
                std::vector<std::string> command);

}  // namespace gemm::bench
