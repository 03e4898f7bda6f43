#include "bench/cases/options.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <functional>
#include <set>
#include <stdexcept>

#include "bench/base/text.hpp"
#include "bench/cases/shapes.hpp"

namespace gemm::bench {
namespace {

using Setter = std::function<void(Options&, const std::string&)>;

struct Option {
  std::string_view group, name, takes, standard;
  std::string help;
  Setter set;

  std::string usage() const {
    return "--gemm_" + std::string(name) + (takes.empty() ? "" : "=" + std::string(takes));
  }
};

[[noreturn]] void refuse(std::string_view takes, const std::string& value) {
  throw std::invalid_argument("'" + value + "' is not " + std::string(takes));
}

double number(const std::string& value, std::string_view takes) {
  const auto number = number_in<double>(value);
  if (!number || !std::isfinite(*number) || !(*number > 0)) refuse(takes, value);
  return *number;
}

double positive(const std::string& value) { return number(value, "a positive number"); }

double positive_or_zero(const std::string& value) {
  return value == "0" ? 0 : number(value, "0 or a positive number");
}

// "0.5%" or "0.005"
double share(const std::string& value) {
  const bool percent = value.ends_with('%');
  const double number = positive(percent ? value.substr(0, value.size() - 1) : value);
  const double share = percent ? number / 100 : number;
  if (share >= 1) refuse("a share below 1, such as 0.005 or 0.5%", value);
  return share;
}

// The value of an enumeration, by the place of its name among the choices.
template <typename T>
auto choice(const char* choices) {
  return [choices](const std::string& value) {
    const std::vector<std::string> names = parts_of(choices, '|');
    const auto found = std::ranges::find(names, value);
    if (found == names.end()) refuse("one of " + list_of(names), value);
    return static_cast<T>(found - names.begin());
  };
}

// From `least` to `most`.
auto whole(std::uint64_t least, std::uint64_t most, const char* takes) {
  return [=](const std::string& value) {
    const auto number = number_in<std::uint64_t>(value);
    if (!number || *number < least || *number > most) refuse(takes, value);
    return *number;
  };
}

auto some(const char* takes) {
  return [takes](const std::string& value) {
    if (value.empty()) refuse(takes, value);
    return value;
  };
}

// What the member becomes that `parse` makes of the value.
template <typename T, typename Parse>
Setter to(T Options::*member, Parse parse) {
  return [=](Options& o, const std::string& value) { o.*member = static_cast<T>(parse(value)); };
}
template <typename T, typename Parse>
Setter to(T TimingPlan::*member, Parse parse) {
  return [=](Options& o, const std::string& value) {
    o.timing.*member = static_cast<T>(parse(value));
  };
}
Setter on(bool Options::*member) {
  return [=](Options& o, const std::string&) { o.*member = true; };
}

std::string names_of_precisions() {
  std::vector<std::string> names;
  for (const PrecisionTraits& traits : kPrecisions) names.emplace_back(traits.name);
  return list_of(names);
}
template <typename T>
std::string names_of(const T& all) {
  std::vector<std::string> names;
  for (const auto each : all) names.emplace_back(name_of(each));
  return list_of(names);
}

// Items of a `kind`, each parsed by `named`; `known` lists all of them.
template <typename T>
auto items(const char* kind, std::optional<T> (*named)(std::string_view), std::string known) {
  return [=](const std::string& value) {
    std::vector<T> found;
    for (const std::string& item : parts_of(value)) {
      const std::optional<T> one = named(item);
      if (!one) refuse((kind[0] == 'e' ? "an " : "a ") + (kind + (" (" + known + ")")), item);
      found.push_back(*one);
    }
    if (found.empty()) refuse(std::string("a list of ") + kind + "s", value);
    return found;
  };
}

Define define(const std::string& value) {
  const auto is_plain = [](const std::string& text) {
    return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
    });
  };
  const auto colon = std::min(value.find(':'), value.size());
  const Define found{value.substr(0, colon),
                     parts_of(colon < value.size() ? value.substr(colon + 1) : "")};
  if (!is_plain(found.name) || found.values.empty() || !std::ranges::all_of(found.values, is_plain))
    refuse("NAME:VALUE,VALUE,... of letters, digits, dots, dashes and underlines", value);
  if (std::isdigit(static_cast<unsigned char>(found.name[0])) != 0 ||
      found.name.find_first_of(".-") != std::string::npos)
    refuse("NAME:VALUE,VALUE,...: NAME must be a C identifier", value);
  if (std::set(found.values.begin(), found.values.end()).size() != found.values.size())
    refuse("NAME:VALUE,VALUE,...: a value is repeated", value);
  return found;
}

