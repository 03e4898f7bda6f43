// gemm_bench: registers every case with Google Benchmark, runs those that the filter selects, and
// writes the record. Exit codes: 0 all rows right, 1 a row failed, 2 bad input, 130 interrupted.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/base/interrupt.hpp"
#include "bench/base/text.hpp"
#include "bench/cases/default_suite.hpp"
#include "bench/run/child.hpp"
#include "bench/run/command_line.hpp"
#include "bench/run/exchange.hpp"
#include "bench/run/gemm_case.hpp"
#include "bench/run/peaks_only.hpp"
#include "bench/run/reporters.hpp"
#include "bench/run/turn.hpp"
#include "bench/run/user_kernels.hpp"
#include "bench/run/verdict.hpp"
#include "kernels/libraries.hpp"
#include "kernels/plans.hpp"
#include "kernels/user/python.hpp"

namespace gemm::bench {
namespace {

// The command line for a record that is made to be published: files without their folders, and the
// name that the record has, whether it was given or found.
std::vector<std::string> publishable(const std::vector<std::string>& arguments,
                                     const std::filesystem::path& record = {}) {
  const auto file_name = [](const std::filesystem::path& path) { return path.filename().string(); };
  constexpr std::string_view kFiles[] = {"--benchmark_out", "--gemm_shapes",       "--gemm_kernel",
                                         "--gemm_include",  "--gemm_machine_code", "--gemm_cublas",
                                         "--gemm_plans"};
  std::vector<std::string> command{file_name(arguments[0])};
  for (const std::string& argument : std::span(arguments).subspan(1)) {
    const auto equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (name == "--gemm_tell_record") continue;
    std::string& kept = command.emplace_back(argument);
    if (equals == std::string::npos || std::ranges::count(kFiles, name) == 0) continue;
    const bool is_record = name == "--benchmark_out" && !record.empty();
    kept = name;
    for (const std::string& item :
         is_record ? std::vector{record.string()} : parts_of(argument.substr(equals + 1)))
      kept += (kept == name ? "=" : ",") + file_name(item);
  }
  return command;
}

// A kernel's variants are one line. Between the fields are tabs.
void list_kernels() {
  std::set<std::string_view> seen;
  for (const RegisteredKernel& kernel : registry())
    if (seen.insert(kernel.name).second)
      std::cout << kernel.rung << '\t' << kernel.family << '\t' << kernel.name << '\t'
                << kernel.idea << '\n';
}

// Null where the record goes to a pipe or the like. Throws std::runtime_error, before anything is
// measured, if the record could not be written.
std::unique_ptr<RecordFile> open_record(const std::string& out, const DeviceInfo& device,
                                        const Options& options) {
  if (is_stream(out)) return nullptr;
  const bool folder = out.ends_with('/') || std::filesystem::is_directory(out);
  auto file = folder ? std::make_unique<RecordFile>(out, [&] { return record_name(device); })
                     : std::make_unique<RecordFile>(out);
  if (folder) std::cerr << "Record: " << file->path().string() << "\n";
  if (options.tell_record) write_atomically(*options.tell_record, file->path().string() + "\n");
  return file;
}

// --benchmark_context=key=value,key=value, which Google Benchmark hands to its own reporters only.
nlohmann::ordered_json custom_context(const std::string& flag) {
  nlohmann::ordered_json context = nlohmann::ordered_json::object();
  for (const std::string& pair : parts_of(flag))
    if (const auto equals = pair.find('='); equals != std::string::npos)
      context[pair.substr(0, equals)] = pair.substr(equals + 1);
  return context;
}

constexpr char kHelp[] =
    R"(Benchmarks matrix multiplication kernels: verifies each, times it, and compares it with the
device's peak and with libraries. Without a filter, sizes, precisions, layouts or variants the
default suite runs, nine minutes on an H200; each of these options means all kernels.

