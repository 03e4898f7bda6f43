#include "bench/cases/options.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/cases/shapes.hpp"

namespace gemm::bench {
namespace {

using Setter = std::function<void(Options&, const std::string&)>;

struct Option {
  std::string_view name, takes;
  std::string help;
  Setter set;
};

[[noreturn]] void refuse(std::string_view takes, const std::string& value) {
  throw std::invalid_argument("'" + value + "' is not " + std::string(takes));
}

double positive(const std::string& value, std::string_view takes = "a positive number") {
  double number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc{} || stop != end || !std::isfinite(number) || !(number > 0))
    refuse(takes, value);
  return number;
}

double positive_or_zero(const std::string& value) {
  return value == "0" ? 0 : positive(value, "0 or a positive number");
}

// "0.5%" or "0.005"
double share(const std::string& value) {
  const bool percent = value.ends_with('%');
  const double number = positive(percent ? value.substr(0, value.size() - 1) : value);
  const double share = percent ? number / 100 : number;
  if (share >= 1) refuse("a share below 1, such as 0.005 or 0.5%", value);
  return share;
}

// The one of `choices` that is meant.
template <typename T>
T choice(const std::string& value, std::initializer_list<std::pair<std::string_view, T>> choices) {
  std::string known;
  for (const auto& [name, meaning] : choices) {
    if (value == name) return meaning;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  refuse("one of " + known, value);
}

std::uint64_t whole(const std::string& value) {
  std::uint64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc{} || stop != end || number > 0x7fffffffffffffffU)
    refuse("a whole number", value);
  return number;
}

std::string names_of_precisions() {
  std::string names;
  for (const PrecisionTraits& traits : kPrecisions)
    names += (names.empty() ? "" : ", ") + std::string(traits.name);
  return names;
}

std::string names_of_layouts() {
  std::string names;
  for (const Layout layout : kLayouts)
    names += (names.empty() ? "" : ", ") + std::string(name_of(layout));
  return names;
}

// Items of a `kind`, as `named` knows them, of which there are `known`.
template <typename T>
std::vector<T> list_of(const std::string& value, const std::string& kind,
                       std::optional<T> (*named)(std::string_view), const std::string& known) {
  std::vector<T> found;
  std::istringstream items(value);
  for (std::string item; std::getline(items, item, ',');) {
    const std::optional<T> one = named(item);
    if (!one) refuse("a " + kind + " (" + known + ")", item);
    found.push_back(*one);
  }
  if (found.empty()) refuse("a list of " + kind + "s", value);
  return found;
}

std::vector<std::string> items_of(const std::string& value) {
  std::vector<std::string> found;
  std::istringstream items(value);
  for (std::string item; std::getline(items, item, ',');) found.push_back(item);
  return found;
}

Define define(const std::string& value) {
  const auto is_plain = [](const std::string& text) {
    return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
    });
  };
  const auto colon = std::min(value.find(':'), value.size());
  const Define found{value.substr(0, colon),
                     items_of(colon < value.size() ? value.substr(colon + 1) : "")};
  if (!is_plain(found.name) || found.values.empty() || !std::ranges::all_of(found.values, is_plain))
    refuse("NAME:VALUE,VALUE,... of letters, digits, dots, dashes and underlines", value);
  if (std::isdigit(static_cast<unsigned char>(found.name[0])) != 0 ||
      found.name.find_first_of(".-") != std::string::npos)
    refuse("NAME:VALUE,VALUE,...: its NAME cannot be a macro's", value);
  if (std::set(found.values.begin(), found.values.end()).size() != found.values.size())
    refuse("NAME:VALUE,VALUE,...: a value is there twice", value);
  return found;
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
      {"shapes", "LIST", "sizes 256 or MxNxK, sets (" + names_of_sets() + "), .json files",
       [](Options& o, const std::string& v) {
         if (v.empty()) refuse("a list of shapes", v);
         o.shapes = v;
       }},
      {"precisions", "LIST",
       "of " + names_of_precisions() +
           "; default: what kernels of ours compute, but f16, e4m3fast, e5m2, e5m2fast",
       [](Options& o, const std::string& v) {
         o.precisions = list_of(v, "precision", precision_named, names_of_precisions());
       }},
      {"layouts", "LIST",
       "of " + names_of_layouts() + ", A's letter first, t: stored transposed; default: nn",
       [](Options& o, const std::string& v) {
         o.layouts = list_of(v, "layout", layout_named, names_of_layouts());
       }},
      {"variants", "default|all",
       "tunable kernels with their tuned parameters (default), or every point of their space too",
       [](Options& o, const std::string& v) {
         o.variants = choice<bool>(v, {{"default", false}, {"all", true}});
       }},
      {"fill", "uniform|normal|integers|zeros",
       "operand values: uniform in [-1,1] (default; of integers, all that keep sums exact); "
       "integers "
       "and zeros mislead on power",
       [](Options& o, const std::string& v) {
         o.fill = choice<Fill>(v, {{"uniform", Fill::uniform},
                                   {"normal", Fill::normal},
                                   {"integers", Fill::integers},
                                   {"zeros", Fill::zeros}});
       }},
      {"seed", "N", "of the operand values (default 1)",
       [](Options& o, const std::string& v) { o.seed = whole(v); }},
      {"cache", "rotate|hot", "operand sets that take turns past the cache (default), or one set",
       [](Options& o, const std::string& v) {
         o.rotate = choice<bool>(v, {{"rotate", true}, {"hot", false}});
       }},
      {"state", "settled|burst",
       "time a card under steady load (default), or from idle, the first launches",
       [](Options& o, const std::string& v) {
         o.timing.state = choice<State>(v, {{"settled", State::settled}, {"burst", State::burst}});
       }},
      {"warmup", "SECONDS", "longest warm-up until clock and power are flat (default 4)",
       [](Options& o, const std::string& v) { o.timing.warmup_seconds = positive(v); }},
      {"flat", "SHARE",
       "flat: the halves of the last 0.4 s, or of 2 s at the power cap, agree so well (default 1%)",
       [](Options& o, const std::string& v) { o.timing.flat = share(v); }},
      {"sample", "SECONDS", "shortest batch of launches that makes one sample (default 0.005)",
       [](Options& o, const std::string& v) { o.timing.sample_seconds = positive(v); }},
      {"target", "SHARE",
       "samples until the quartile interval of the median is below (default 0.5%)",
       [](Options& o, const std::string& v) { o.timing.target = share(v); }},
      {"sampling", "SECONDS", "or until this long was sampled (default 3)",
       [](Options& o, const std::string& v) { o.timing.longest_sampling_seconds = positive(v); }},
      {"cooldown", "SECONDS", "idle before each row (default 0), or before each burst (default 1)",
       [](Options& o, const std::string& v) { o.cooldown_seconds = positive_or_zero(v); }},
      {"burst", "N", "launches of one burst (default 10)",
       [](Options& o, const std::string& v) {
         const std::uint64_t launches = whole(v);
         if (launches < 1 || launches > 1000) refuse("a number from 1 to 1000", v);
         o.timing.burst_launches = static_cast<std::int64_t>(launches);
       }},
      {"versus", "LIST",
       "alternate each case, sample by sample, with the fastest of these kernels (a trial tells), "
       "and give the ratio; library: all libraries; f32:KERNEL: in f32, for rows that none of "
       "the others computes, if the operands are of the same type",
       [](Options& o, const std::string& v) {
         if (v.empty()) refuse("a list of kernels", v);
         o.versus = v;
       }},
      {"kernel", "LIST",
       "kernels of yours: FILE.cu or FILE.so (kernels/user/gemm_kernel.h says how), or FILE.py "
       "(kernels/user/run_in_python.py), or FILE:ENTRY; "
       "alone if there is no filter, at 4096 (CPU: 512) if there are no shapes",
       [](Options& o, const std::string& v) {
         const std::vector<std::string> files = items_of(v);
         if (files.empty()) refuse("a list of files", v);
         o.kernels.insert(o.kernels.end(), files.begin(), files.end());
       }},
      {"define", "NAME:VALUES", "compile them once with each of these values of a macro",
       [](Options& o, const std::string& v) {
         const Define found = define(v);
         if (std::ranges::count(o.defines, found.name, &Define::name) != 0)
           refuse("the only one of " + found.name + ": give all its values together", v);
         o.defines.push_back(found);
       }},
      {"kernel_limit", "SECONDS",
       "a row of theirs that takes longer is ended (default: --gemm_row_budget and 20)",
       [](Options& o, const std::string& v) { o.kernel_limit_given = positive(v); }},
      {"watch", "", "run again whenever one of their files is saved, until Ctrl-C",
       [](Options& o, const std::string&) { o.rerun = true; }},
      {"child", "CASE", "", [](Options& o, const std::string& v) { o.child_case = v; }},
      {"child_samples", "N", "",
       [](Options& o, const std::string& v) {
         o.child_samples = static_cast<std::int64_t>(whole(v));
       }},
      {"row_budget", "SECONDS",
       "longest time of a row; one predicted to take longer is skipped (default 10)",
       [](Options& o, const std::string& v) { o.timing.budget_seconds = positive(v); }},
      {"run_budget", "SECONDS", "rows that would end after it are skipped (default: none)",
       [](Options& o, const std::string& v) { o.run_budget_seconds = positive(v); }},
      {"watch", "SECONDS", "between readings of clocks and power, 0 for none (default 0.02)",
       [](Options& o, const std::string& v) {
         o.watch_seconds = positive_or_zero(v);
         if (o.watch_seconds != 0 && !(o.watch_seconds >= 1e-3 && o.watch_seconds <= 10))
           refuse("0 or from 0.001 to 10 seconds", v);
       }},
      {"patience", "SECONDS", "a GPU that does not finish for so long is given up (default 60)",
       [](Options& o, const std::string& v) { o.patience_seconds = positive(v); }},
      {"ceilings", "measure|cached|queried",
       "measured ceilings: anew, once per device and driver (default), or none",
       [](Options& o, const std::string& v) {
         o.ceilings = choice<CeilingsFrom>(v, {{"measure", CeilingsFrom::measure},
                                               {"cached", CeilingsFrom::cached},
                                               {"queried", CeilingsFrom::queried}});
       }},
      {"peak_flops", "FLOP/S", "compute roof to use instead of the table's, for every precision",
       [](Options& o, const std::string& v) { o.peaks.flop_per_second = positive(v); }},
      {"peak_bandwidth", "BYTES/S", "memory roof to use instead of the queried one",
       [](Options& o, const std::string& v) { o.peaks.bytes_per_second = positive(v); }},
      {"name_record", "",
       "print <device>/<utc>-<commit>.json, the record's name under results/, and stop",
       [](Options& o, const std::string&) { o.name_record = true; }},
      {"list_kernels", "",
       "print rung, family, name and idea of every kernel, a line each, and stop",
       [](Options& o, const std::string&) { o.list_kernels = true; }},
      {"tell_record", "FILE",
       "write the record's path to FILE, for who lets --benchmark_out=FOLDER/ find the name",
       [](Options& o, const std::string& v) {
         if (v.empty()) refuse("a file", v);
         o.tell_record = v;
       }},
      {"allow_debug", "", "time a build that is not Release",
       [](Options& o, const std::string&) { o.allow_debug = true; }},
  };
  return options;
}

