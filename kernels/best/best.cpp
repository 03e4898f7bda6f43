// The fastest plan of all our kernels for a problem: the model (parts/cost.hpp) makes a shortlist,
// a trial chooses from it, and the choice is kept on disk (plans.hpp). There is no table of sizes.
// The record names the plan and the GPU kernel that ran.
//
// pick:model runs the plan of the shortest prediction, without a trial. pick:nearest runs what a
// trial chose for the nearest m with the same n and k: where m changes from call to call, as where
// a language model decodes, there is no time for trials.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/epilogue.hpp"
#include "kernels/parts/cost.hpp"
#include "kernels/parts/trial.hpp"
#include "kernels/plans.hpp"
#include "kernels/registry.hpp"

namespace gemm::best {
namespace {

constexpr std::size_t kShortlist = 24;

bool runs(const RegisteredKernel& kernel, const Problem& p, const Device& device) {
  const auto has = [](const auto& list, auto value) {
    return std::ranges::find(list, value) != list.end();
  };
  const bool repeats = kernel.variant && kernel.candidates;  // those of the kernel itself
  return device.sm_count > 0 && kernel.work && !repeats && kernel.name != "Best" &&
         has(kernel.precisions, p.precision) && has(kernel.layouts, p.layout) &&
         !(kernel.unsupported && kernel.unsupported(p, device));
}

// All plans, the shortest prediction first. A tunable kernel without parameters repeats a point.
std::vector<Candidate> plans_of(const Problem& p, const Device& device) {
  std::vector<std::pair<double, Candidate>> all;
  for (const RegisteredKernel& kernel : registry()) {
    const bool repeats_point =
        kernel.parameters.empty() && !kernel.candidates && is_tunable(kernel.name);
    if (!runs(kernel, p, device) || repeats_point) continue;
    for (Candidate& plan : gemm::plans_of(kernel, p, device)) {
      plan.plan = kernel.label() + (plan.plan.empty() ? "" : "/") + plan.plan;
      all.emplace_back(seconds(plan.work, device), std::move(plan));
    }
  }
  std::ranges::stable_sort(all, {}, [](const auto& one) { return one.first; });
  std::vector<Candidate> plans;
  for (auto& [time, plan] : all) plans.push_back(std::move(plan));
  return plans;
}

// The first of them, and the best plan of each kernel that has none among these.
std::vector<Candidate> shortlist(std::vector<Candidate> plans, std::size_t most) {
  const auto kernel_of = [](const Candidate& one) {
    return one.plan.substr(0, one.plan.find('/'));
  };
  std::vector<Candidate> all;
  for (Candidate& plan : plans) {
    const bool first = std::ranges::find(all, kernel_of(plan), kernel_of) == all.end();
    if (all.size() < most || first) all.push_back(std::move(plan));
  }
  return all;
}

// "WgmmaStreamK/tile:128x256/cluster:2", without how tiles are cut: what most decides how much
// power a plan draws.
std::string kind_of(const std::string& plan) { return plan.substr(0, plan.find("/whole:")); }

// Times the shortlist. Throws std::runtime_error if none of it runs.
std::string fastest_of(const std::vector<Candidate>& all, const Problem& p, const Device& device,
                       const Operands& o) {
  const OperandSets sets(p, device, o);
  std::vector<std::vector<Launch>> launches(all.size());
  std::vector<Trial::Work> works;
  std::vector<std::string> kinds;
  for (std::size_t i = 0; i < all.size(); ++i) {
    kinds.push_back(kind_of(all[i].plan));
    try {
      for (std::size_t set = 0; set < sets.size(); ++set)
        launches[i].push_back(all[i].prepare(sets.of_launch(set)));
    } catch (const std::exception&) {  // no memory for its workspaces: it runs on fewer sets
      cudaGetLastError();
    }
    works.emplace_back([&mine = launches[i], launch = std::size_t{0}](Stream stream) mutable {
      if (mine.empty()) return false;
      mine[launch++ % mine.size()](stream);
      return cudaGetLastError() == cudaSuccess;
    });
  }
  return all[Trial().fastest(works, kinds)].plan;
}

int driver_version() {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  return driver;
}

std::string key_of(const Problem& p, const Device& device) {
  return plan_key(p, device, driver_version());
}

// A plan, and its PlanChoice::source.
struct Chosen {
  Candidate plan;
  const char* source;
};

Chosen predicted(const Problem& p, const Device& device) {
  return {plans_of(p, device).front(), "model"};
}

// So many parts of the names of two plans agree from their beginning: kernel, tile, then how tiles
// are cut, which depends on m.
std::ptrdiff_t agreement(const std::string& one, const std::string& other) {
  const auto differ = std::ranges::mismatch(one, other);
  if (differ.in1 == one.end() && differ.in2 == other.end()) return std::ranges::count(one, '/') + 1;
  return std::count(one.begin(), differ.in1, '/');
}

// The plan most like that of the nearest m, of several the one of the shortest prediction. That of
// the shortest prediction of all where no m was tried, or where this m has no plan of that kernel.
Chosen nearest(const Problem& p, const Device& device) {
  const std::vector<Candidate> all = plans_of(p, device);
  const auto kept = plan_of_nearest_m(p, device, driver_version());
  const auto agrees = [&](const Candidate& one) { return kept ? agreement(*kept, one.plan) : 0; };
  const Candidate& most = *std::ranges::max_element(all, {}, agrees);
  if (agrees(most) == 0) return {most, "model"};
  return {most, kept_plan(key_of(p, device)) == most.plan ? "cached" : "nearest"};
}

// What was chosen, for the operand sets of all cases.
class Choices {
 public:
  // Nothing before the problem was prepared.
  std::optional<PlanChoice> of(const Problem& p, const Device& device) const {
    const auto found = chosen_.find(key_of(p, device));
    if (found == chosen_.end()) return std::nullopt;
    return PlanChoice{found->second.plan.plan, found->second.source};
  }