  gemm_bench --benchmark_filter=Tiled        the tiled family
  gemm_bench --gemm_shapes=4096,64x8192x512  other sizes
  gemm_bench --gemm_kernel=my.cu             your own kernel
  gemm_bench --gemm_device=cpu               the CPU kernels
  gemm_bench --benchmark_out=results/        write results/<device>/<utc>-<commit>.json.gz
  gemm_bench --benchmark_list_tests          all names
  gemm_bench --gemm_peaks_only               the peaks of this device

Names are <Kernel>[/<parameter>:<value>...][/layout:<layout>]/<precision>/<m>x<n>x<k>; C (m x n)
= A (m x k) * B (k x n); a layout is named where it is not nn.
Exit codes: 0 all results right, 1 a result failed, 2 bad input, 130 interrupted.

)",
               kGooglesHelp[] = R"(
Google Benchmark's own options keep their meaning; --benchmark_min_time is the shortest sampling
time (0.5s) or the number of samples (100x) of each case:
)";

std::vector<Case> selected(std::vector<Case> cases, const std::string& filter) {
  const auto matches = name_filter(filter);
  std::erase_if(cases, [&](const Case& one) { return !matches(one.name()); });
  return cases;
}

void require_matches(bool matches, const std::string& filter, Device::Kind kind,
                     const std::string& why_no_gpu) {
  if (matches) return;
  const std::string what =
      filter.empty() ? "no kernel of this device is"
                     : "--benchmark_filter=" + filter + " matches no kernel of this device that is";
  throw BadInput(what + " of the given --gemm_precisions and --gemm_layouts; " +
                 (kind == Device::Kind::cpu
                      ? "GPU kernels cannot run: " + why_no_gpu
                      : "CPU kernels need --gemm_device=cpu, tuning spaces --gemm_variants=all") +
                 ": --benchmark_list_tests lists all names");
}

void require_verdict_alone(const Options& options, const std::vector<std::string>& google) {
  if (options.cached_baselines && !options.verdict)
    throw BadInput("--gemm_baselines_cached needs --gemm_verdict");
  if (!options.verdict || options.is_child) return;
  if (!google_flag(google, "format").empty())
    throw BadInput("--gemm_verdict prints JSON lines: omit --benchmark_format");
  if (const std::string least = google_flag(google, "min_time"); least == "1x")
    throw BadInput("--gemm_verdict needs more than one sample: omit --benchmark_min_time=1x");
  if (options.peaks_only)
    throw BadInput("--gemm_verdict prints a line for each case: omit --gemm_peaks_only");
}

void require_no_count(const TimingPlan& plan) {
  if (plan.state == State::limit && plan.samples)
    throw BadInput(
        "--gemm_state=limit measures blocks (--gemm_rounds, --gemm_block): omit the "
        "number of samples of --benchmark_min_time");
}

void require_baseline(const Options& options, Device::Kind kind) {
  for (const std::string& name : parts_of(options.versus.value_or(""))) {
    bool found = false;
    std::string known;
    for (const RegisteredKernel& kernel : registry()) {
      if (kernel.runs_on != kind) continue;
      found = found || is_meant(name, kernel);
      known += ", " + kernel.label();
    }
    if (!found)
      throw BadInput("--gemm_versus: '" + name +
                     "' is not a kernel of this device; known are library" + known);
  }
}

void take_given_cublas(const Options& options, Device::Kind kind, const std::string& why_no_gpu) {
  if (!options.cublas) return;
  const std::string flag = "--gemm_cublas=" + *options.cublas + ": ";
  if (kind == Device::Kind::cpu) throw BadInput(flag + "needs a GPU: " + why_no_gpu);
  set_cublas_file(*options.cublas);
  if (options.is_child) return;  // whose row may not use it
  try {
    open_cublas();
  } catch (const std::runtime_error& error) {
    throw BadInput(flag + error.what());
  }
}

// The device, and the kernels of the user on it.
std::unique_ptr<Backend> open_device(const Options& options, std::string& why_no_gpu) {
  std::unique_ptr<Backend> backend = make_backend(options, why_no_gpu);
  const Device::Kind kind = backend->device().kind;
  take_given_cublas(options, kind, why_no_gpu);
  if (options.plans) {
    try {
      keep_plans_in(*options.plans);
    } catch (const std::runtime_error& error) {
      throw BadInput("--gemm_plans=" + std::string(error.what()));
    }
  }
  register_user_kernels(options, kind, why_no_gpu);
  return backend;
}

