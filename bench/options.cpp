#include "bench/options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <sstream>
#include <stdexcept>

namespace gemm::bench {
namespace {

using Setter = std::function<void(Options&, const std::string&)>;

struct Option {
  std::string_view name, takes, help;
  Setter set;
};

[[noreturn]] void refuse(std::string_view takes, const std::string& value) {
  throw std::invalid_argument("'" + value + "' is not " + std::string(takes));
}

double positive(const std::string& value) {
  double number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc{} || stop != end || !std::isfinite(number) || !(number > 0))
    refuse("a positive number", value);
  return number;
}

std::uint64_t whole(const std::string& value) {
  std::uint64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc{} || stop != end || number > 0x7fffffffffffffffU)
    refuse("a whole number", value);
  return number;
}

std::vector<Precision> precisions(const std::string& value) {
  std::vector<Precision> found;
  std::istringstream items(value);
  for (std::string item; std::getline(items, item, ',');) {
    const auto precision = precision_named(item);
    if (!precision) {
      std::string known;
      for (const PrecisionTraits& traits : kPrecisions)
        known += (known.empty() ? "" : ", ") + std::string(traits.name);
      refuse("a precision (" + known + ")", item);
    }
    found.push_back(*precision);
  }
  if (found.empty()) refuse("a list of precisions", value);
  return found;
}

Fill fill(const std::string& value) {
  if (value == "uniform") return Fill::uniform;
  if (value == "integers") return Fill::integers;
  if (value == "zeros") return Fill::zeros;
  refuse("one of uniform, integers, zeros", value);
}

std::string device(const std::string& value) {
  const bool index = !value.empty() && value.size() < 4 &&
                     std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
  if (value != "auto" && value != "cpu" && !index) refuse("auto, cpu or the index of a GPU", value);
  return value;
}

const std::vector<Option>& table() {
  static const std::vector<Option> options = {
      {"device", "auto|cpu|INDEX", "the first GPU if there is one, else the CPU",
       [](Options& o, const std::string& v) { o.device = device(v); }},
      {"shapes", "LIST", "sizes 256 or MxNxK, sets (default, square, quick), .json files",
       [](Options& o, const std::string& v) { o.shapes = v; }},
      {"precisions", "LIST", "of f32, tf32, bf16, f16; default: all that a kernel has",
       [](Options& o, const std::string& v) { o.precisions = precisions(v); }},
      {"fill", "uniform|integers|zeros",
       "operand values: uniform in [-1,1] (default); others mislead on power",
       [](Options& o, const std::string& v) { o.fill = fill(v); }},
      {"seed", "N", "of the operand values (default 1)",
       [](Options& o, const std::string& v) { o.seed = whole(v); }},
      {"warmup", "SECONDS", "of launches before a case is timed (default 0.25)",
       [](Options& o, const std::string& v) { o.warmup_seconds = positive(v); }},
      {"sample", "SECONDS", "shortest batch of launches that makes one sample (default 0.005)",
       [](Options& o, const std::string& v) { o.sample_seconds = positive(v); }},
      {"row_budget", "SECONDS", "a row predicted to take longer is skipped (default 10)",
       [](Options& o, const std::string& v) { o.row_budget_seconds = positive(v); }},
      {"run_budget", "SECONDS", "rows that would end after it are skipped (default: none)",
       [](Options& o, const std::string& v) { o.run_budget_seconds = positive(v); }},
      {"peak_flops", "FLOP/S", "compute roof to use instead of the table's, for every precision",
       [](Options& o, const std::string& v) { o.peaks.flop_per_second = positive(v); }},
      {"peak_bandwidth", "BYTES/S", "memory roof to use instead of the queried one",
       [](Options& o, const std::string& v) { o.peaks.bytes_per_second = positive(v); }},
      {"name_record", "",
       "print <device>/<utc>-<commit>.json, the record's name under results/, and stop",
       [](Options& o, const std::string&) { o.name_record = true; }},
      {"allow_debug", "", "time a build that is not Release",
       [](Options& o, const std::string&) { o.allow_debug = true; }},
  };
  return options;
}

}  // namespace

Options parse_options(int& argc, char** argv) {
  constexpr std::string_view kPrefix = "--gemm_";
  Options options;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help" || argument == "-h") options.help = true;
    if (!argument.starts_with(kPrefix)) {
      argv[kept++] = argv[i];
      continue;
    }
    const auto equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals).substr(kPrefix.size());
    const auto option = std::ranges::find(table(), name, &Option::name);
    if (option == table().end())
      throw std::invalid_argument("unknown option " + std::string(argument.substr(0, equals)) +
                                  ": --help lists them");
    const bool has_value = equals != std::string_view::npos;
    if (has_value == option->takes.empty())
      throw std::invalid_argument(
          std::string(argument.substr(0, equals)) +
          (has_value ? " takes no value" : std::string(" needs =").append(option->takes)));
    try {
      option->set(options, has_value ? std::string(argument.substr(equals + 1)) : "");
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(std::string(argument.substr(0, equals)) + ": " + error.what());
    }
  }
  argc = kept;
  argv[argc] = nullptr;
  return options;
}

std::string options_help() {
  std::string help;
  for (const Option& option : table()) {
    std::string usage = "  --gemm_" + std::string(option.name);
    if (!option.takes.empty()) usage += "=" + std::string(option.takes);
    usage.resize(std::max<std::size_t>(usage.size() + 2, 40), ' ');
    help += usage + std::string(option.help) + "\n";
  }
  return help;
}

}  // namespace gemm::bench