  // The plan that was chosen, or that of the shortest prediction.
  Candidate plan(const Problem& p, const Device& device) const {
    const auto found = chosen_.find(key_of(p, device));
    return found == chosen_.end() ? plans_of(p, device).front() : found->second.plan;
  }

  Launch prepare(const Problem& p, const Device& device, const Operands& o) {
    const std::string key = key_of(p, device);
    auto found = chosen_.find(key);
    if (found == chosen_.end()) found = chosen_.emplace(key, choose(key, p, device, o)).first;
    return found->second.plan.prepare(o);
  }

 private:
  static Chosen choose(const std::string& key, const Problem& p, const Device& device,
                       const Operands& o) {
    const std::vector<Candidate> all = plans_of(p, device);
    if (const auto kept = kept_plan(key))
      if (const auto one = std::ranges::find(all, *kept, &Candidate::plan); one != all.end())
        return {*one, "cached"};
    const std::string fastest = fastest_of(shortlist(all, kShortlist), p, device, o);
    keep_plan(key, fastest);
    return {*std::ranges::find(all, fastest, &Candidate::plan), "tried"};
  }

  std::map<std::string, Chosen> chosen_;
};

Kernel best() {
  Kernel kernel{
      .name = "Best",
      .idea = "Times the plans that a model puts first, and runs the fastest.",
      .source = "successive halving: Jamieson and Talwalkar (2016)",
      .rung = 99,
      .precisions = {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16,
                     Precision::e4m3, Precision::e4m3fast, Precision::e5m2, Precision::e5m2fast,
                     Precision::f64, Precision::s8, Precision::e4m3block},
      .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
      .batches = Batches::also,
      .activations = {kActivations.begin(), kActivations.end()},
      .unsupported = [](const Problem& p, const Device& device) -> std::optional<std::string> {
        if (std::ranges::any_of(registry(),
                                [&](const auto& kernel) { return runs(kernel, p, device); }))
          return std::nullopt;
        return "requires a precision and layout of a kernel with a model of its work";
      },
  };
  return kernel;
}

Kernel tried() {
  Kernel kernel = best();
  const auto choices = std::make_shared<Choices>();
  kernel.traffic = [choices](const Problem& p, const Device& device) {
    return choices->plan(p, device).work.traffic;
  };
  kernel.chosen = [choices](const Problem& p, const Device& device) {
    return choices->of(p, device);
  };
  kernel.prepare = [choices](const Problem& p, const Device& device, const Operands& o) {
    return choices->prepare(p, device, o);
  };
  return kernel;
}

// Run on request.
Kernel untried(const char* pick, Chosen (*choose)(const Problem&, const Device&)) {
  Kernel kernel = best();
  kernel.parameters = {{"pick", pick}};
  kernel.variant = true;
  kernel.traffic = [=](const Problem& p, const Device& device) {
    return choose(p, device).plan.work.traffic;
  };
  kernel.chosen = [=](const Problem& p, const Device& device) {
    const Chosen found = choose(p, device);
    return PlanChoice{found.plan.plan, found.source};
  };
  kernel.prepare = [=](const Problem& p, const Device& device, const Operands& o) {
    return choose(p, device).plan.prepare(o);
  };
  return kernel;
}

const Registration registrations[] = {Registration(tried()),
                                      Registration(untried("model", predicted)),
                                      Registration(untried("nearest", nearest))};

}  // namespace
}  // namespace gemm::best