// In a child: measures the row that its parent asks for, answers with it, and exits without running
// the exit handlers that a user's kernel may have left.
[[noreturn]] int answer(const std::string& text) {
  become_child();
  const auto request = nlohmann::ordered_json::parse(text).get<Request>();
  std::vector<std::string> arguments = request.arguments;
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  Options options = parse_options(argc, argv.data());
  std::vector<std::string> google_arguments(argv.data(), argv.data() + argc);
  settle_min_time(google_arguments, options.timing);
  options.is_child = true;
  options.child_turns = request.turns;
  if (!request.versus) options.versus.reset();
  const Environment environment = clean_environment();
  std::string why_no_gpu;
  std::unique_ptr<Backend> backend = open_device(options, why_no_gpu);
  const Case which = case_of(request.which, backend->device().kind);
  Session session(std::move(backend), options, {}, environment);
  Row row{.which = which};
  try {
    session.measure(which, row);
  } catch (const std::exception& error) {
    say_why_untimed(row = Row{.which = which}, error);
  }
  note_cublas_of_others();
  write_atomically("/dev/fd/" + std::to_string(kAnswer),
                   answer_text(request.token, session.results().to_json(row),
                               row.timing.kernel_seconds, row.outcome));
  std::cout << std::flush;
  std::_Exit(0);
}

