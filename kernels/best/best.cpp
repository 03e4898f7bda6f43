// The fastest plan of all our kernels for a problem: the model (parts/cost.hpp) makes a shortlist,
// a trial of up to 0.4 s chooses from it, and the choice is kept on disk (plans.hpp). There is no
// table of sizes. The record names the plan and the GPU kernel that ran.
//
// pick:model runs the plan of the shortest prediction, without a trial.
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
    std::vector<Candidate> plans;
    if (kernel.candidates) {
      plans = kernel.candidates(p, device);
    } else {
      const auto prepare = [&kernel, p, device](const Operands& o) {
        return kernel.prepare(p, device, o);
      };
      plans.push_back({"", kernel.work(p, device), prepare});
    }
    for (Candidate& plan : plans) {
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

// Times the shortlist. Throws std::runtime_error if none of it runs.
std::string fastest_of(const std::vector<Candidate>& all, const Problem& p, const Device& device,
                       const Operands& o) {
  const OperandSets sets(p, device, o);
  std::vector<std::vector<Launch>> launches(all.size());
  std::vector<Trial::Work> works;
  for (std::size_t i = 0; i < all.size(); ++i) {
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
  return all[Trial().fastest(works)].plan;
}

std::string key_of(const Problem& p, const Device& device) {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  return plan_key(p, device, driver);
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
  struct Chosen {
    Candidate plan;
    const char* source;  // as PlanChoice::source
  };

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

Kernel best(bool tried) {
  Kernel kernel{
      .name = "Best",
      .idea = "Times the plans that a model puts first, and runs the fastest.",
      .source = "successive halving: Jamieson and Talwalkar (2016)",
      .rung = 99,
      .precisions = {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16,
                     Precision::e4m3, Precision::e4m3fast, Precision::e5m2, Precision::e5m2fast,
                     Precision::f64, Precision::s8},
      .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
      .unsupported = [](const Problem& p, const Device& device) -> std::optional<std::string> {
        if (std::ranges::any_of(registry(),
                                [&](const auto& kernel) { return runs(kernel, p, device); }))
          return std::nullopt;
        return "requires a precision and layout of a kernel with a model of its work";
      },
  };
  if (!tried) {
    kernel.parameters = {{"pick", "model"}};
    kernel.variant = true;
    kernel.candidates = [](const Problem& p, const Device& device) {
      std::vector<Candidate> all = plans_of(p, device);
      all.resize(1);
      return all;
    };
    return kernel;
  }
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

const Registration tried(best(true));
const Registration predicted(best(false));

}  // namespace
}  // namespace gemm::best
