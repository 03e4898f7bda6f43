#include "bench/run/command_line.hpp"

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <regex>
#include <string_view>

#include "bench/base/device_errors.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/terminal.hpp"
#include "bench/base/text.hpp"
#include "build_info.hpp"

namespace gemm::bench {

std::string google_flag(const std::vector<std::string>& arguments, const std::string& name) {
  const std::string prefix = "--benchmark_" + name + "=";
  for (auto argument = arguments.rbegin(); argument != arguments.rend(); ++argument)
    if (argument->starts_with(prefix)) return argument->substr(prefix.size());
  std::string variable = "BENCHMARK_" + name;
  for (char& ch : variable) ch = static_cast<char>(std::toupper(static_cast<unsigned char>(ch)));
  const char* value = std::getenv(variable.c_str());
  return value == nullptr ? "" : value;
}

bool google_switch(const std::vector<std::string>& arguments, const std::string& name) {
  const std::string value = google_flag(arguments, name);
  const bool bare = std::ranges::find(arguments, "--benchmark_" + name) != arguments.end();
  // As Google Benchmark reads a flag: what begins like "no", "false", "0", or is "off", is not on.
  return bare || (!value.empty() && std::string_view("0fFnN").find(value[0]) == std::string::npos &&
                  value != "off" && value != "Off" && value != "OFF");
}

void settle_min_time(std::vector<std::string>& arguments, TimingPlan& plan) {
  const std::string value = google_flag(arguments, "min_time");
  std::erase_if(arguments, [](const std::string& argument) {
    return argument.starts_with("--benchmark_min_time=");
  });
  plan.sampling_seconds = std::min(plan.sampling_seconds, plan.longest_sampling_seconds);
  if (value.empty()) return;
  const bool times = value.ends_with('x');
  const std::string digits =
      times || value.ends_with('s') ? value.substr(0, value.size() - 1) : value;
  const double number = number_in<double>(digits).value_or(0);
  const bool whole = number == std::floor(number) && number < 1e9;
  if (!(number > 0) || !std::isfinite(number) || (times && !whole))
    throw BadInput("--benchmark_min_time=" + value +
                   " is not a time (0.5s) nor a number of samples (100x)");
  if (times)
    plan.samples = std::llround(number);
  else
    plan.sampling_seconds = number;
}

void check_google_flags(const std::vector<std::string>& arguments) {
  // Google Benchmark accepts empty, negative and far too large numbers.
  const struct {
    const char *name, *values, *wanted;
  } flags[] = {{"repetitions", "[1-9][0-9]{0,2}|1000", "a whole number from 1 to 1000"},
               {"min_warmup_time", "[0-9]{1,3}([.][0-9]*)?", "a number of seconds below 1000"},
               {"time_unit", "ns|us|ms|s", "one of ns, us, ms, s"},
               {"format", "console|json|csv", "one of console, json, csv"},
               {"out_format", "json",
                "json, which the record is: for CSV use --benchmark_format=csv > FILE"},
               {"min_time", ".+", "a time (0.5s) or a number of samples (100x)"},
               {"out", ".+", "a file or a folder"}};
  for (const auto& [name, values, wanted] : flags) {
    const std::string flag = std::string("--benchmark_") + name;
    const std::string value = google_flag(arguments, name);
    const bool empty = std::ranges::count(arguments, flag + "=") > 0;
    if (empty || (!value.empty() && !std::regex_match(value, std::regex(values))))
      throw BadInput(flag + "=" + value + (empty ? " has no value: it is " : " is not ") + wanted);
  }
  const std::string out = google_flag(arguments, "out");
  if (google_switch(arguments, "report_aggregates_only") && !out.empty())
    throw BadInput(
        "--benchmark_report_aggregates_only would omit the samples from the record: "
        "use --benchmark_display_aggregates_only");
}

std::function<bool(const std::string&)> name_filter(std::string filter) {
  if (filter.empty() || filter == "all") return [](const std::string&) { return true; };
  const bool negative = filter[0] == '-';
  if (negative) filter.erase(0, 1);
  try {
    return [negative, pattern = std::regex(filter, std::regex::extended)](const std::string& name) {
      return std::regex_search(name + kNameSuffix, pattern) != negative;
    };
  } catch (const std::regex_error&) {
    throw BadInput("--benchmark_filter=" + filter + " is not a regular expression");
  }
}

void require_output() {
  std::cout << std::flush;
  if (!std::cout)
    throw BadInput("standard output could not be written: check that the disk has room");
}

void guarded_main(const char* program, const std::function<int()>& run) {
  // Otherwise the next opened file gets the descriptor of a closed stream, and output goes there.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", O_RDWR);
  const auto end = [&](int code, const std::exception* error) {
    end_status();
    if (error != nullptr) std::cerr << program << ": " << one_line(error->what()) << "\n";
    std::cout << std::flush;
    std::cerr << std::flush;
    // Without the end of libraries: some of them wait there for threads that could not be made, and
    // memory of a GPU that hangs could never be freed.
    std::_Exit(code);
  };
  // -ffast-math at link time flushes denormals in the whole process.
  std::fesetenv(FE_DFL_ENV);
  try {
    const int code = run();
    require_output();
    end(code, nullptr);
  } catch (const Interrupted&) {
    end(kInterrupted, nullptr);
  } catch (const DeviceLost& error) {
    end(kFailedRow, &error);
  } catch (const std::exception& error) {
    end(kBadInput, &error);
  }
}

void initialize_google(std::vector<std::string>& arguments, bool writes_record) {
  std::erase_if(arguments, [](const std::string& argument) {
    return argument.starts_with("--benchmark_out=");
  });
  // A file reporter of ours writes the record, in one step; Google Benchmark opens its file first.
  arguments.emplace_back(writes_record ? "--benchmark_out=/dev/null" : "--benchmark_out=");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(arguments.size());
  benchmark::SetDefaultTimeUnit(benchmark::kMicrosecond);  // --benchmark_time_unit overrides it
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1)
    throw BadInput("unknown or malformed option " + std::string(argv[1]) + ": --help lists all");
}

void require_release(const Options& options) {
  if (std::string_view(build_info::kType) != "Release" && !options.allow_debug)
    throw BadInput("this is a " + std::string(build_info::kType) +
                   " build, which is not optimized: build with -DCMAKE_BUILD_TYPE=Release, or add "
                   "--gemm_allow_debug");
}

void say_unknown_commit() {
  if (std::string_view(build_info::kCommit) == "unknown")
    std::cerr
        << "The commit of this build is unknown, and the record will say so. Build from a git "
           "checkout that git trusts (safe.directory), or with GEMM_BENCH_COMMIT=<commit>.\n";
}

std::unique_ptr<Backend> make_backend(const Options& options, std::string& why_no_gpu) {
  const std::string& device = options.device;
  if (device == "cpu") {
    why_no_gpu = "--gemm_device=cpu was given";
    return make_host_backend();
  }
  std::unique_ptr<Backend> gpu =
      make_cuda_backend(device == "auto" ? 0 : std::stoi(device), why_no_gpu,
                        std::max(options.patience_seconds, options.timing.budget_seconds));
  if (gpu) return gpu;
  if (device != "auto") throw BadInput("--gemm_device=" + device + ": " + why_no_gpu);
  return make_host_backend();
}

}  // namespace gemm::bench
