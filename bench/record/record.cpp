#include "bench/record/record.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <type_traits>

#include "bench/base/clock.hpp"
#include "bench/base/json.hpp"
#include "bench/base/text.hpp"
#include "bench/kernel_code/fingerprint.hpp"
#include "bench/peaks/measured_peaks_json.hpp"
#include "build_info.hpp"
#include "kernels/libraries.hpp"
#include "kernels/tokens.hpp"

namespace gemm::bench {

// What a row has of its own, by name; what follows from that, Results::to_json adds.
JSON_FIELDS(Range, min, median, max)
JSON_FIELDS(LoadedLibrary, name, version, file, detail)
JSON_FIELDS(KernelCode, name, fingerprint, registers, shared_bytes, local_bytes, threads, blocks,
            occupancy, blocks_per_sm)
JSON_FIELDS(Energy, watts, seconds, changes, why_not)
JSON_FIELDS(Warmup, seconds, settled, watched, sm_hz)
JSON_FIELDS(GpuState, readings, sm_hz, memory_hz, power_w, temperature_c, throttled_share, reasons)
JSON_FIELDS(GpuHealth, sm_hz, memory_hz, power_w, temperature_c, reasons, ecc_corrected,
            ecc_uncorrected, rows_remapped, remapping_pending, remapping_failed, xids,
            other_processes)

template <typename Io>
void fields(Io& io, Like<Verdict> auto& verdict) {
  io("wrong", verdict.wrong);
  io("outside_bytes", verdict.outside_bytes);
  io("wrong_rows", verdict.wrong_rows);
  io("by_rows", verdict.by_rows);
  io("inputs_changed", verdict.inputs_changed);
  io("max_error", verdict.max_error);
  io("bound", verdict.bound_at_max);
  io("of_bound", verdict.max_of_bound);
  io("error_squares", verdict.error_squares);
  io("error_squares_limit", verdict.error_squares_limit);
}

JSON_FIELDS(Estimate, value, low, high)
JSON_FIELDS(Block, seconds, launch_seconds, launches, energy, power_w, sm_hz, temperature_c)
JSON_FIELDS(Versus, kernel, library, shared_process, ratio, low, high, seconds, samples, blocks,
            energy_ratio)
JSON_FIELDS(Checks, passes, launches, checked, uses, lead_ratio, launch_share)
JSON_FIELDS(RowPlan, name, source)
JSON_FIELDS(Deviation, code, value, limit, doubt)
JSON_FIELDS(OthersLoad, cpus, busy_share, steal_share)
JSON_FIELDS(Environment, recorded, removed, injected)
JSON_FIELDS(DeviceInfo, name, uuid_hash, pci_bus_id, cpu_id, cpu_quota, l1_data_bytes, l2_bytes,
            l3_bytes, clock_hz, memory_clock_hz, bus_width_bits, memory_bytes, driver, runtime)
JSON_FIELDS(TimingPlan, warmup_seconds, flat, sample_seconds, sampling_seconds,
            longest_sampling_seconds, target, cooldown_seconds)

template <typename Io>
void fields(Io& io, Like<Row> auto& row) {
  io("rotation_sets", Counted(row.rotation_sets));
  io("batch", Counted(row.batch));
  io("launch", row.launch);
  io("plan", row.plan);
  io("device_kernels", row.launched.names);
  io("device_code", row.launched.code);
  io("verification", row.verdict);
  io("skipped", row.skipped);
  io("failed", row.failed);
  io("suspect", row.suspect);
  if (!row.skipped.empty() || !row.failed.empty()) return;
  io("warmup", row.timing.warmup);
  io("energy", row.timing.warmup.energy);
  io("samples_seconds", row.timing.samples_seconds);
  io("samples_sm_hz", row.timing.samples_sm_hz);
  io("samples_throttled", row.timing.samples_throttled);
  io("blocks", row.timing.blocks);
  io("converged", row.timing.converged);
  io("memory_kept_bytes", row.timing.memory_kept_bytes);
  io("clocks", row.timing.gpu);
  io("versus", row.versus);
  io("checks", row.checks);
  io("host", row.host);
}

namespace {

using json = nlohmann::ordered_json;

constexpr char kProduct[] = "FP64 product of the stored operands";
constexpr char kFreivalds[] =
    "Freivalds: C x = A (B x) of every row for 2 vectors x, and 4096 elements, in FP64";

json roof_json(const Roof& roof) {
  return {{"name", roof.name}, {"flop_per_second", roof.flop_per_second}};
}

json peak_json(const Peak& peak) {
  const json figure = json_of(peak.per_second);
  return {{"name", peak.name},
          {"precision", peak.precision ? json(traits_of(*peak.precision).name) : json(nullptr)},
          {"flop_per_second", peak.precision ? figure : json(nullptr)},
          {"bytes_per_second", peak.precision ? json(nullptr) : figure},
          {"clock_hz", json_of(peak.clock_hz)},
          {"origin", name_of(peak.origin)},
          {"source", peak.source},
          {"limit_flop_per_second", json_of(peak.limit_per_second)},
          {"contradiction", json_of(peak.contradiction)}};
}

json device_json(const DeviceInfo& device, const std::optional<GpuFacts>& gpu) {
  json all = json_of(device);
  all.update({{"kind", device.kind == Device::Kind::gpu ? "gpu" : "cpu"},
              {"compute_capability", device.compute_capability > 0
                                         ? json(capability_text(device.compute_capability))
                                         : json(nullptr)},
              {"sm_count", json_of(Counted(device.sm_count))},
              {"cores", json_of(Counted(device.cores))},
              {"last_level_cache_bytes", json_of(Counted(device.last_level_cache_bytes))},
              {"power_limit_w", gpu ? json_of(gpu->power_limit_w) : json(nullptr)}});
  return all;
}

std::optional<std::string> fingerprint_of(const LaunchedKernels& launched) {
  std::vector<std::optional<std::string>> each;
  for (const KernelCode& code : launched.code) each.push_back(code.fingerprint);
  return combined(each);
}

// The modelled traffic of the kernel on the problem of the row.
json traffic_json(const Case& which, const Device& device) {
  const Kernel& kernel = *which.kernel;
  if (!kernel.traffic || (kernel.unsupported && kernel.unsupported(which.problem, device)))
    return nullptr;
  const Traffic traffic = kernel.traffic(which.problem, device);
  return {{"dram_bytes", traffic.dram}, {"l2_bytes", traffic.l2}, {"shared_bytes", traffic.shared}};
}

// Samples, each the mean of a batch, in as few digits as nanoseconds of a batch need: no clock here
// has more.
json in_nanoseconds(const std::vector<double>& samples, std::int64_t batch) {
  const double digits = std::ceil(9 + std::log10(std::max<std::int64_t>(1, batch)));
  const double unit = std::pow(10, digits);
  json rounded = json::array();
  for (const double seconds : samples) rounded.push_back(std::round(seconds * unit) / unit);
  return rounded;
}

[[noreturn]] void no_row(const std::string& what) { throw std::runtime_error(what); }

// All of `part` is in `whole`.
void require_same(const json& part, const json& whole, const std::string& where) {
  if (part.is_object()) {
    for (const auto& [key, value] : part.items())
      require_same(value, whole.at(key), where.empty() ? key : where + "." + key);
  } else if (part.is_array() && part.size() == whole.size()) {
    for (std::size_t i = 0; i < part.size(); ++i)
      require_same(part[i], whole[i], where + "[" + std::to_string(i) + "]");
  } else if (part != whole) {
    no_row(where + " = " + one_line(whole.dump(-1, ' ', true, json::error_handler_t::replace), 80));
  }
}

// Throws std::runtime_error for a field that no measurement gives: negative, infinite, a share
// above 1.
struct Check {
  std::string where;

