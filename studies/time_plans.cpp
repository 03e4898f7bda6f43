// Times every plan of every kernel that has a model of its time, beside cuBLASLt: what models are
// fitted to, and how far the model's choice is from the fastest plan. Nothing is verified.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/base/text.hpp"
#include "bench/cases/shapes.hpp"
#include "bench/device/backend.hpp"
#include "bench/device/problem_data.hpp"
#include "bench/timing/timing.hpp"
#include "kernels/layout.hpp"
#include "kernels/parts/cost.hpp"
#include "kernels/plans.hpp"
#include "kernels/registry.hpp"

namespace gemm::bench {
namespace {

constexpr const char* kUsage =
    "usage: time_plans SHAPES PRECISION LAYOUT [LIMIT [SECONDS]]\n\n"
    "SHAPES are those of --gemm_shapes, such as random:40:1. For cuBLASLt and each plan of each\n"
    "kernel with a model of its work it prints: shape, precision, layout, kernel, plan, predicted\n"
    "time (0 if there is none) and measured time, in microseconds, the SM clock in MHz (0 if it "
    "is\n"
    "unknown), and the work as parts/cost.hpp has it: cycles, busiest, shared, l2, dram, lines,\n"
    "packed, launches, tiles, tail, exchanges. Plans that are predicted to take over LIMIT times\n"
    "(3) as long as the best of their kernel are left out. Four samples of SECONDS (0.001) of each "
    "plan of a problem\n"
    "are interleaved; with 0.02 a GPU works at its power limit. Results are not verified.\n"
    "Needs a GPU.\n";

// A plan of a kernel, ready to be timed.
struct Plan {
  std::string kernel, name;
  double predicted;
  Work work;
  std::vector<Launch> launches;
  std::size_t batch_size = 0;
  std::unique_ptr<Batch> batch;
  std::vector<Elapsed> times;
};

// Interleaves samples of the plans of a problem, so that all of them meet the same temperatures and
// clocks, and prints medians. Launches rotate through the operand sets.
void time_interleaved(const Problem& p, std::vector<Plan>& plans) {
  constexpr int kRounds = 5;
  for (int round = 0; round < kRounds; ++round)
    for (Plan& plan : plans)
      if (const Elapsed time = plan.batch->time(); round > 0) plan.times.push_back(time);
  for (Plan& plan : plans) {
    std::ranges::sort(plan.times, {}, &Elapsed::seconds);
    const Elapsed& time = plan.times[plan.times.size() / 2];
    const Work& work = plan.work;
    std::printf(
        "%s %s %s %s %s %.3f %.3f %.0f %.6g %.6g %.6g %.6g %.6g %.6g %.6g %g %g %.6g %g\n",
        name_of(Shape{p.m, p.n, p.k}).c_str(), std::string(traits_of(p.precision).name).c_str(),
        std::string(name_of(p.layout)).c_str(), plan.kernel.c_str(),
        plan.name.empty() ? "-" : plan.name.c_str(), plan.predicted * 1e6,
        time.seconds / static_cast<double>(plan.batch_size) * 1e6, time.sm_hz.value_or(0) / 1e6,
        work.cycles, work.busiest, work.traffic.shared, work.traffic.l2, work.traffic.dram,
        work.lines, work.packed, work.launches, work.tiles, work.tail, work.exchanges);
  }
  std::fflush(stdout);
  plans.clear();
}

// Sets to rotate through, so that the larger of inputs and output exceed twice the last-level
// cache.
std::int64_t set_count(const Problem& p, const Device& device) {
  constexpr std::int64_t kMostSets = 1024;
  const double output = 1.0 * traits_of(p.precision).output_bytes * p.m * p.n;
  const double enough = 2.0 * static_cast<double>(device.last_level_cache_bytes) /
                        std::max(bytes_minimum(p) - output, output);
  return std::clamp(static_cast<std::int64_t>(enough) + 1, std::int64_t{2}, kMostSets);
}

void time_plans(Backend& backend, const Problem& p, double limit, double sample_seconds) {
  const ProblemData data(backend, p, Fill::uniform, 1, set_count(p, backend.device()),
                         Reference::rows);
  TimingPlan timing;
  timing.sample_seconds = sample_seconds;
  std::vector<Plan> plans;
  const auto make = [&](const RegisteredKernel& kernel, const Candidate& candidate) {
    Plan plan{kernel.label(),
              candidate.plan,
              seconds(candidate.work, backend.device()),
              candidate.work,
              {}};
    for (const Operands& set : data.sets()) plan.launches.push_back(candidate.prepare(set));
    const BatchPlan batch = try_out(backend, timing, plan.launches);
    plan.batch_size = batch.size;
    plan.batch = std::make_unique<Batch>(backend, plan.launches, batch.size, batch.graph);
    plans.push_back(std::move(plan));
  };
  const auto has = [](const auto& list, auto value) { return std::ranges::count(list, value) > 0; };
  for (const RegisteredKernel& kernel : registry()) {
    const bool library = kernel.name == "cuBLASLt",
               ours = kernel.work && !(kernel.variant && kernel.candidates);
    if (!(library || ours) || kernel.name == "Best" || !has(kernel.precisions, p.precision) ||
        !has(kernel.layouts, p.layout) ||
        (kernel.unsupported && kernel.unsupported(p, backend.device())))
      continue;
    const std::vector<Candidate> candidates = plans_of(kernel, p, backend.device());
    const auto predicted = [&](const Candidate& one) {
      return seconds(one.work, backend.device());
    };
    const double least = predicted(std::ranges::min(candidates, {}, predicted));
    for (const Candidate& candidate : candidates) {
      if (predicted(candidate) > limit * least) continue;
      try {
        make(kernel, candidate);
      } catch (const std::exception&) {  // no memory for so many workspaces
        if (plans.empty()) throw;
        time_interleaved(p, plans);
        make(kernel, candidate);
      }
    }
  }
  time_interleaved(p, plans);
}

int run(const std::vector<std::string>& arguments) {
  const bool help = arguments.size() == 1 && arguments[0] == "--help";
  if (help || arguments.size() < 3 || arguments.size() > 5) {
    std::fputs(kUsage, help ? stdout : stderr);
    return help ? 0 : 2;
  }
  const auto precision = precision_named(arguments[1]);
  const auto layout = layout_named(arguments[2]);
  if (!precision || !layout)
    throw std::runtime_error(arguments[1] + " " + arguments[2] +
                             ": give a precision and a layout, such as bf16 nn");
  const auto limit = arguments.size() > 3 ? number_in<double>(arguments[3]) : 3;
  if (!limit || !(*limit >= 1))
    throw std::runtime_error(arguments[3] + ": give a LIMIT of at least 1, such as 1.5");
  const auto seconds = arguments.size() > 4 ? number_in<double>(arguments[4]) : 0.001;
  if (!seconds || !(*seconds > 0 && *seconds <= 1))
    throw std::runtime_error(arguments[4] + ": give SECONDS up to 1, such as 0.02");
  std::string reason;
  const auto backend = make_cuda_backend(0, reason);
  if (!backend) throw std::runtime_error(reason);
  for (const Shape& shape : parse_shapes(arguments[0], Device::Kind::gpu))
    time_plans(*backend, {shape.m, shape.n, shape.k, *precision, *layout}, *limit, *seconds);
  return 0;
}

}  // namespace
}  // namespace gemm::bench

int main(int count, char** arguments) {
  try {
    return gemm::bench::run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "time_plans: %s\n", error.what());
    return 2;
  }
}
