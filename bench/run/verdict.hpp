// Verdicts as data (--gemm_verdict): a JSON line for each case, for programs that write kernels.
// python/gemm_bench/verdict.schema.json says what is in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/cases/cases.hpp"
#include "bench/cases/options.hpp"
#include "bench/record/record.hpp"
#include "bench/run/session.hpp"

namespace gemm::bench {

// What a verdict has without being asked for it: a new seed, and the libraries as the baseline
// where this program has any.
void settle_verdicts(Options& options, Device::Kind kind);

// How fast the baseline of a problem is: the fastest that --gemm_versus names, measured alone.
struct BaselineTime {
  std::string kernel;
  bool library = false;
  Range seconds{};  // the median, and its interval
  std::int64_t samples = 0;
  std::optional<double> sm_hz;
  bool throttled = false;
};

// Those of a run with --gemm_baselines_cached, kept in a file for others on this device.
class Baselines {
 public:
  // `file` may be broken or missing: then all are measured. An empty path: nothing is kept.
  explicit Baselines(std::filesystem::path file) : file_(std::move(file)) {}

  // Finds the baselines of all cases, and measures those that are not kept. `versus` is the list of
  // --gemm_versus. Throws std::invalid_argument if that names a user's kernel, and Interrupted.
  void find(Session& session, const std::vector<Case>& cases, const std::string& versus);

  // Null where none could be measured. One that ran at another clock than the row, although neither
  // was throttled, is of another state of the GPU: it is forgotten.
  const BaselineTime* of(const Row& row);

 private:
  void change(const std::string& key, const nlohmann::ordered_json& entry) const;

  std::filesystem::path file_;
  std::map<std::string, std::pair<std::string, BaselineTime>> found_;  // case: key and time
};

// The line of a row. `baselines` may be null.
nlohmann::ordered_json verdict_of(const Results& results, const Row& row, Baselines* baselines);

// The file of Baselines, beside that of the peaks; empty where there is no folder for it.
std::filesystem::path baselines_file(const DeviceInfo& device);

}  // namespace gemm::bench
