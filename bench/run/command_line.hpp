// What the programs here share: Google Benchmark's flags as it will see them, the device, exit
// codes.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/cases/options.hpp"
#include "bench/device/backend.hpp"

namespace gemm::bench {

// What Google Benchmark appends to names.
constexpr char kNameSuffix[] = "/manual_time";

constexpr int kFailedRow = 1, kBadInput = 2, kInterrupted = 130;

struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A Google Benchmark flag, from the command line or else the environment; empty if not given.
std::string google_flag(const std::vector<std::string>& arguments, const std::string& name);

// Google Benchmark exits with 0 for some wrong values, misreads others, and loses rows for some
// combinations: throws BadInput for all of these.
void check_google_flags(const std::vector<std::string>& arguments);

// Whether --benchmark_filter selects a name, as Google Benchmark matches: a search, with a leading
// '-' for the opposite. Throws BadInput for an invalid regular expression.
std::function<bool(const std::string&)> name_filter(std::string filter);

// Is a flag like --benchmark_list_tests on?
bool google_switch(const std::vector<std::string>& arguments, const std::string& name);

// --benchmark_min_time is the shortest sampling time (0.5, 0.5s) or number of samples (100x). To
// Google Benchmark a case is one iteration.
void settle_min_time(std::vector<std::string>& arguments, TimingPlan& plan);

// Hands the arguments to benchmark::Initialize, but for the record's file; throws BadInput for what
// it leaves.
void initialize_google(std::vector<std::string>& arguments, bool writes_record = false);

// Throws BadInput for a build that is not optimized.
void require_release(const Options& options);

// One line on stderr, if the record cannot name the sources.
void say_unknown_commit();

// Throws BadInput if standard output could not be written.
void require_output();

// Runs a program and ends the process with its exit code; prints errors as one line.
void guarded_main(const char* program, const std::function<int()>& run);

// `why_no_gpu` says what is missing for a GPU.
std::unique_ptr<Backend> make_backend(const Options& options, std::string& why_no_gpu);

}  // namespace gemm::bench
