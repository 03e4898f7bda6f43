// Times every plan of every kernel that has a model of its time, beside cuBLASLt: what models are
// fitted to, and how far the model's choice is from the fastest plan. Nothing is verified.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/base/text.hpp"
#include "bench/cases/shapes.hpp"
#include "bench/device/backend.hpp"
#include "bench/device/problem_data.hpp"
#include "bench/timing/timing.hpp"
#include "kernels/layout.hpp"
#include "kernels/registry.hpp"

namespace gemm::bench {
namespace {

constexpr const char* kUsage =
    "usage: time_plans SHAPES PRECISION LAYOUT [LIMIT [SECONDS]]\n\n"
    "SHAPES are those of --gemm_shapes, such as random:40:1. For cuBLASLt and each plan of each\n"
    "kernel with a time model it prints: shape, precision, layout, kernel, plan, predicted time\n"
    "(0 if there is none) and measured time, in microseconds, and the SM clock in MHz (0 if it\n"
    "is unknown). Plans that are predicted to take over LIMIT times (3) as long as the best of\n"
    "their kernel are left out. Each of four samples takes SECONDS (0.001); with 0.02 a GPU\n"
    "works at its power limit. Results are not verified. Needs a GPU.\n";

// The median of a few batches of launches, which rotate through the operand sets, per launch.
BatchTime measured(Backend& backend, std::span<const Launch> launches, double sample_seconds) {
  TimingPlan plan;
  plan.sample_seconds = sample_seconds;
  const BatchPlan batch = try_out(backend, plan, launches);
  const auto timed = backend.batch(launches, batch.size, batch.graph);
  std::vector<BatchTime> times;
  for (int i = 0; i < 4; ++i) times.push_back(timed->time());
  std::ranges::sort(times.begin() + 1, times.end(), {}, &BatchTime::seconds);  // [0] warms up
  return {times[2].seconds / static_cast<double>(batch.size), times[2].sm_hz};
}

void time_plans(Backend& backend, const Problem& p, double limit, double sample_seconds) {
  const ProblemData data(backend, p, Fill::uniform, 1, ProblemData::set_count(p, backend.device()),
                         Reference::rows);
  const auto show = [&](const RegisteredKernel& kernel, std::size_t plan, double predicted,
                        const auto& prepare) {
    std::vector<Launch> launches;
    for (const Operands& set : data.sets()) launches.push_back(prepare(set));
    const BatchTime time = measured(backend, launches, sample_seconds);
    std::printf("%s %s %s %s %zu %.3f %.3f %.0f\n", name_of(Shape{p.m, p.n, p.k}).c_str(),
                std::string(traits_of(p.precision).name).c_str(),
                std::string(name_of(p.layout)).c_str(), kernel.label().c_str(), plan,
                predicted * 1e6, time.seconds * 1e6, time.sm_hz.value_or(0) / 1e6);
    std::fflush(stdout);
  };
  const auto has = [](const auto& list, auto value) { return std::ranges::count(list, value) > 0; };
  for (const RegisteredKernel& kernel : registry()) {
    const bool library = kernel.name == "cuBLASLt",
               ours = kernel.estimate && !(kernel.variant && kernel.candidates);
    if (!(library || ours) || kernel.name == "Best" || !has(kernel.precisions, p.precision) ||
        !has(kernel.layouts, p.layout) ||
        (kernel.unsupported && kernel.unsupported(p, backend.device())))
      continue;
    std::vector<Candidate> plans;
    if (kernel.candidates)
      plans = kernel.candidates(p, backend.device());
    else
      plans.push_back({ours ? kernel.estimate(p, backend.device()) : 0, {}, [&](const Operands& o) {
                         return kernel.prepare(p, backend.device(), o);
                       }});
    const double least = std::ranges::min(plans, {}, &Candidate::seconds).seconds;
    for (std::size_t i = 0; i < plans.size(); ++i)
      if (plans[i].seconds <= limit * least) show(kernel, i, plans[i].seconds, plans[i].prepare);
  }
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