  void number(const std::string& name, double value) const {
    constexpr double kMost = 1e30;
    const bool share = name.ends_with("share") || name.ends_with("occupancy") ||
                       name.find("reasons.") != std::string::npos;
    // A place before C, and a difference of times, which noise may make negative.
    const bool has_sign = name.ends_with("outside_bytes") || name.ends_with("lead_ratio");
    const double least = has_sign ? -kMost : 0;
    if (std::isnan(value)) return;  // unknown; require_timed says what must be known
    if (!(value >= least && value <= (share ? 1 : kMost)))
      no_row(formatted("%s = %.6g", name.c_str(), value));
  }
  template <typename T>
  void operator()(const std::string& key, const T& value) const {
    const std::string name = where.empty() ? key : where + "." + key;
    if constexpr (std::is_arithmetic_v<T>) {
      number(name, static_cast<double>(value));
    } else if constexpr (requires { value.number; }) {
      number(name, static_cast<double>(value.number));
    } else if constexpr (requires { value.has_value(); }) {
      if (value) (*this)(key, *value);
    } else if constexpr (std::is_same_v<T, Shares>) {
      for (const auto& [reason, share] : value) number(name + "." + reason, share);
    } else if constexpr (std::is_same_v<T, Range>) {
      for (const double one : {value.min, value.median, value.max}) number(name, one);
      if (!(value.min <= value.median && value.median <= value.max)) no_row(name + " in disorder");
    } else if constexpr (requires(Check inside) { fields(inside, value); }) {
      Check inside{name};
      fields(inside, value);
    } else if constexpr (requires { value.size(); } && !std::is_same_v<T, std::string>) {
      for (std::size_t i = 0; i < value.size(); ++i)
        (*this)(key + "[" + std::to_string(i) + "]", value[i]);
    }
  }
};

// What a row with a time has in addition.
void require_timed(const Row& row) {
  const Timing& timing = row.timing;
  const std::size_t samples = timing.samples_seconds.size();
  if (samples == 0) no_row("no samples_seconds");
  for (const auto* each : {&timing.samples_seconds, &timing.samples_sm_hz})
    for (const double one : *each)
      if (!(one > 0)) no_row(formatted("a sample = %.6g", one));
  for (const std::size_t others : {timing.samples_sm_hz.size(), timing.samples_throttled.size()})
    if (others != 0 && others != samples)
      no_row("not as many samples_sm_hz or samples_throttled as samples_seconds");
  if (row.batch < 1 || row.rotation_sets < 1) no_row("batch or rotation_sets = 0");
  if (!row.verdict || !row.verdict->passed()) no_row("verification did not pass");
  const auto positive = [](const char* what, std::initializer_list<double> values) {
    for (const double one : values)
      if (!(one > 0)) no_row(formatted("%s has %.6g", what, one));
  };
  if (row.versus)
    positive("versus", {row.versus->ratio, row.versus->low, row.versus->high, row.versus->seconds});
  for (const auto* blocks : {&timing.blocks, row.versus ? &row.versus->blocks : nullptr})
    for (const Block& block : blocks != nullptr ? *blocks : std::vector<Block>())
      positive("blocks", {block.seconds, block.launch_seconds, 1.0 * block.launches});
  for (const KernelCode& code : row.launched.code)
    if (code.fingerprint &&
        (code.fingerprint->size() != 16 ||
         code.fingerprint->find_first_not_of("0123456789abcdef") != std::string::npos))
      no_row("device_code.fingerprint");
}

}  // namespace

void Results::add(const std::string& name, Row row) {
  row.failed = one_line(row.failed);
  row.skipped = one_line(row.skipped);
  rows_[name].push_back(std::move(row));
}

const Row& Results::reported(const std::string& name, std::int64_t repetition,
                             std::int64_t repetitions) const {
  const std::vector<Row>& rows = rows_.at(name);
  return rows.at(rows.size() - (repetitions - repetition));
}

bool Results::all_timed(const std::string& name, std::int64_t repetitions) const {
  for (std::int64_t i = 0; i < repetitions; ++i)
    if (!reported(name, i, repetitions).timed()) return false;
  return true;
}

const Row* Results::fastest_row(const std::function<bool(const Row&)>& counts) const {
  const Row* best = nullptr;
  for (const auto& [name, rows] : rows_) {
    const Row& row = rows.back();
    if (row.rated() && counts(row) &&
        (best == nullptr || row.flop_per_second() > best->flop_per_second()))
      best = &row;
  }
  return best;
}

std::optional<LibraryRate> Results::library_rate(const Problem& p) const {
  if (const Row* row = fastest_row(
          [&](const Row& of) { return of.which.kernel->is_library() && of.which.problem == p; }))
    return LibraryRate{row->which.kernel->label(), row->flop_per_second()};
  const auto found = std::ranges::find(library_rates_, p, &std::pair<Problem, LibraryRate>::first);
  return found == library_rates_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Roof> Results::roof_of(const Row& row, const Clocks& clocks) const {
  const Problem& p = row.which.problem;
  return roof_at(run_.peaks, p.precision, flop(p) / compulsory_bytes(p), clocks);
}

std::optional<double> Results::of_roof(const Row& row, const Clocks& clocks) const {
  const auto roof = roof_of(row, clocks);
  if (!roof || !row.rated()) return std::nullopt;
  return row.flop_per_second() / roof->flop_per_second;
}

// A memory clock that is not reported is taken for the nominal one: only the SMs are slowed down.
std::optional<Clocks> Results::clocks_of(const Row& row) const {
  const auto sm_hz = row.timing.median_sm_hz();
  if (!row.timed() || !sm_hz) return std::nullopt;
  return Clocks{sm_hz, median_of(row.timing.gpu.memory_hz)};
}

std::optional<double> Results::of_roof_at_clock(const Row& row) const {
  const auto clocks = clocks_of(row);
  return clocks ? of_roof(row, *clocks) : std::nullopt;
}

std::optional<double> Results::of_library(const Row& row) const {
  if (row.rated() && row.versus && row.versus->library) return row.versus->ratio;
  if (!row.rated()) return std::nullopt;
  const auto best = library_rate(row.which.problem);
  if (!best) return std::nullopt;
  return row.flop_per_second() / best->flop_per_second;
}

std::vector<Results::Best> Results::fastest() const {
  const auto fastest = [&](const Problem& p, bool library) {
    return fastest_row([&](const Row& row) {
      return row.which.problem == p && row.which.kernel->is_library() == library && !in_doubt(row);
    });
  };
  const auto half = [](const Row& row) { return row.timing.median_interval() / 2; };
  std::vector<Problem> problems;
  for (const auto& [name, rows] : rows_)
    if (const Problem& p = rows.back().which.problem;
        std::ranges::find(problems, p) == problems.end())
      problems.push_back(p);
  std::ranges::sort(problems, {}, [](const Problem& p) {
    return std::tuple(p.precision, p.layout, flop(p), p.m, p.n);
  });
  std::vector<Best> all;
  for (const Problem& p : problems) {
    const Row* ours = fastest(p, false);
    if (ours == nullptr) continue;
    Best& best = all.emplace_back(Best{ours, half(*ours), "", {}, {}});
    const auto stand_in =
        std::ranges::find(library_rates_, p, &std::pair<Problem, LibraryRate>::first);
    if (const auto& versus = ours->versus; versus && versus->library) {
      best.library = versus->kernel;
      best.ratio = versus->ratio;
      best.ratio_half = (versus->high - versus->low) / 2 / versus->ratio;
    } else if (const Row* library = fastest(p, true)) {
      best.library = library->which.kernel->label();
      best.ratio = ours->flop_per_second() / library->flop_per_second();
      best.ratio_half = std::hypot(best.row_half, half(*library));
    } else if (stand_in != library_rates_.end()) {
      best.library = stand_in->second.label;
      best.ratio = ours->flop_per_second() / stand_in->second.flop_per_second;
    }
  }
  return all;
}

bool Results::any_failed() const {
  return std::ranges::any_of(rows_, [](const auto& named) {
    return std::ranges::any_of(named.second, [](const Row& row) { return !row.failed.empty(); });
  });
}

json Results::to_json(const Row& row) const {
  const Problem& p = row.which.problem;
  const RegisteredKernel& kernel = *row.which.kernel;
  json parameters = json::object();
  for (const Parameter& parameter : kernel.parameters) parameters[parameter.name] = parameter.value;
  const auto roof = roof_of(row);
  json all = {{"kernel", kernel.name},
              {"family", kernel.family},
              {"parameters", parameters},
              {"precision", traits_of(p.precision).name},
              {"layout", name_of(p.layout)},
              {"m", p.m},
              {"n", p.n},
              {"k", p.k},
              {"flop", flop(p)},
              {"bytes_minimum", compulsory_bytes(p)},
              {"flop_per_byte", flop(p) / compulsory_bytes(p)},
              {"traffic", traffic_json(row.which, run_.device)},
              {"variant", kernel.variant},
              {"file", kernel.file ? json{{"name", kernel.file->name}, {"hash", kernel.file->hash}}
                                   : json(nullptr)},
              {"fingerprint", json_of(fingerprint_of(row.launched))},
              {"roof", roof ? roof_json(*roof) : json(nullptr)}};
  if (p.batch > 1) all["batch_count"] = p.batch;
  if (is_grouped(p)) {
    all["tokens"] = name_of_tokens(p);
    std::vector<std::int64_t> starts = row_starts(p);
    std::adjacent_difference(starts.begin(), starts.end(), starts.begin());
    all["group_rows"] = std::vector(starts.begin() + 1, starts.end());
  }
  if (p.activation != Activation::none) all["epilogue"] = name_of(p.activation);
  all.update(json_of(row));
  if (row.verdict)
    all["verification"].update({{"passed", row.verdict->passed()},
                                {"reference", row.verdict->by_rows ? kFreivalds : kProduct}});
  if (!row.timed()) return all;

  const Timing& timing = row.timing;
  const auto clocks = clocks_of(row);
  const auto at_clock = clocks ? roof_of(row, *clocks) : std::nullopt;
  const auto best = library_rate(p);
  const bool paired = row.versus && row.versus->library;
  all.update({{"seconds", json_of(timing.quartiles_seconds())},
              {"median_interval", json_of(timing.median_interval())},
              {"flop_per_second", row.rated() ? json(row.flop_per_second()) : json(nullptr)},
              {"of_roof_nominal", json_of(of_roof(row))},
              {"roof_at_clock", at_clock ? roof_json(*at_clock) : json(nullptr)},
              {"of_roof_at_clock", json_of(of_roof_at_clock(row))},
              {"of_library", json_of(of_library(row))},
              {"library", paired ? json(row.versus->kernel)
                          : best ? json(best->label)
                                 : json(nullptr)},
              {"departures", json_of(deviations(row))}});
  if (const auto joules = joules_of(timing.blocks)) all["joules_per_launch"] = json_of(*joules);
  all["samples_seconds"] = in_nanoseconds(timing.samples_seconds, row.batch);
  for (json& hz : all["samples_sm_hz"]) hz = std::round(hz.get<double>() * 1e-3) * 1e3;
  all["clocks"]["sm_hz_by_timer"] = json_of(timing.sm_hz_by_timer());
  if (row.versus) all["versus"]["confidence"] = kConfidence;
  return all;
}

json Results::run_to_json() const {
  const Options& options = run_.options;
  const TimingPlan& plan = options.timing;
  json precisions = json::array(), roofs = json::array(), measured = json::array();
  for (const Peak& peak : run_.peaks) roofs.push_back(peak_json(peak));
  for (const MeasuredPeak& peak : run_.measured) {
    const std::string memory = peak.name.substr(0, peak.name.find('_'));
    measured.push_back(json_of(peak));
    measured.back()["roof_of"] =
        &peak == memory_roof(run_.measured, memory) ? json(memory) : json(nullptr);
  }
  for (const PrecisionTraits& traits : kPrecisions)
    precisions.push_back({{"name", traits.name},
                          {"arithmetic", arithmetic_of(traits.precision)},
                          {"products", traits.unit_products}});
  json overheads;
  if (run_.overheads)
    overheads = {{"event_pair_seconds", run_.overheads->event_pair},
                 {"graph_node_seconds", run_.overheads->graph_node},
                 {"launch_seconds", run_.overheads->launch}};
  const bool watched = run_.gpu.has_value();
  const bool gpu = run_.device.kind == Device::Kind::gpu;
  const bool burst = plan.state == State::burst, limit = plan.state == State::limit;
  const auto test_name = test();
  json method = json_of(plan);
  method.update({{"timer", run_.timer},
                 {"variants", options.variants ? "all" : "default"},
                 {"fill", name_of(options.fill)},
                 {"seed", options.seed},
                 {"cache", options.rotate ? "rotate" : "hot"},
                 {"test", test_name ? json(*test_name) : json(nullptr)},
                 {"state", burst   ? json("burst")
                           : limit ? json("limit")
                           : gpu   ? json("settled")
                                   : json(nullptr)},
                 {"confidence", kConfidence},
                 {"burst_launches", burst ? json(plan.burst_launches) : json(nullptr)},
                 {"rounds", limit ? json(plan.rounds) : json(nullptr)},
                 {"block_seconds", limit ? json(plan.block_seconds) : json(nullptr)},
                 {"row_budget_seconds", plan.budget_seconds},
                 {"run_budget_seconds", json_of(options.run_budget_seconds)},
                 {"versus", json_of(options.versus)},
                 {"ceilings", name_of(options.peaks_from)},
                 {"watch",
                  {{"source", watched ? json("NVML") : json(nullptr)},
                   {"why_not", json_of(run_.why_no_monitor)},
                   {"interval_seconds", watched ? json(options.monitor_seconds) : json(nullptr)},
                   {"read_seconds", nullptr}}},
                 {"overheads", overheads}});
  return {{"schema", 3},
          {"complete", false},
          {"commit", build_info::kCommit},
          {"build",
           {{"type", build_info::kType},
            {"compiler", build_info::kCompiler},
            {"flags", json_of(std::string(build_info::kFlags))},
            {"cuda_compiler", json_of(std::string(build_info::kCudaCompiler))},
            {"cuda_architectures", json_of(std::string(build_info::kCudaArchitectures))},
            {"cuda_flags", json_of(std::string(build_info::kCudaFlags))}}},
          {"command", run_.command},
          {"node", json_of(options.node)},
          {"environment", json_of(run_.environment)},
          {"device", device_json(run_.device, run_.gpu)},
          {"libraries", libraries_json()},
          {"precisions", precisions},
          {"ceilings", roofs},
          {"measured_ceilings", measured},
          {"kernels", json::array()},
          {"method", method}};
}

json libraries_json() {
  json all = json::array();
  for (const LoadedLibrary& library : loaded_libraries()) {
    Writer writer{all.emplace_back(json::object())};
    fields(writer, library);
  }
  return all;
}

void note_libraries(const json& written) {
  for (const json& each : written) {
    LoadedLibrary library;
    const Reader reader{each};
    fields(reader, library);
    note_loaded(library);
  }
}

json health_json(const GpuHealth& before, const GpuHealth& after) {
  return {{"before", json_of(before)}, {"after", json_of(after)}};
}

json host_json(const std::optional<OthersLoad>& others, const std::optional<double>& load_start) {
  json host = others ? json_of(*others)
                     : json{{"cpus", nullptr}, {"busy_share", nullptr}, {"steal_share", nullptr}};
  host["load_start"] = json_of(load_start);
  host["load_end"] = json_of(load_average());
  return host;
}

Row row_from(const json& written, const Case& which) {
  Row row{.which = which};
  const Reader reader{written};
  fields(reader, row);
  json again;
  Writer writer{again};
  fields(writer, row);
  require_same(again, written, "");  // 1.5 is no count, and 1 no truth
  Check check{""};
  fields(check, row);
  if (row.skipped.empty() && row.failed.empty()) require_timed(row);
  const int reasons = !row.skipped.empty() + !row.failed.empty();
  if (reasons > 1 || (row.suspect && row.failed.empty())) no_row("skipped, failed or suspect");
  return row;
}

void shorten_texts(json& value) {
  if (value.is_string() && value.get_ref<const std::string&>().size() > kLongestText)
    value = one_line(value.get_ref<const std::string&>());
  if (value.is_structured())
    for (json& part : value) shorten_texts(part);
}

std::string record_name(const DeviceInfo& device) {
  return slug(device.name) + "/" + utc_now() + "-" + build_info::kCommit + ".json.gz";
}

}  // namespace gemm::bench
