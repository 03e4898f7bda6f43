#include "bench/run/child_row.hpp"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/base/terminal.hpp"
#include "bench/base/text.hpp"
#include "bench/measurement/audit.hpp"
#include "bench/run/child.hpp"
#include "bench/run/user_kernels.hpp"

namespace gemm::bench {

void measure_in_child(Workbench& bench, const Case& which, const std::vector<Case>& baselines,
                      std::optional<std::int64_t> samples, Row& row) {
  const double left = bench.seconds_left(),
               limit = std::min(bench.options.kernel_limit_seconds(), left);
  if (left <= 0) throw run_budget_is_spent(bench.options);
  bench.clear();
  std::vector<Case> cases = baselines;
  cases.push_back(which);
  std::vector<std::string> command = child_program(cases);
  std::ranges::copy(bench.options.arguments | std::views::drop(1), std::back_inserter(command));
  if (bench.options.peaks_from == PeaksFrom::measure) command.emplace_back("--gemm_peaks=cached");
  command.push_back("--gemm_child=" + which.name());
  if (samples) command.push_back("--gemm_child_samples=" + std::to_string(*samples));
  // What a kernel writes to the descriptor of the answer is none.
  std::random_device random;
  const std::string token = formatted("%08x%08x%08x%08x", random(), random(), random(), random());
  const ChildEnd end = run_child(command, limit, token + "\n");

  if (!end.printed.empty()) {
    const AboveStatus above;
    std::cerr << which.name() << " printed:\n" << quote_lines(end.printed);
  }
  if (end.late && limit == left) throw run_budget_is_spent(bench.options);
  try {
    const auto answer = nlohmann::ordered_json::parse(end.answer);
    if (!end.how.empty()) throw std::runtime_error(end.how);
    if (answer.at("token") != token)
      throw std::runtime_error("the kernel wrote to the descriptor of the result");
    row = row_from(answer.at("row"), which);
    bench.kernel_seconds += answer.at("kernel_seconds").get<double>();
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(end.how.empty() ? "it called exit(0)" : end.how);
  }
  if (!row.skipped.empty()) throw Skipped(row.skipped);
  if (row.suspect) throw Suspect(row.failed);
  if (!row.failed.empty()) throw std::runtime_error(row.failed);
}

}  // namespace gemm::bench