int run(int argc, char** argv) {
  Options options = parse_options(argc, argv);
  if (options.help) {
    std::cout << kHelp << options_help() << kGooglesHelp << std::flush;
    require_output();
    benchmark::Initialize(&argc, argv);  // prints its own help and exits
    return 0;
  }
  if (options.list_kernels) {
    list_kernels();
    return 0;
  }
  require_verdict_alone(options, {argv, argv + argc});
  watch_for_interrupt();
  const Environment environment = clean_environment();
  if (options.peaks_only)
    return print_peaks(options, {argv, argv + argc}, publishable(options.arguments));
  if (options.compile_for) {
    if (options.kernels.empty()) throw BadInput("--gemm_compile_for needs --gemm_kernel=FILE.cu");
    return compile_user_kernels(options) ? 0 : kFailedRow;
  }
  if (options.name_record) {
    std::string ignored;
    std::cout << record_name(make_backend(options, ignored)->device()) << "\n";
    return 0;
  }
  std::string why_no_gpu;
  std::unique_ptr<Backend> backend = open_device(options, why_no_gpu);
  const DeviceInfo device = backend->device();
  std::vector<std::string> google_arguments(argv, argv + argc);
  if (options.verdict) settle_verdicts(options, device.kind);
  const std::string versus = options.versus.value_or("");
  const bool users = !options.kernels.empty();
  const bool all_by_default = !users && options.shapes.empty() && options.precisions.empty() &&
                              options.layouts.empty() && options.epilogues.empty() &&
                              !options.variants &&
                              google_flag(google_arguments, "filter").empty() &&
                              !google_switch(google_arguments, "list_tests");
  if (options.layouts.empty()) options.layouts = {Layout::nn};
  if (options.epilogues.empty()) options.epilogues = {Activation::none};
  if (options.shapes.empty())
    options.shapes = !users ? "default" : device.kind == Device::Kind::gpu ? "4096" : "512";
  if (options.precisions.empty()) options.precisions = usual_precisions(device.kind);
  std::vector<Case> cases =
      all_by_default
          ? default_suite(device.kind,
                          [&](const Case& one) {
                            return !one.kernel->unsupported ||
                                   !one.kernel->unsupported(one.problem, device);
                          })
          : make_cases(parse_shapes(options.shapes, device.kind), options.precisions, device.kind,
                       options.variants, options.layouts, options.epilogues);
  if (users && google_flag(google_arguments, "filter").empty())
    std::erase_if(cases, [](const Case& one) { return !one.kernel->is_users(); });
  const std::string out = google_flag(google_arguments, "out");
  check_google_flags(google_arguments);
  const bool writes_record = !out.empty();
  const std::string format = google_flag(google_arguments, "format");
  settle_min_time(google_arguments, options.timing);
  require_no_count(options.timing);
  initialize_google(google_arguments, writes_record);

  require_baseline(options, device.kind);
  if (options.cached_baselines) {  // which are measured alone
    options.versus.reset();
    options.library = false;
  }
  const std::string filter = benchmark::GetBenchmarkFilter();
  const std::vector<Case> chosen = selected(cases, filter);
  require_matches(!chosen.empty(), filter, device.kind, why_no_gpu);
  if (google_switch(google_arguments, "list_tests")) {
    for (const Case& one : chosen) std::cout << one.name() << kNameSuffix << "\n";
    return 0;
  }
  require_release(options);
  say_unknown_commit();
  if (device.kind == Device::Kind::cpu && options.device == "auto")
    std::cerr << "No GPU is used: " << why_no_gpu << ". The CPU kernels run.\n";

  std::unique_ptr<RecordFile> file;
  if (writes_record) file = open_record(out, device, options);
  File turn;
  if (options.verdict || device.kind == Device::Kind::gpu) turn = take_turn(device);
  Session session(std::move(backend), options,
                  publishable(options.arguments, file ? file->path() : ""), environment);
  const std::string repetitions = google_flag(google_arguments, "repetitions");
  Progress progress(chosen, repetitions.empty() ? 1 : std::stoul(repetitions));
  const bool console = format.empty() || format == "console";
  const bool aggregates_only = google_switch(google_arguments, "display_aggregates_only") ||
                               google_switch(google_arguments, "report_aggregates_only");
  const CaseOutput output{.status = console && !options.verdict,
                          .failures = format == "csv" || aggregates_only};
  for (const Case& one : chosen)
    benchmark::RegisterBenchmark(one.name().c_str(), GemmCase(session, progress, one, output))
        ->UseManualTime()
        ->Iterations(1);

  const auto write = [&](const std::string& document) {
    file ? file->finish(document) : write_atomically(out, document);
  };
  const auto print = [](const std::string& document) { std::cout << document; };
  const auto extra = custom_context(google_flag(google_arguments, "context"));
  RecordReporter record(session, extra, file.get(), write);
  RecordReporter printed_record(session, extra, nullptr, print);
  TableReporter table(session, progress, chosen);
  Baselines baselines(baselines_file(session.device()));
  if (options.cached_baselines && !versus.empty()) baselines.find(session, chosen, versus);
  VerdictReporter verdicts(session, [&](const Row& row) {
    return verdict_of(session.results(), row, options.cached_baselines ? &baselines : nullptr);
  });
  benchmark::BenchmarkReporter* display =
      options.verdict    ? static_cast<benchmark::BenchmarkReporter*>(&verdicts)
      : format == "json" ? static_cast<benchmark::BenchmarkReporter*>(&printed_record)
      : format == "csv"  ? benchmark::CreateDefaultDisplayReporter()  // not ours
                         : &table;
  benchmark::RunSpecifiedBenchmarks(display, writes_record ? &record : nullptr, ".");
  const bool failed = session.results().any_failed() || session.lost();
  const int code = interrupted() ? kInterrupted : failed ? kFailedRow : 0;
  if (session.lost()) {
    // Freeing memory of a GPU that hangs would wait for ever.
    std::cout << std::flush;
    std::_Exit(code);
  }
  return code;
}

}  // namespace
}  // namespace gemm::bench

// What program.cpp calls; it ends the process.
extern "C" [[gnu::visibility("default")]] void gemm_bench_main(int argc, char** argv) {
  using namespace gemm::bench;
  const bool child = argc == 2 && std::string_view(argv[1]) == "--gemm_child";
  guarded_main("gemm_bench", [&] { return child ? answer(take_request()) : run(argc, argv); });
}

// A child in a process that is Python (kernels/user/run_in_python.py).
extern "C" [[gnu::visibility("default")]] void gemm_bench_in_python(
    const gemm::PythonFunctions* functions, const char* request) {
  gemm::set_python(functions);
  gemm::bench::guarded_main("gemm_bench", [&] { return gemm::bench::answer(request); });
}
