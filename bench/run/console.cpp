#include "bench/run/console.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "bench/base/clock.hpp"
#include "bench/base/terminal.hpp"
#include "bench/base/text.hpp"
#include "build_info.hpp"
#include "kernels/libraries.hpp"

namespace gemm::bench {
namespace {

constexpr std::size_t kIndent = 4, kShortestName = 16;

std::string percent_text(const std::optional<double>& share) {
  return share ? formatted("%.1f", 100 * *share) : "-";
}

std::string whole_text(const std::optional<double>& value, double scale) {
  return value ? std::to_string(std::llround(*value * scale)) : "-";
}

// Half of an interval, in percent and mostly four characters.
std::string half_text(const std::optional<double>& half) {
  const double percent = 100 * half.value_or(INFINITY);
  if (!std::isfinite(percent)) return "-";
  return formatted("%.*f", percent < 10 ? 2 : percent < 100 ? 1 : 0, percent);
}

std::string type_of(const Case& which) {
  return std::string(traits_of(which.problem.precision).name);
}

std::string left(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, columns_of(text)), ' ');
}
std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, columns_of(text)), ' ') + text;
}

std::string line(std::string text, Console::Width width, std::size_t indent = 0) {
  text.erase(text.find_last_not_of(' ') + 1);
  return (width ? wrapped(text, *width, indent) : text) + "\n";
}

std::string note(const std::string& text, Console::Width width) {
  return line(std::string(kIndent, ' ') + text, width, kIndent + 2);
}

std::string peak_text(const Peak& peak) {
  if (!peak.per_second) return peak.name + " unknown (" + peak.source + ")";
  return peak.name + " " +
         (peak.precision ? rate_text(*peak.per_second, *peak.precision)
                         : formatted("%.0f GB/s", *peak.per_second * 1e-9)) +
         " (" + std::string(name_of(peak.origin)) +
         (peak.limit_per_second && peak.precision && peak.contradiction.empty()
              ? ", block-scaled " + rate_text(*peak.limit_per_second, *peak.precision)
              : "") +
         ")";
}

// "clock-drift 6 % (limit 1.5 %)"
std::string doubt_text(const Deviation& doubt) {
  std::string text = doubt.code;
  if (doubt.value) text += formatted(" %.2g %%", 100 * *doubt.value);
  if (doubt.limit) text += formatted(" (limit %.2g %%)", 100 * *doubt.limit);
  return text;
}

// "OMP_NUM_THREADS=4; removed: CUBLAS_LOGINFO_DBG=1; injected: libcuda-injection.so"; empty where
// nothing is unusual.
std::string surroundings(const Conditions& run) {
  const auto told = [](const std::map<std::string, std::string>& variables) {
    std::vector<std::string> all;
    for (const auto& [name, value] : variables) all.push_back(one_line(name + "=" + value));
    return list_of(all);
  };
  std::string text = told(run.environment.recorded);
  const auto add = [&](const char* what, const std::string& of) {
    if (!of.empty()) text += (text.empty() ? "" : "; ") + (what + of);
  };
  add("removed: ", told(run.environment.removed));
  add("injected: ", list_of(run.environment.injected));
  if (run.gpu_processes.value_or(0) > 0)
    add("other processes on the GPU: ", std::to_string(*run.gpu_processes));
  return text;
}

}  // namespace

std::string peaks_text(const std::vector<Peak>& all, Console::Width width) {
  std::string peaks = "Peaks: ", contradictions;
  std::set<std::string> said;  // precisions of one unit have one peak
  for (const Peak& peak : all)
    if (const std::string text = peak_text(peak); said.insert(text).second)
      peaks += (said.size() == 1 ? "" : ", ") + text;
  for (const Peak& peak : all)
    if (!peak.contradiction.empty() && said.insert(peak.contradiction).second)
      contradictions +=
          line("Table and probe disagree: " + peak.contradiction + "; % peak is of the probe",
               width, kIndent);
  return line(peaks, width, kIndent) + contradictions;
}

std::string device_text(const DeviceInfo& device) {
  std::string first = device.name;
  if (device.sm_count > 0) first += ", " + std::to_string(device.sm_count) + " SMs";
  if (device.cores > 0)
    first += ", " + std::to_string(device.cores) + (device.cores == 1 ? " core" : " cores");
  if (device.cores > 0 && !build_info::kOpenMp) first += " (built without OpenMP)";
  if (device.clock_hz) first += formatted(", %.0f MHz", *device.clock_hz * 1e-6);
  return first;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<long>(std::ceil(seconds));
  return formatted("%ld:%02ld", whole / 60, whole % 60);
}