bool is_among(std::span<const std::string_view> only, const Option& option) {
  const std::string name = std::string(option.name) + (option.takes.empty() ? "" : "=");
  return only.empty() || std::ranges::find(only, name) != only.end();
}

}  // namespace

std::string_view name_of(CeilingsFrom from) {
  constexpr std::string_view kNames[] = {"measure", "cached", "queried"};
  return kNames[static_cast<int>(from)];
}

Options parse_options(int& argc, char** argv, std::span<const std::string_view> only) {
  constexpr std::string_view kPrefix = "--gemm_";
  Options options;
  options.arguments.assign(argv, argv + argc);
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
    const bool has_value = equals != std::string_view::npos;
    // Of two with one name, one takes a value.
    auto option = std::ranges::find_if(table(), [&](const Option& one) {
      return one.name == name && has_value != one.takes.empty();
    });
    if (option == table().end()) option = std::ranges::find(table(), name, &Option::name);
    if (option == table().end() || !is_among(only, *option))
      throw std::invalid_argument("unknown option " + std::string(argument.substr(0, equals)) +
                                  ": --help lists them");
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
  const bool burst = options.timing.state == State::burst;
  options.timing.cooldown_seconds = options.cooldown_seconds.value_or(burst ? 1 : 0);
  return options;
}

std::string options_help(std::span<const std::string_view> only) {
  std::string help;
  for (const Option& option : table()) {
    if (!is_among(only, option) || option.help.empty()) continue;
    std::string usage = "  --gemm_" + std::string(option.name);
    if (!option.takes.empty()) usage += "=" + std::string(option.takes);
    usage.resize(std::max<std::size_t>(usage.size() + 2, 40), ' ');
    help += usage + option.help + "\n";
  }
  return help;
}

}  // namespace gemm::bench
