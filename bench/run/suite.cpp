#include "bench/run/suite.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/base/device_errors.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/peaks/ceilings_store.hpp"
#include "bench/run/child_row.hpp"

namespace gemm::bench {

Suite::Suite(std::unique_ptr<Backend> backend, const Options& options,
             std::vector<std::string> command)
    : bench_{.backend = std::move(backend), .options = options} {
  Conditions run{.options = options,
                 .device = bench_.backend->device(),
                 .ceilings = ceilings_of(bench_.backend->device(), options.peaks),
                 .timer = std::string(bench_.backend->timer()),
                 .command = std::move(command)};
  bench_.watch = watch_card(run.device, options.watch_seconds, run.why_not_watched);
  if (bench_.watch) run.card = bench_.watch->facts();
  try {
    run.overheads = bench_.backend->overheads();
    if (options.ceilings != CeilingsFrom::queried)
      run.measured = options.is_child()
                         ? load_ceilings(ceilings_file(run.device), run.device)
                         : kept_and_measured(*bench_.backend, bench_.watch.get(), run.device,
                                             options.ceilings == CeilingsFrom::measure);
  } catch (const DeviceLost&) {
    (void)bench_.backend.release();  // freeing its memory would wait for the GPU
    throw;
  }
  fill_in(run.ceilings, run.measured);

  const MeasuredCeiling* dram = memory_roof(run.measured, "DRAM");
  bench_.limits = {.ceilings = run.ceilings,
                   .last_level_cache_bytes = run.device.last_level_cache_bytes,
                   // On a CPU others take their share of it: no limit.
                   .dram_bytes_per_second = dram != nullptr && run.device.kind == Device::Kind::gpu
                                                ? dram->bytes_per_second
                                                : std::nullopt,
                   .overheads = run.overheads};
  results_ = std::make_unique<Results>(std::move(run));
  baselines_.emplace(bench_, *results_);
  bench_.started = now_seconds();
}

void Suite::measure(const Case& which, std::optional<std::int64_t> samples, Row& row) {
  if (interrupted()) throw Interrupted();
  if (lost()) throw Skipped(lost_);
  const std::vector<Case> rivals = race_.named_rivals(which);
  const auto is_baseline = [&](const Case& rival) { return is_library_for(which, rival); };
  if (needs_child(which, rivals)) {
    if (std::ranges::none_of(rivals, is_baseline)) baselines_->measure(which);
    return measure_in_child(bench_, which, rivals, samples, row);
  }
  const std::optional<Case> rival = race_.rival_of(which);
  if (!bench_.options.is_child() && !(rival && is_baseline(*rival))) baselines_->measure(which);
  race_.run(which, rival, samples, row);
  doubt_ceilings(row);
}

bool Suite::needs_child(const Case& which, const std::vector<Case>& rivals) const {
  if (bench_.options.is_child()) return false;
  return which.kernel->is_users() ||
         std::ranges::any_of(rivals, [](const Case& one) { return one.kernel->is_users(); });
}

void Suite::doubt_ceilings(const Row& row) {
  constexpr double kBeyondDoubt = 1.05;
  const Ceiling* roof =
      compute_ceiling(results_->run().ceilings, row.which.problem.precision);  // caches beat DRAM's
  if (doubted_ || roof == nullptr || roof->origin != Ceiling::Origin::measured ||
      !(row.flop_per_second() > kBeyondDoubt * *roof->per_second))
    return;
  doubted_ = true;
  std::error_code ignored;
  std::filesystem::remove(ceilings_file(results_->run().device), ignored);
  std::cerr << row.which.name() << " is faster than its measured roof: something else ran when "
            << "that was measured. The next run measures the ceilings again\n";
}

void Suite::discard(const Case& which) {
  if (!lost() && !needs_child(which, race_.named_rivals(which))) bench_.discard(which);
}

// What lies on the GPU is given up with it: to free it would be to wait for the GPU.
void Suite::lose_device(const std::string& error, const Case& during) {
  if (!lost()) lost_ = "the device was lost in " + during.name() + ": " + error;
}

nlohmann::ordered_json Suite::run_to_json() const {
  nlohmann::ordered_json run = results_->run_to_json();
  run["time"] = {{"wall_seconds", elapsed_seconds()}, {"kernel_seconds", bench_.kernel_seconds}};
  if (bench_.watch)
    if (const auto seconds = bench_.watch->read_seconds())
      run["method"]["watch"]["read_seconds"] = *seconds;
  return run;
}

}  // namespace gemm::bench