std::string time_text(double seconds) {
  const auto [scale, unit] = seconds < 1e-3 ? std::pair(1e6, "us")
                             : seconds < 1  ? std::pair(1e3, "ms")
                                            : std::pair(1.0, "s");
  return formatted("%.4g %s", seconds * scale, unit);
}

// Names begin alike and differ in precision and shape: more of the end stays.
std::string shortened(const std::string& text, std::size_t width) {
  constexpr std::size_t kDots = 2;
  if (text.size() <= width) return text;
  if (width <= kDots) return text.substr(0, width);
  const std::size_t front = (width - kDots) / 3;
  return text.substr(0, front) + ".." + text.substr(text.size() - (width - kDots - front));
}

std::string status_line(const Progress& progress, const Case& which, const GpuMonitor* monitor,
                        std::size_t width) {
  const double now = now_seconds();
  std::string start;
  constexpr std::size_t kBar = 20, kWide = 80;
  if (width >= kWide) {
    const auto full = static_cast<std::size_t>(std::lround(kBar * progress.share(now)));
    start = "[" + std::string(full, '#') + std::string(kBar - full, '-') + "] ";
  }
  start += std::to_string(progress.done()) + "/" + std::to_string(progress.total());
  if (const auto left = progress.seconds_left(now)) start += "  " + clock_text(*left) + " left";
  if (*shown_phase() != '\0') start += "  " + std::string(shown_phase());
  std::string end;
  constexpr double kRecent = 15;  // longer than any interval of readings
  const std::vector<GpuReading> readings =
      monitor != nullptr ? monitor->between(now - kRecent, now) : std::vector<GpuReading>();
  if (!readings.empty()) {
    if (const auto clock = readings.back().sm_hz) end += formatted("  %.0f MHz", *clock * 1e-6);
    if (const auto power = readings.back().power_w) end += formatted("  %.0f W", *power);
  }
  const std::size_t others = start.size() + 2 + end.size();
  const std::string name = which.kernel_name() + " " + type_of(which) + " " + which.size();
  return shortened(start + "  " + shortened(name, width - std::min(width, others)) + end, width);
}

namespace {

struct Head {
  const char* title;
  std::size_t width;  // 0: of the longest
};
constexpr Head kHeads[] = {{"Benchmark", 0}, {"Type", 0},    {"Size", 0},   {"Time", 9},
                           {"Rate", 13},     {"\u00b1%", 4}, {"% peak", 6}, {"% at clock", 10},
                           {"% library", 9}, {"SM MHz", 6},  {"W", 4}};

}  // namespace

Console::Console(const Results& results, const std::vector<Case>& cases, bool colours)
    : results_(results), colours_(colours) {
  for (const Case& one : cases) {
    longest_name_ = std::max(longest_name_, one.kernel_name().size());
    longest_type_ = std::max(longest_type_, type_of(one).size());
    longest_size_ = std::max(longest_size_, one.size().size());
    longest_whole_ = std::max(longest_whole_, one.name().size());
  }
}

std::size_t Console::width_of(Column column) const {
  if (column == Column::type) return longest_type_;
  if (column == Column::size) return longest_size_;
  return kHeads[static_cast<std::size_t>(column)].width;
}

// Of each line; nothing where there are no colours.
std::string Console::painted(const std::string& lines, const char* colour) const {
  if (!colours_) return lines;
  std::string all;
  for (const std::string& one : parts_of(lines, '\n'))
    all += "\033[" + std::string(colour) + "m" + one + "\033[0m\n";
  return all;
}

