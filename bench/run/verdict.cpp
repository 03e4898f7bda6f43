#include "bench/run/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "bench/base/durable.hpp"
#include "bench/base/json.hpp"
#include "bench/base/text.hpp"
#include "build_info.hpp"
#include "kernels/libraries.hpp"

namespace gemm::bench {

JSON_FIELDS(Range, min, median, max)
JSON_FIELDS(BaselineTime, kernel, library, seconds, samples, sm_hz, throttled)

namespace {

using json = nlohmann::ordered_json;

constexpr std::int64_t kBaselineSamples = 20;
constexpr double kSameClock = 0.02;

bool is_throttled(const Timing& timing) { return timing.gpu.throttled_share.value_or(0) > 0; }

// By what the time of a baseline is decided, but for the weather.
std::string key_of(const Conditions& run, const Problem& p, const std::string& versus) {
  const TimingPlan& plan = run.options.timing;
  json libraries = json::array();
  for (const LoadedLibrary& one : loaded_libraries())
    if (one.name != "NVRTC") libraries.push_back({one.name, one.version, one.file, one.detail});
  return json{run.device.name,
              json_of(run.device.uuid_hash),
              json_of(run.device.driver),
              run.gpu ? json_of(run.gpu->power_limit_w) : json(nullptr),
              run.gpu ? json_of(run.gpu->sm_hz_max) : json(nullptr),
              run.gpu && run.gpu->application_clocks_set,
              build_info::kCommit,
              libraries,
              versus,
              traits_of(p.precision).name,
              name_of(p.layout),
              name_of(p.activation),
              name_of(shape_of(p)),
              static_cast<int>(run.options.fill),
              run.options.rotate,
              static_cast<int>(plan.state),
              plan.warmup_seconds,
              plan.sample_seconds}
      .dump();
}

json read(const std::filesystem::path& file) {
  std::ifstream in(file);
  json all = json::parse(in, nullptr, false);
  return all.is_object() ? all : json::object();
}

std::optional<BaselineTime> kept(const json& all, const std::string& key) {
  try {
    const auto found = all.at(key).get<BaselineTime>();
    const Range& seconds = found.seconds;
    if (seconds.min > 0 && seconds.min <= seconds.median && seconds.median <= seconds.max &&
        std::isfinite(seconds.max))
      return found;
  } catch (const json::exception&) {  // made by another version, or broken
  }
  return std::nullopt;
}

// A library says its version once it is used: on a CPU by a launch that is prepared, and not run.
void open_libraries(const std::vector<Case>& cases, const Device& device) {
  for (const Case& one : cases) {
    if (!one.kernel->is_library()) continue;
    try {
      if (device.kind == Device::Kind::gpu)
        open_cublas();
      else
        one.kernel->prepare(one.problem, device, {});
    } catch (const std::runtime_error&) {  // its rows will say so
    }
  }
}

// By so many samples that its interval is narrow whatever the limits of a verdict.
std::optional<BaselineTime> fastest(Session& session, std::vector<Case> cases) {
  const auto row = session.measure_fastest(std::move(cases), kBaselineSamples);
  if (!row || !row->rated()) return std::nullopt;
  return BaselineTime{.kernel = row->which.kernel->label(),
                      .library = row->which.kernel->is_library(),
                      .seconds = median_range(row->timing.samples_seconds),
                      .samples = std::ssize(row->timing.samples_seconds),
                      .sm_hz = row->timing.median_sm_hz(),
                      .throttled = is_throttled(row->timing)};
}

json interval(const Range& range) {
  return {{"median", range.median}, {"low", range.min}, {"high", range.max}};
}

// `interleaved` is that of a record, or null.
json versus_json(json interleaved, const BaselineTime* cached, const Range& mine) {
  if (cached == nullptr) {
    if (interleaved.is_null()) return nullptr;
    for (const char* of_record : {"confidence", "blocks", "energy_ratio"})
      interleaved.erase(of_record);
    interleaved["cached"] = false;
    return interleaved;
  }
  return {{"kernel", cached->kernel},
          {"library", cached->library},
          {"ratio", cached->seconds.median / mine.median},
          {"low", cached->seconds.min / mine.max},
          {"high", cached->seconds.max / mine.min},
          {"seconds", cached->seconds.median},
          {"samples", cached->samples},
          {"cached", true},
          {"shared_process", false}};
}

// SOL-ExecBench's: 0.5 at the time of the baseline, 1 at the roof.
json sol_score(double seconds, const json& versus, const std::optional<double>& of_roof) {
  if (versus.is_null() || !of_roof) return nullptr;
  const double roof = seconds * *of_roof, baseline = versus["seconds"].get<double>();
  if (!(baseline > roof)) return nullptr;
  return 1 / (1 + (std::max(seconds, roof) - roof) / (baseline - roof));
}

}  // namespace

void settle_verdicts(Options& options, Device::Kind kind) {
  if (std::ranges::none_of(options.arguments, [](const std::string& argument) {
        return argument.starts_with("--gemm_seed=");
      })) {
    options.seed = std::random_device{}();
    options.arguments.push_back("--gemm_seed=" + std::to_string(options.seed));
  }
  const bool libraries = std::ranges::any_of(registry(), [&](const RegisteredKernel& kernel) {
    return kernel.runs_on == kind && kernel.is_library();
  });
  if (!options.versus && options.library && libraries) options.versus = "library";
}

void Baselines::find(Session& session, const std::vector<Case>& cases, const std::string& versus) {
  const Conditions& run = session.results().run();
  for (const Case& which : cases) {
    std::vector<Case> candidates = baselines_of(which, versus, run.options.variants);
    for (const Case& one : candidates)
      if (one.kernel->is_users())
        throw std::invalid_argument("--gemm_baselines_cached: " + one.kernel->label() +
                                    " is a kernel of yours, and may change: name a baseline of "
                                    "this program");
    std::erase(candidates, which);
    open_libraries(candidates, session.device());
    const std::string name = which.name(), key = key_of(run, which.problem, versus);
    std::optional<BaselineTime> best = kept(read(file_), key);
    if (!best && (best = fastest(session, candidates))) change(key, *best);
    if (best) found_[name] = {key, *best};
  }
}

void Baselines::change(const std::string& key, const json& entry) const {
  if (file_.empty()) return;
  json all = read(file_);  // what another process adds meanwhile is measured again
  all.erase(key);
  if (!entry.is_null()) all[key] = entry;
  try {
    write_atomically(file_, all.dump(1) + "\n");
  } catch (const std::runtime_error&) {  // the next run measures again
  }
}

const BaselineTime* Baselines::of(const Row& row) {
  const auto found = found_.find(row.which.name());
  if (found == found_.end()) return nullptr;
  const auto& [key, baseline] = found->second;
  const auto theirs = baseline.sm_hz, mine = row.timing.median_sm_hz();
  if (theirs && mine && !baseline.throttled && !is_throttled(row.timing) &&
      !(std::abs(*mine / *theirs - 1) <= kSameClock)) {
    change(key, nullptr);
    found_.erase(found);
    return nullptr;
  }
  return &baseline;
}

json verdict_of(const Results& results, const Row& row, Baselines* baselines) {
  const json whole = results.to_json(row);
  Outcome outcome = row.outcome;
  std::string reason = row.failed.empty() ? row.skipped : row.failed;
  if (row.timed() && !row.rated()) {  // by a child that changed its own command line
    outcome = Outcome::cheats;
    reason = "its process took one sample, and checked none";
  }
  const bool passed = outcome == Outcome::passed;
  json line = {{"schema", 1},
               {"name", row.which.name()},
               {"status", name_of(outcome)},
               {"reason", passed ? json(nullptr) : json(reason)}};
  for (const char* key : {"kernel", "parameters", "file", "precision", "layout", "m", "n", "k"})
    line[key] = whole[key];
  for (const char* key : {"batch_count", "tokens", "epilogue"})
    if (whole.contains(key)) line[key] = whole[key];
  json versus, seconds, score;
  if (passed) {
    const Range mine = median_range(row.timing.samples_seconds);
    const auto at_clock = results.of_roof_at_clock(row);
    seconds = interval(mine);
    versus =
        versus_json(whole["versus"], baselines == nullptr ? nullptr : baselines->of(row), mine);
    score = sol_score(mine.median, versus, at_clock ? at_clock : results.of_roof(row));
  }
  line.update(
      {{"seconds", seconds},
       {"flop_per_second", passed ? json(row.flop_per_second()) : json(nullptr)},
       {"of_roof", passed ? whole["of_roof_nominal"] : json(nullptr)},
       {"of_roof_at_clock", passed ? whole["of_roof_at_clock"] : json(nullptr)},
       {"versus", versus},
       {"sol_score", score},
       {"confidence", kConfidence},
       {"checks", passed ? whole["checks"] : json(nullptr)},
       {"verification", whole["verification"]},
       {"seed", results.run().options.seed},
       {"device_kernels", whole["device_kernels"]},
       {"host_code", row.which.kernel->file && !row.which.kernel->file->name.ends_with(".cu")},
       {"departures", json::array()},
       {"device", results.run().device.name},
       {"commit", build_info::kCommit}});
  if (passed)
    for (const json& one : whole["departures"]) line["departures"].push_back(one["code"]);
  shorten_texts(line);
  return line;
}

std::filesystem::path baselines_file(const DeviceInfo& device) {
  std::filesystem::path file = peaks_file(device);
  return file.empty() ? file : file.replace_extension(".baselines.json");
}

}  // namespace gemm::bench
