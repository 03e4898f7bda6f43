#include "bench/record.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <stdexcept>

#include "build_info.hpp"

namespace gemm::bench {
namespace {

using json = nlohmann::ordered_json;

// JSON knows neither NaN nor infinity.
json finite(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json text_or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

template <typename T>
json count_or_null(T count) {
  return count > 0 ? json(count) : json(nullptr);
}

json to_json(const Ceiling& ceiling) {
  const json figure = or_null(ceiling.per_second);
  return {
      {"name", ceiling.name},
      {"precision", ceiling.precision ? json(traits_of(*ceiling.precision).name) : json(nullptr)},
      {"flop_per_second", ceiling.precision ? figure : json(nullptr)},
      {"bytes_per_second", ceiling.precision ? json(nullptr) : figure},
      {"origin", name_of(ceiling.origin)},
      {"source", ceiling.source}};
}

json to_json(const DeviceInfo& device) {
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
          {"power_limit_w", nullptr}};
}

}  // namespace

double Row::quantile_seconds(double share) const {
  std::vector<double> sorted = samples_seconds;
  std::ranges::sort(sorted);
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
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
    const Row& row =
        rows.back();  // the earlier ones were steps to find an iteration count, or repetitions
    if (row.timed() && row.which.kernel->is_library() && row.which.problem == p &&
        (!best || row.flop_per_second() > best->flop_per_second))
      best = Baseline{row.which.kernel->label(), row.flop_per_second()};
  }
  if (best) return best;
  const auto found = std::ranges::find(baselines_, p, &std::pair<Problem, Baseline>::first);
  return found == baselines_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> Results::of_roof(const Row& row) const {
  const Problem& p = row.which.problem;
  const auto roof = roof_at(ceilings_, p.precision, flop(p) / bytes_minimum(p));
  if (!roof || !row.timed()) return std::nullopt;
  return row.flop_per_second() / roof->flop_per_second;
}

std::optional<double> Results::of_library(const Row& row) const {
  const auto best = baseline(row.which.problem);
  if (!best || !row.timed()) return std::nullopt;
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
  json parameters = json::object();
  for (const Parameter& parameter : kernel.parameters) parameters[parameter.name] = parameter.value;
  const double intensity = flop(p) / bytes_minimum(p);
  const auto roof = roof_at(ceilings_, p.precision, intensity);
  const auto best = row.timed() ? baseline(p) : std::nullopt;

  json seconds, verification;
  if (row.timed())
    seconds = {{"median", row.quantile_seconds(0.5)},
               {"q1", row.quantile_seconds(0.25)},
               {"q3", row.quantile_seconds(0.75)},
               {"min", row.quantile_seconds(0)}};
  if (row.verdict)
    verification = {{"max_error", finite(row.verdict->max_error)},
                    {"bound", finite(row.verdict->bound_at_max)},
                    {"of_bound", finite(row.verdict->max_of_bound)},
                    {"reference", "FP64 product of the stored operands"},
                    {"passed", row.verdict->passed()}};
  return {{"kernel", kernel.name},
          {"family", kernel.family},
          {"parameters", parameters},
          {"precision", traits_of(p.precision).name},
          {"layout", "nn"},
          {"m", p.m},
          {"n", p.n},
          {"k", p.k},
          {"flop", flop(p)},
          {"bytes_minimum", bytes_minimum(p)},
          {"flop_per_byte", intensity},
          {"traffic", nullptr},
          {"rotation_sets", count_or_null(row.rotation_sets)},
          {"batch", count_or_null(row.batch)},
          {"launch", text_or_null(row.launch)},
          {"samples_seconds", row.timed() ? json(row.samples_seconds) : json::array()},
          {"seconds", seconds},
          {"flop_per_second", row.timed() ? json(row.flop_per_second()) : json(nullptr)},
          {"roof", roof ? json{{"name", roof->name}, {"flop_per_second", roof->flop_per_second}}
                        : json(nullptr)},
          {"of_roof_nominal", or_null(of_roof(row))},
          {"of_roof_at_clock", nullptr},
          {"of_library", or_null(of_library(row))},
          {"library", best ? json(best->label) : json(nullptr)},
          {"verification", verification},
          {"clocks", nullptr},
          {"skipped", text_or_null(row.skipped)},
          {"failed", text_or_null(row.failed)}};
}

json run_to_json(const DeviceInfo& device, const std::vector<Ceiling>& ceilings,
                 const Options& options, std::string_view timer,
                 const std::vector<std::string>& command) {
  json roofs = json::array();
  for (const Ceiling& ceiling : ceilings) roofs.push_back(to_json(ceiling));
  return {{"schema", 1},
          {"complete", false},
          {"commit", build_info::kCommit},
          {"build",
           {{"type", build_info::kType},
            {"compiler", build_info::kCompiler},
            {"cuda_compiler", text_or_null(build_info::kCudaCompiler)},
            {"cuda_architectures", text_or_null(build_info::kCudaArchitectures)}}},
          {"command", command},
          {"device", to_json(device)},
          {"ceilings", roofs},
          {"kernels", json::array()},
          {"method",
           {{"timer", timer},
            {"fill", name_of(options.fill)},
            {"seed", options.seed},
            {"warmup_seconds", options.warmup_seconds},
            {"sample_seconds", options.sample_seconds},
            {"row_budget_seconds", options.row_budget_seconds},
            {"run_budget_seconds", or_null(options.run_budget_seconds)},
            {"test", nullptr},
            {"state", nullptr}}}};
}

std::string record_name(const DeviceInfo& device) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  char utc[32];
  std::strftime(utc, sizeof utc, "%Y%m%dT%H%M%SZ", std::gmtime(&now));
  return slug(device.name) + "/" + utc + "-" + build_info::kCommit + ".json";
}

void write_atomically(const std::filesystem::path& path, const std::string& text) {
  const auto failed = [&] {
    return std::runtime_error("cannot write '" + path.string() +
                              "': check that its folder exists and is writable");
  };
  std::error_code error;
  std::filesystem::path target = path;
  for (int links = 0; std::filesystem::is_symlink(target, error) && links < 40; ++links)
    target = target.parent_path() / std::filesystem::read_symlink(target, error);
  if (std::filesystem::exists(target, error) && !std::filesystem::is_regular_file(target, error)) {
    std::ofstream device(target, std::ios::binary);  // a pipe or a terminal is not replaced
    if (!(device << text << std::flush)) throw failed();
    return;
  }
  std::filesystem::create_directories(target.parent_path(), error);
  std::filesystem::path temporary = target;
  temporary += ".part" + std::to_string(getpid());
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  if (file) std::filesystem::rename(temporary, target, error);
  if (!file || error) {
    std::filesystem::remove(temporary, error);
    throw failed();
  }
}

void require_writable(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
    return;  // a pipe or a terminal takes no file beside it
  std::filesystem::path probe = path;
  probe += ".probe";
  try {
    write_atomically(probe, "");
  } catch (const std::runtime_error&) {
    throw std::runtime_error("cannot write '" + path.string() +
                             "': check that its folder exists and is writable");
  }
  std::filesystem::remove(probe, ignored);
}

}  // namespace gemm::bench