double interval(const std::string& value) {
  const double seconds = positive_or_zero(value);
  if (seconds != 0 && !(seconds >= 1e-3 && seconds <= 10))
    refuse("0 or from 0.001 to 10 seconds", value);
  return seconds;
}

std::string name(const std::string& value) {
  if (value.empty() || value.size() > 200 || value != one_line(value))
    refuse("a name in one line", value);
  return value;
}

std::string device(const std::string& value) {
  const bool index = !value.empty() && value.size() < 4 &&
                     std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
  if (value != "auto" && value != "cpu" && !index) refuse("auto, cpu or the index of a GPU", value);
  return value;
}

constexpr char kWhat[] = "What to run", kData[] = "Operands and state of the GPU",
               kTime[] = "How long", kYours[] = "Your kernels", kPeaks[] = "Peaks and limits",
               kOutput[] = "Output";

const std::vector<Option>& table() {
  static const std::vector<Option> options = {
      {kWhat, "device", "auto|cpu|INDEX", "auto",
       "the first GPU if there is one, else the CPU; or the GPU with this index",
       to(&Options::device, device)},
      {kWhat, "shapes", "LIST", "default",
       "sizes as 256 or MxNxK, batches as batched:16x256, groups as grouped:8x256/zipf, named sets "
       "(" +
           names_of_sets() + ") and .json files",
       to(&Options::shapes, some("a list of shapes"))},
      {kWhat, "precisions", "LIST",
       "all with a kernel of this project but f16, e4m3fast, e5m2, e5m2fast, e4m3block",
       "of " + names_of_precisions(),
       to(&Options::precisions, items("precision", precision_named, names_of_precisions()))},
      {kWhat, "layouts", "LIST", "nn",
       "of " + names_of(kLayouts) + ": A's letter, then B's; n is row-major, t is transposed",
       to(&Options::layouts, items("layout", layout_named, names_of(kLayouts)))},
      {kWhat, "epilogues", "LIST", "none",
       "of " + names_of(kActivations) +
           ": before C is stored, add a bias to its columns, then apply GELU in its tanh form; or "
           "add another matrix",
       to(&Options::epilogues, items("epilogue", activation_named, names_of(kActivations)))},
      {kWhat, "variants", "default|all", "default",
       "tunable kernels with their default parameters, or with every point of their tuning space",
       to(&Options::variants, choice<bool>("default|all"))},
      {kWhat, "versus", "LIST", "",
       "interleave each case with a baseline, sample by sample, and print the ratio of the speeds; "
       "of several kernels a short trial finds the fastest; library means all libraries",
       to(&Options::versus, some("a list of kernels"))},
      {kWhat, "library", "measure|omit", "measure",
       "if the filter leaves out the libraries: measure them before a case, or compare with none",
       to(&Options::library, choice<bool>("omit|measure"))},
      {kWhat, "cublas", "FILE", "as the loader finds it",
       "measure this libcublas.so, with the libcublasLt.so of its folder",
       to(&Options::cublas, some("a file"))},
      {kWhat, "plans", "FILE", "plans.json in ~/.cache/gemm_bench",
       "read from this file, and keep in it, which plans of Best a trial found to be the fastest",
       to(&Options::plans, some("a file"))},
      {kWhat, "allow_debug", "", "", "time a build that is not Release", on(&Options::allow_debug)},
      {kData, "fill", "uniform|normal|integers|zeros", "uniform",
       "operand values: uniform is [-1, 1], and for integer types all values that keep sums exact; "
       "integers and zeros draw less power, so their times do not hold for real data",
       to(&Options::fill, choice<Fill>("uniform|normal|integers|zeros"))},
      {kData, "seed", "N", "1", "seed of the operand values",
       to(&Options::seed, whole(0, 0x7fffffffffffffffU, "a whole number"))},
      {kData, "cache", "rotate|hot", "rotate",
       "rotate through operand sets that together exceed the L2, or use one set",
       to(&Options::rotate, choice<bool>("hot|rotate"))},
      {kData, "state", "settled|burst|limit", "settled",
       "time a GPU in steady state, or the first launches after it was idle, or at its power "
       "limit: "
       "in blocks of seconds, interleaved with those of --gemm_versus, with the energy of a launch "
       "(docs/methodology.md)",
       to(&TimingPlan::state, choice<State>("settled|burst|limit"))},
      {kData, "cooldown", "SECONDS", "0, or 1 with --gemm_state=burst",
       "idle time before each case, or before each burst",
       to(&Options::cooldown_seconds, positive_or_zero)},
      {kData, "monitor", "SECONDS", "0.02, or 0.005 with --gemm_state=limit",
       "interval between readings of clocks, power, energy and temperature; 0: none",
       to(&Options::monitor_given, interval)},
      {kTime, "warmup", "SECONDS", "4", "longest warm-up; it ends once clock and power are flat",
       to(&TimingPlan::warmup_seconds, positive)},
      {kTime, "flat", "SHARE", "1%",
       "clock and power are flat if the halves of the last 0.6 s, or 2 s at the power cap, agree "
       "within this share",
       to(&TimingPlan::flat, share)},
      {kTime, "sample", "SECONDS", "0.002", "shortest time of the launches of one sample",
       to(&TimingPlan::sample_seconds, positive)},
      {kTime, "target", "SHARE", "1.5%",
       "sampling ends when the 95 % interval of the median is narrower than this share of it",
       to(&TimingPlan::target, share)},
      {kTime, "sampling", "SECONDS", "3", "longest sampling of a case",
       to(&TimingPlan::longest_sampling_seconds, positive)},
      {kTime, "burst", "N", "10", "launches in a burst",
       to(&TimingPlan::burst_launches, whole(1, 1000, "a number from 1 to 1000"))},
      {kTime, "rounds", "N", "2",
       "with --gemm_state=limit: rounds A B B A of a case and its baseline, or A A of a case alone",
       to(&TimingPlan::rounds, whole(1, 8, "a number from 1 to 8"))},
      {kTime, "block", "SECONDS", "2.5", "shortest time of a block of --gemm_state=limit",
       to(&TimingPlan::block_seconds, positive)},
      {kTime, "row_budget", "SECONDS", "10, and with --gemm_state=limit what the blocks need",
       "longest time of a case; one that is predicted to take longer is skipped",
       to(&Options::row_budget_seconds, positive)},
      {kTime, "run_budget", "SECONDS", "none", "cases that would end after this time are skipped",
       to(&Options::run_budget_seconds, positive)},
      {kTime, "patience", "SECONDS", "60",
       "a GPU that does not finish within this time counts as lost, and the run ends",
       to(&Options::patience_seconds, positive)},
      {kYours, "kernel", "LIST", "",
       "files FILE.cu or FILE.so (described in kernels/user/gemm_kernel.h) or FILE.py "
       "(kernels/user/run_in_python.py), each also as FILE:ENTRY; without a filter only these "
       "kernels run; without shapes the size is 4096 (CPU: 512)",
       [](Options& o, const std::string& v) {
         const std::vector<std::string> files = parts_of(v);
         if (files.empty()) refuse("a list of files", v);
         o.kernels.insert(o.kernels.end(), files.begin(), files.end());
       }},
      {kYours, "define", "NAME:VALUES", "",
       "compile FILE.cu once for each of these values of a macro",
       [](Options& o, const std::string& v) {
         const Define found = define(v);
         if (std::ranges::count(o.defines, found.name, &Define::name) != 0)
           refuse("a new macro: give all its values together", v);
         o.defines.push_back(found);
       }},
      {kYours, "include", "DIR", "none",
       "look here, too, for the headers that FILE.cu includes; may be repeated",
       [](Options& o, const std::string& v) {
         if (v.empty()) refuse("a folder", v);
         o.includes.push_back(v);
       }},
      {kYours, "machine_code", "DIR", "none",
       "take the machine code of FILE.cu from this folder, or keep it there; a changed header is "
       "not "
       "noticed",
       to(&Options::machine_code, some("a folder"))},
      {kYours, "compile_for", "CC", "",
       "only compile FILE.cu, for this compute capability, such as 90; needs no GPU",
       to(&Options::compile_for, whole(50, 999, "a compute capability, such as 90"))},
      {kYours, "kernel_limit", "SECONDS", "--gemm_row_budget plus 20",
       "a case with such a kernel is ended after this time",
       to(&Options::kernel_limit_given, positive)},
      {kYours, "verdict", "", "",
       "print a JSON line for each case (docs/verdicts.md), with a new seed and compared with the "
       "libraries if --gemm_seed and --gemm_versus are not given",
       on(&Options::verdict)},
      {kYours, "baselines_cached", "", "",
       "with --gemm_verdict: take the baseline's time from an earlier run on this device in this "
       "state, and measure it alone if there is none",
       on(&Options::cached_baselines)},
      {kPeaks, "peaks", "measure|cached|stored|nominal", "cached",
       "measured peaks: measure them now (measure); use those of an earlier run on this device and "
       "driver, and without one measure them (cached) or not (stored); or use nominal peaks only "
       "(nominal)",
       to(&Options::peaks_from, choice<PeaksFrom>("measure|cached|stored|nominal"))},
      {kPeaks, "peaks_only", "", "",
       "print nominal and measured peaks, with --benchmark_format=json as JSON, and exit; "
       "--benchmark_filter chooses the probes that are measured",
       on(&Options::peaks_only)},
      {kPeaks, "peak_flops", "FLOP/S", "from a table by compute capability and product",
       "nominal compute peak, for every precision",
       [](Options& o, const std::string& v) { o.peaks.flop_per_second = positive(v); }},
      {kPeaks, "peak_bandwidth", "BYTES/S", "from the device", "nominal memory bandwidth",
       [](Options& o, const std::string& v) { o.peaks.bytes_per_second = positive(v); }},
      {kOutput, "list_kernels", "", "",
       "print rung, family, name and idea of every kernel, with tabs between them, and exit",
       on(&Options::list_kernels)},
      {kOutput, "name_record", "", "",
       "print the record's name under results/, <device>/<utc>-<commit>.json.gz, and exit",
       on(&Options::name_record)},
      {kOutput, "tell_record", "FILE", "",
       "write the record's path to FILE, for scripts that use --benchmark_out=DIR/",
       to(&Options::tell_record, some("a file"))},
      {kOutput, "node", "NAME", "none", "name of this host in the record",
       to(&Options::node, name)},
  };
  return options;
}

}  // namespace

