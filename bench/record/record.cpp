#include "bench/record/record.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/base/clock.hpp"
#include "bench/base/json.hpp"
#include "bench/base/text.hpp"
#include "bench/kernel_code/fingerprint.hpp"
#include "bench/peaks/ceilings_store.hpp"
#include "build_info.hpp"

namespace gemm::bench {
namespace {

using json = nlohmann::ordered_json;

// JSON knows neither NaN nor infinity.
json finite(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <typename T>
std::optional<T> maybe(const json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<T>());
}

template <typename T>
T value_or(const json& value, T other) {
  return value.is_null() ? other : value.get<T>();
}

std::optional<Range> range_from(const json& value) {
  if (value.is_null()) return std::nullopt;
  return Range{value.at("min"), value.at("median"), value.at("max")};
}

template <typename T>
json count_or_null(T count) {
  return count > 0 ? json(count) : json(nullptr);
}

json json_of(const std::optional<Range>& range) {
  if (!range) return nullptr;
  return {{"min", range->min}, {"median", range->median}, {"max", range->max}};
}

json json_of(const Roof& roof) {
  return {{"name", roof.name}, {"flop_per_second", roof.flop_per_second}};
}

json json_of(const Ceiling& ceiling) {
  const json figure = or_null(ceiling.per_second);
  return {
      {"name", ceiling.name},
      {"precision", ceiling.precision ? json(traits_of(*ceiling.precision).name) : json(nullptr)},
      {"flop_per_second", ceiling.precision ? figure : json(nullptr)},
      {"bytes_per_second", ceiling.precision ? json(nullptr) : figure},
      {"clock_hz", or_null(ceiling.clock_hz)},
      {"origin", name_of(ceiling.origin)},
      {"source", ceiling.source}};
}

json json_of(const DeviceInfo& device, const std::optional<CardFacts>& card) {
  const int cc = device.compute_capability;
  return {{"kind", device.kind == Device::Kind::gpu ? "gpu" : "cpu"},
          {"name", device.name},
          {"uuid_hash", or_null(device.uuid_hash)},
          {"compute_capability",
           cc > 0 ? json(std::to_string(cc / 10) + "." + std::to_string(cc % 10)) : json(nullptr)},
          {"sm_count", count_or_null(device.sm_count)},
          {"cores", count_or_null(device.cores)},
          {"clock_hz", or_null(device.clock_hz)},
          {"memory_clock_hz", or_null(device.memory_clock_hz)},
          {"bus_width_bits", or_null(device.bus_width_bits)},
          {"last_level_cache_bytes", count_or_null(device.last_level_cache_bytes)},
          {"memory_bytes", or_null(device.memory_bytes)},
          {"driver", or_null(device.driver)},
          {"runtime", or_null(device.runtime)},
          {"power_limit_w", card ? or_null(card->power_limit_w) : json(nullptr)}};
}

json json_of(const Versus& versus) {
  return {{"kernel", versus.kernel},  {"ratio", versus.ratio},     {"low", versus.low},
          {"high", versus.high},      {"confidence", kConfidence}, {"seconds", versus.seconds},
          {"samples", versus.samples}};
}

std::optional<std::string> fingerprint_of(const LaunchedKernels& launched) {
  std::vector<std::optional<std::string>> each;
  for (const KernelCode& code : launched.code) each.push_back(code.fingerprint);
  return combined(each);
}

json json_of(const std::vector<KernelCode>& kernels) {
  json all = json::array();
  for (const KernelCode& code : kernels)
    all.push_back({{"name", code.name},
                   {"fingerprint", or_null(code.fingerprint)},
                   {"registers", or_null(code.registers)},
                   {"shared_bytes", or_null(code.shared_bytes)},
                   {"local_bytes", or_null(code.local_bytes)},
                   {"threads", count_or_null(code.threads)},
                   {"blocks", count_or_null(code.blocks)},
                   {"occupancy", or_null(code.occupancy)}});
  return all;
}

// What the kernel is said to move, on the problem of the row.
json traffic_to_json(const Case& which, const Device& device) {
  const Kernel& kernel = *which.kernel;
  if (!kernel.traffic || (kernel.unsupported && kernel.unsupported(which.problem, device)))
    return nullptr;
  const Traffic traffic = kernel.traffic(which.problem, device);
  return {{"dram_bytes", traffic.dram}, {"l2_bytes", traffic.l2}, {"shared_bytes", traffic.shared}};
}

json end_to_end_to_json(const Row& row) {
  const auto hidden = row.hidden_share();
  if (!hidden) return nullptr;
  const PartTimes& parts = *row.parts;
  const Problem& p = row.which.problem;
  return {{"to_device_bytes", to_device_bytes(p)},
          {"from_device_bytes", from_device_bytes(p)},
          {"to_device_seconds", parts.to_device_seconds},
          {"kernel_seconds", parts.kernel_seconds},
          {"from_device_seconds", parts.from_device_seconds},
          {"to_device_bytes_per_second", to_device_bytes(p) / parts.to_device_seconds},
          {"from_device_bytes_per_second", from_device_bytes(p) / parts.from_device_seconds},
          {"hidden_share", *hidden}};
}

json clocks_to_json(const Timing& timing) {
  json reasons = json::object();
  for (const auto& [name, share] : timing.card.reasons) reasons[name] = share;
  return {{"readings", timing.card.readings},
          {"sm_hz", json_of(timing.card.sm_hz)},
          {"sm_hz_by_timer", json_of(timing.sm_hz_by_timer())},
          {"memory_hz", json_of(timing.card.memory_hz)},
          {"power_w", json_of(timing.card.power_w)},
          {"temperature_c", json_of(timing.card.temperature_c)},
          {"throttled_share", or_null(timing.card.throttled_share)},
          {"reasons", reasons}};
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
  return rows.at(rows.size() - static_cast<std::size_t>(repetitions - repetition));
}

bool Results::all_timed(const std::string& name, std::int64_t repetitions) const {
  for (std::int64_t i = 0; i < repetitions; ++i)
    if (!reported(name, i, repetitions).timed()) return false;
  return true;
}

std::optional<Baseline> Results::baseline(const Problem& p) const {
  std::optional<Baseline> best;
  for (const auto& [name, rows] : rows_) {
    const Row& row = rows.back();  // the last repetition
    if (row.timed() && row.which.kernel->is_library() && !row.which.transfer &&
        row.which.problem == p && (!best || row.flop_per_second() > best->flop_per_second))
      best = Baseline{row.which.kernel->label(), row.flop_per_second()};
  }
  if (best) return best;
  const auto found = std::ranges::find(baselines_, p, &std::pair<Problem, Baseline>::first);
  return found == baselines_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Roof> Results::roof_of(const Row& row, const Clocks& clocks) const {
  const Problem& p = row.which.problem;
  if (row.which.transfer) return std::nullopt;
  return roof_at(run_.ceilings, p.precision, flop(p) / bytes_minimum(p), clocks);
}

std::optional<double> Results::of_roof(const Row& row) const {
  const auto roof = roof_of(row);
  if (!roof || !row.timed()) return std::nullopt;
  return row.flop_per_second() / roof->flop_per_second;
}

// A memory clock that is not reported is taken for the nominal one: only the SMs are slowed down.
std::optional<Clocks> Results::clocks_of(const Row& row) const {
  const auto sm_hz = row.timing.median_sm_hz();
  if (!row.timed() || !sm_hz) return std::nullopt;
  const auto& memory = row.timing.card.memory_hz;
  return Clocks{sm_hz, memory ? std::optional(memory->median) : std::nullopt};
}

std::optional<double> Results::of_roof_at_clock(const Row& row) const {
  const auto clocks = clocks_of(row);
  if (!clocks) return std::nullopt;
  const auto roof = roof_of(row, *clocks);
  return roof ? std::optional(row.flop_per_second() / roof->flop_per_second) : std::nullopt;
}

std::optional<double> Results::of_library(const Row& row) const {
  if (row.timed() && row.versus && row.versus->library) return row.versus->ratio;
  if (!row.timed() || row.which.transfer) return std::nullopt;
  const auto best = baseline(row.which.problem);
  if (!best) return std::nullopt;
  return row.flop_per_second() / best->flop_per_second;
}

bool Results::any_failed() const {
  return std::ranges::any_of(rows_, [](const auto& named) {
    return std::ranges::any_of(named.second, [](const Row& row) { return !row.failed.empty(); });
  });
}

json Results::to_json(const Row& row) const {
  const Problem& p = row.which.problem;
  const RegisteredKernel& kernel = *row.which.kernel;
  const Timing& timing = row.timing;
  const bool timed = row.timed();
  json parameters = json::object();
  for (const Parameter& parameter : kernel.parameters) parameters[parameter.name] = parameter.value;
  const auto roof = roof_of(row);
  const auto clocks = clocks_of(row);
  const auto at_clock = clocks ? roof_of(row, *clocks) : std::nullopt;
  const auto best = timed && !row.which.transfer ? baseline(p) : std::nullopt;
  const bool paired = timed && row.versus && row.versus->library;

  json seconds, verification, warmup;
  if (timed) {
    seconds = {{"median", timing.quantile_seconds(0.5)},
               {"q1", timing.quantile_seconds(0.25)},
               {"q3", timing.quantile_seconds(0.75)},
               {"min", timing.quantile_seconds(0)}};
    warmup = {{"seconds", timing.warmup.seconds},
              {"settled", timing.warmup.settled},
              {"watched", text_or_null(timing.warmup.watched)}};
  }
  if (row.verdict)
    verification = {{"max_error", finite(row.verdict->max_error)},
                    {"bound", finite(row.verdict->bound_at_max)},
                    {"of_bound", finite(row.verdict->max_of_bound)},
                    {"reference", "FP64 product of the stored operands"},
                    {"passed", row.verdict->passed()}};
  return {{"kernel", kernel.name},
          {"family", kernel.family},
          {"parameters", parameters},
          {"transfer", row.which.transfer ? json(name_of(*row.which.transfer)) : json(nullptr)},
          {"precision", traits_of(p.precision).name},
          {"layout", name_of(p.layout)},
          {"m", p.m},
          {"n", p.n},
          {"k", p.k},
          {"flop", flop(p)},
          {"bytes_minimum", bytes_minimum(p)},
          {"flop_per_byte", flop(p) / bytes_minimum(p)},
          {"traffic", traffic_to_json(row.which, run_.device)},
          {"variant", kernel.variant},
          {"file", kernel.file ? json{{"name", kernel.file->name}, {"hash", kernel.file->hash}}
                               : json(nullptr)},
          {"rotation_sets", count_or_null(row.rotation_sets)},
          {"batch", count_or_null(row.batch)},
          {"launch", text_or_null(row.launch)},
          {"device_kernels", row.launched.names},
          {"fingerprint", or_null(fingerprint_of(row.launched))},
          {"device_code", json_of(row.launched.code)},
          {"warmup", warmup},
          {"samples_seconds", timed ? json(timing.samples_seconds) : json::array()},
          {"samples_sm_hz", timed ? json(timing.samples_sm_hz) : json::array()},
          {"samples_throttled", timed ? json(timing.samples_throttled) : json::array()},
          {"seconds", seconds},
          {"median_interval", timed ? finite(timing.median_interval()) : json(nullptr)},
          {"converged", timed ? json(timing.converged) : json(nullptr)},
          {"flop_per_second", timed ? json(row.flop_per_second()) : json(nullptr)},
          {"roof", roof ? json_of(*roof) : json(nullptr)},
          {"of_roof_nominal", or_null(of_roof(row))},
          {"roof_at_clock", at_clock ? json_of(*at_clock) : json(nullptr)},
          {"of_roof_at_clock", or_null(of_roof_at_clock(row))},
          {"of_library", or_null(of_library(row))},
          {"library", paired ? json(row.versus->kernel)
                      : best ? json(best->label)
                             : json(nullptr)},
          {"versus", timed && row.versus ? json_of(*row.versus) : json(nullptr)},
          {"end_to_end", end_to_end_to_json(row)},
          {"verification", verification},
          {"clocks", timed ? clocks_to_json(timing) : json(nullptr)},
          {"conformance", timed ? json(conformance(row)) : json(nullptr)},
          {"departures", timed ? json(departures(row)) : json::array()},
          {"skipped", text_or_null(row.skipped)},
          {"failed", text_or_null(row.failed)}};
}

json Results::run_to_json() const {
  const Options& options = run_.options;
  const TimingPlan& plan = options.timing;
  json roofs = json::array(), measured = json::array();
  for (const Ceiling& ceiling : run_.ceilings) roofs.push_back(json_of(ceiling));
  for (const MeasuredCeiling& ceiling : run_.measured) measured.push_back(bench::to_json(ceiling));
  json overheads;
  if (run_.overheads)
    overheads = {{"event_pair_seconds", run_.overheads->event_pair},
                 {"graph_node_seconds", run_.overheads->graph_node},
                 {"launch_seconds", run_.overheads->launch}};
  const bool watched = run_.card.has_value();
  const bool gpu = run_.device.kind == Device::Kind::gpu;
  const bool burst = plan.state == State::burst;
  const auto test_name = test();
  const std::string line = conformance();
  return {{"schema", 1},
          {"complete", false},
          {"commit", build_info::kCommit},
          {"build",
           {{"type", build_info::kType},
            {"compiler", build_info::kCompiler},
            {"cuda_compiler", text_or_null(build_info::kCudaCompiler)},
            {"cuda_architectures", text_or_null(build_info::kCudaArchitectures)}}},
          {"command", run_.command},
          {"device", json_of(run_.device, run_.card)},
          {"ceilings", roofs},
          {"measured_ceilings", measured},
          {"kernels", json::array()},
          {"conformance", text_or_null(line)},
          {"method",
           {{"timer", run_.timer},
            {"variants", options.variants ? "all" : "default"},
            {"fill", name_of(options.fill)},
            {"seed", options.seed},
            {"cache", options.rotate ? "rotate" : "hot"},
            {"test", test_name ? json(*test_name) : json(nullptr)},
            {"state", burst ? json("burst")
                      : gpu ? json("settled")
                            : json(nullptr)},
            {"warmup_seconds", plan.warmup_seconds},
            {"flat", plan.flat},
            {"sample_seconds", plan.sample_seconds},
            {"sampling_seconds", plan.sampling_seconds},
            {"longest_sampling_seconds", plan.longest_sampling_seconds},
            {"target", plan.target},
            {"cooldown_seconds", plan.cooldown_seconds},
            {"burst_launches", burst ? json(plan.burst_launches) : json(nullptr)},
            {"row_budget_seconds", plan.budget_seconds},
            {"run_budget_seconds", or_null(options.run_budget_seconds)},
            {"versus", or_null(options.versus)},
            {"ceilings", name_of(options.ceilings)},
            {"watch",
             {{"source", watched ? json("NVML") : json(nullptr)},
              {"why_not", text_or_null(run_.why_not_watched)},
              {"interval_seconds", watched ? json(options.watch_seconds) : json(nullptr)},
              {"read_seconds", nullptr}}},
            {"overheads", overheads}}}};
}

Row row_from(const json& written, const Case& which) {
  Row row{.which = which};
  row.rotation_sets = value_or(written.at("rotation_sets"), std::int64_t{0});
  row.batch = value_or(written.at("batch"), std::int64_t{0});
  row.launch = value_or(written.at("launch"), std::string());
  row.skipped = value_or(written.at("skipped"), std::string());
  row.failed = value_or(written.at("failed"), std::string());
  written.at("device_kernels").get_to(row.launched.names);
  for (const json& code : written.at("device_code"))
    row.launched.code.push_back({.name = code.at("name"),
                                 .fingerprint = maybe<std::string>(code.at("fingerprint")),
                                 .registers = maybe<std::int64_t>(code.at("registers")),
                                 .shared_bytes = maybe<std::int64_t>(code.at("shared_bytes")),
                                 .local_bytes = maybe<std::int64_t>(code.at("local_bytes")),
                                 .threads = value_or(code.at("threads"), std::int64_t{0}),
                                 .blocks = value_or(code.at("blocks"), std::int64_t{0}),
                                 .occupancy = maybe<double>(code.at("occupancy"))});
  if (const json& verdict = written.at("verification"); !verdict.is_null())
    row.verdict = Verdict{.wrong = verdict.at("passed") ? 0 : 1,
                          .max_error = value_or(verdict.at("max_error"), kNaN),
                          .max_of_bound = value_or(verdict.at("of_bound"), kNaN),
                          .bound_at_max = value_or(verdict.at("bound"), kNaN)};
  if (!row.skipped.empty() || !row.failed.empty()) return row;

  Timing& timing = row.timing;
  written.at("samples_seconds").get_to(timing.samples_seconds);
  written.at("samples_sm_hz").get_to(timing.samples_sm_hz);
  written.at("samples_throttled").get_to(timing.samples_throttled);
  timing.converged = written.at("converged");
  const json& warmup = written.at("warmup");
  timing.warmup = {.seconds = warmup.at("seconds"),
                   .settled = warmup.at("settled"),
                   .watched = value_or(warmup.at("watched"), std::string())};
  const json& clocks = written.at("clocks");
  timing.card = {.readings = clocks.at("readings"),
                 .sm_hz = range_from(clocks.at("sm_hz")),
                 .memory_hz = range_from(clocks.at("memory_hz")),
                 .power_w = range_from(clocks.at("power_w")),
                 .temperature_c = range_from(clocks.at("temperature_c")),
                 .throttled_share = maybe<double>(clocks.at("throttled_share"))};
  for (const auto& [name, share] : clocks.at("reasons").items())
    timing.card.reasons.emplace_back(name, share);
  if (const json& versus = written.at("versus"); !versus.is_null())
    row.versus = Versus{.kernel = versus.at("kernel"),
                        .library = written.at("library") == versus.at("kernel"),
                        .ratio = versus.at("ratio"),
                        .low = versus.at("low"),
                        .high = versus.at("high"),
                        .seconds = versus.at("seconds"),
                        .samples = versus.at("samples")};
  if (const json& parts = written.at("end_to_end"); !parts.is_null())
    row.parts = PartTimes{parts.at("to_device_seconds"), parts.at("kernel_seconds"),
                          parts.at("from_device_seconds")};
  return row;
}

void shorten_texts(json& value) {
  if (value.is_string() && value.get_ref<const std::string&>().size() > kLongestText)
    value = one_line(value.get_ref<const std::string&>());
  if (value.is_structured())
    for (json& part : value) shorten_texts(part);
}

std::string record_name(const DeviceInfo& device) {
  return slug(device.name) + "/" + utc_now() + "-" + build_info::kCommit + ".json";
}

}  // namespace gemm::bench