// Those that the device can fill, without the less important ones if there is no room for names.
Console::Layout Console::layout(Width width) const {
  const Conditions& run = results_.run();
  Layout layout{
      {Column::name, Column::type, Column::size, Column::time, Column::rate, Column::interval},
      longest_name_};
  if (std::ranges::any_of(run.peaks, [](const Peak& peak) { return peak.per_second.has_value(); }))
    layout.columns.push_back(Column::peak);
  const bool gpu = run.device.kind == Device::Kind::gpu;
  if (gpu) layout.columns.push_back(Column::at_clock);
  layout.columns.push_back(Column::library);
  if (gpu) layout.columns.push_back(Column::clock);
  if (run.gpu) layout.columns.push_back(Column::power);
  if (!width) {
    std::erase(layout.columns, Column::type);
    std::erase(layout.columns, Column::size);
    return {layout.columns, longest_whole_};
  }
  for (const Column dispensable : {Column::power, Column::clock, Column::at_clock, Column::peak,
                                   Column::library, Column::time, Column::name}) {
    std::size_t others = 2;
    for (const Column column : layout.columns)
      if (column != Column::name) others += 1 + width_of(column);
    const std::size_t room = *width - std::min(*width, others);
    layout.name_width = std::min(longest_name_, room);
    if (layout.name_width >= std::min(longest_name_, kShortestName)) break;
    if (dispensable != Column::name) std::erase(layout.columns, dispensable);
  }
  return layout;
}

std::string Console::cell(Column column, const Row& row) const {
  switch (column) {
    case Column::name:
    case Column::type:
    case Column::size:
      break;  // named() has them
    case Column::time:
      return time_text(row.seconds());
    case Column::rate:
      return row.rated() ? rate_text(row.flop_per_second(), row.which.problem.precision) : "-";
    case Column::interval:
      return half_text(row.timing.median_interval() / 2);
    case Column::peak:
      return percent_text(results_.of_roof(row));
    case Column::at_clock:
      return percent_text(results_.of_roof_at_clock(row));
    case Column::library:
      return percent_text(results_.of_library(row));
    case Column::clock:
      return whole_text(row.timing.median_sm_hz(), 1e-6);
    case Column::power:
      return whole_text(row.timing.warmup.energy.watts, 1);
  }
  return "";
}

std::string Console::head(Width width, const std::optional<OthersLoad>& others) const {
  const Conditions& run = results_.run();
  std::string all;
  if (others && others->disturbs())
    all =
        painted(line(formatted("Busy host: other programs use %.2g of %d CPUs; times are in doubt",
                               others->missing_cpus(), others->cpus),
                     width),
                "33");
  all += line(device_text(run.device), width) + peaks_text(run.peaks, width);
  if (run.overheads)
    all += line(formatted("Overheads: graph node %.2f us, launch %.2f us, pair of events %.2f us",
                          1e6 * run.overheads->graph_node, 1e6 * run.overheads->launch,
                          1e6 * run.overheads->event_pair),
                width, kIndent);
  if (const std::string unusual = surroundings(run); !unusual.empty())
    all += line("Environment: " + unusual, width, kIndent);
  all += line(
      "Time is the median of the samples, \u00b1% half of its 95 % interval. Each result was "
      "verified before and after it was timed.",
      width);
  const Layout shape = layout(width);
  std::string heads = left("Benchmark", shape.name_width);
  for (const Column column : shape.columns)
    if (const Head& head = kHeads[static_cast<std::size_t>(column)]; column != Column::name)
      heads += " " + (column == Column::type ? left(head.title, width_of(column))
                                             : right(head.title, width_of(column)));
  return all + "\n" + line(heads, width) + line(std::string(columns_of(heads), '-'), width);
}

// The first columns. Without a width the whole name, as in a filter.
std::string Console::named(const Case& which, const std::string& suffix, std::size_t columns,
                           Width width) const {
  if (!width) return left(which.name() + suffix, columns);
  return left(shortened(which.kernel_name() + suffix, columns), columns) + " " +
         left(type_of(which), longest_type_) + " " + right(which.size(), longest_size_);
}