// As in records.
std::string_view name_of(PeaksFrom from) {
  constexpr std::string_view kNames[] = {"measure", "cached", "stored", "queried"};
  return kNames[static_cast<int>(from)];
}

Options parse_options(int& argc, char** argv) {
  constexpr std::string_view kPrefix = "--gemm_";
  Options options;
  options.arguments.assign(argv, argv + argc);
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string& argument = options.arguments[static_cast<std::size_t>(i)];
    if (argument == "--help" || argument == "-h") options.help = true;
    if (!argument.starts_with(kPrefix)) {
      argv[kept++] = argv[i];
      continue;
    }
    const auto equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    const bool has_value = equals != std::string::npos;
    const auto option =
        std::ranges::find(table(), std::string_view(flag).substr(kPrefix.size()), &Option::name);
    if (option == table().end())
      throw std::invalid_argument("unknown option " + flag + ": --help lists all");
    if (has_value == option->takes.empty())
      throw std::invalid_argument(has_value ? flag + " takes no value"
                                            : flag + " needs a value: " + option->usage());
    try {
      option->set(options, has_value ? argument.substr(equals + 1) : "");
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(flag + ": " + error.what());
    }
  }
  argc = kept;
  argv[argc] = nullptr;
  TimingPlan& timing = options.timing;
  const bool burst = timing.state == State::burst, limit = timing.state == State::limit;
  timing.cooldown_seconds = options.cooldown_seconds.value_or(burst ? 1 : 0);
  timing.budget_seconds = options.row_budget_seconds.value_or(
      timing.budget_seconds + (limit ? timing.seconds_of_blocks(2) : 0));
  options.monitor_seconds = options.monitor_given.value_or(limit ? 0.005 : options.monitor_seconds);
  return options;
}

std::string options_help() {
  constexpr std::size_t kIndent = 42, kWidth = 100;
  std::string help;
  std::string_view group;
  for (const Option& option : table()) {
    if (option.group != group)
      help += (group.empty() ? "" : "\n") + std::string(option.group) + ":\n";
    group = option.group;
    std::string usage = "  " + option.usage();
    usage.resize(std::max(usage.size() + 2, kIndent), ' ');
    help +=
        wrapped(
            usage + option.help +
                (option.standard.empty() ? "" : " (default: " + std::string(option.standard) + ")"),
            kWidth, kIndent) +
        "\n";
  }
  return help;
}

}  // namespace gemm::bench