std::string Console::result(const Row& row, const std::string& progress, Width width) {
  const Layout shape = layout(width);
  if (!row.timed())
    return painted(line(named(row.which, "", shape.name_width, width) + " " + row.why_untimed() +
                            (progress.empty() ? "" : "  " + progress),
                        width, kIndent),
                   row.failed.empty() ? "0" : "31");
  std::string text = named(row.which, "", shape.name_width, width);
  for (const Column column : shape.columns)
    if (column > Column::size) text += " " + right(cell(column, row), width_of(column));
  std::vector<Deviation> doubts = results_.deviations(row);
  std::erase_if(doubts, [](const Deviation& one) { return !one.doubt; });
  text += doubts.empty() ? " " : "*";
  if (!progress.empty()) text += " " + progress;
  text = line(text, width);
  if (!doubts.empty()) text = painted(text, "33");
  if (const auto joules = joules_of(row.timing.blocks))
    text += note(formatted("%.4g J a launch (95 %% interval of %zu blocks: %.4g to %.4g)",
                           joules->value, row.timing.blocks.size(), joules->low, joules->high),
                 width);
  else if (!row.timing.blocks.empty())
    text += note("energy not measured: " + row.timing.warmup.energy.why_not, width);
  if (row.versus)
    text += note(
        formatted(
            "%.4f times as fast as %s, interleaved (95 %% interval of this process: %.4f to %.4f)",
            row.versus->ratio, row.versus->kernel.c_str(), row.versus->low, row.versus->high),
        width);
  if (row.versus && row.versus->energy_ratio)
    text += note(formatted("%.4f times its energy (%.4f to %.4f)", row.versus->energy_ratio->value,
                           row.versus->energy_ratio->low, row.versus->energy_ratio->high),
                 width);
  for (const Deviation& one : results_.deviations(row))
    if (one.code == "not-at-limit")
      text += note(
          formatted("at the power limit in %.0f %% of the readings only", 100 * *one.value), width);
  for (const Deviation& doubt : doubts)
    if (explained_.insert(doubt.code).second)
      text += note("* in doubt: " + doubt_text(doubt), width);
  return text;
}

std::string Console::aggregate(const Case& which, const std::string& name, const std::string& time,
                               const std::string& rate, Width width) const {
  return line(named(which, "_" + name, layout(width).name_width, width) + " " + right(time, 9) +
                  " " + right(rate, 13),
              width);
}

std::string Console::winners(Width width) const {
  constexpr std::size_t kMost = 60, kWide = 80;
  const std::vector<Results::Best> all = results_.fastest();
  if (all.empty()) return "";
  const bool wide = !width || *width >= kWide;
  std::size_t names = 17;
  for (const Results::Best& best : all)
    names = std::max(names, best.row->which.kernel_name().size());
  const std::size_t others = longest_type_ + longest_size_ + 2 + 14 + 5 + 7 + (wide ? 5 : 0);
  if (width) names = std::min(names, *width - std::min(*width, others + (wide ? 20 : 0)));
  const auto row = [&](const std::string& type, const std::string& size, const std::string& name,
                       const std::string& rate, const std::string& half, const std::string& ratio,
                       const std::string& ratio_half, const std::string& library) {
    std::string text = left(type, longest_type_) + " " + right(size, longest_size_) + " " +
                       left(shortened(name, names), names) + right(rate, 14) + right(half, 5) +
                       right(ratio, 7) + (wide ? right(ratio_half, 5) : "");
    const std::size_t room = width ? *width - std::min(*width, columns_of(text) + 1) : kMost;
    return line(text + " " + shortened(library, room), width);
  };
  std::string text = "\n" + row("Type", "Size", "Fastest of ours", "Rate", "\u00b1%", "Ratio",
                                "\u00b1%", "to library");
  for (std::size_t i = 0; i < std::min(all.size(), kMost); ++i) {
    const Results::Best& best = all[i];
    const Case& which = best.row->which;
    const std::string one =
        row(type_of(which), which.size(), which.kernel_name(), cell(Column::rate, *best.row),
            half_text(best.row_half),
            best.ratio ? formatted("%.*f", *best.ratio < 99 ? 3 : 0, *best.ratio) : "-",
            half_text(best.ratio_half), best.library);
    const bool wins = best.ratio && *best.ratio * (1 - best.ratio_half.value_or(0)) > 1;
    text += wins ? painted(one, "1") : one;
  }
  if (all.size() > kMost) text += line(formatted("and %zu more", all.size() - kMost), width);
  return text;
}

std::string Console::summary(Width width) const {
  std::vector<std::string> libraries;
  for (const LoadedLibrary& one : loaded_libraries())
    libraries.push_back(one.name + " " + one.version +
                        (one.detail.empty() ? "" : " (" + one.detail + ")"));
  std::string text;
  if (!libraries.empty()) text += line("Libraries: " + list_of(libraries), width, kIndent);
  if (const std::string measured = results_.conformance(); !measured.empty())
    text += line("Measured: " + measured, width, kIndent);
  return winners(width) + (text.empty() ? "" : "\n" + text);
}

}  // namespace gemm::bench
