// Picks the fastest of our kernels' candidates for a problem, on CUDA cores or tensor cores, by
// their own models of their time: waves of tiles, measured rates, bytes. There is no table of
// sizes. The record names the GPU kernel that ran.
//
// pick:tried times some of the best by the models and runs the fastest.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/parts/trial.hpp"
#include "kernels/registry.hpp"

namespace gemm::simt {
namespace {

bool runs(const RegisteredKernel& kernel, const Problem& p, const Device& device) {
  const auto has = [](const auto& list, auto value) {
    return std::ranges::find(list, value) != list.end();
  };
  const bool repeats = kernel.variant && kernel.candidates;  // those of the kernel itself
  return device.sm_count > 0 && kernel.estimate && !repeats && kernel.name != "Best" &&
         has(kernel.precisions, p.precision) && has(kernel.layouts, p.layout) &&
         !(kernel.unsupported && kernel.unsupported(p, device));
}

// The least estimate first: the best of each kernel that runs, and the best of their others, up to
// `most` in all. Of the points of a tuning space with the same estimate the one that tools/tune
// found, or the first.
std::vector<Candidate> candidates(const Problem& p, const Device& device, std::size_t most = 1) {
  std::vector<std::pair<std::string_view, std::vector<Candidate>>> kernels;
  for (const RegisteredKernel& kernel : registry()) {
    if (!runs(kernel, p, device)) continue;
    if (kernels.empty() || kernels.back().first != kernel.name)
      kernels.emplace_back(kernel.name, std::vector<Candidate>{});
    std::vector<Candidate>& all = kernels.back().second;
    if (kernel.candidates) {
      all = kernel.candidates(p, device);
    } else if (const double estimate = kernel.estimate(p, device);
               std::ranges::find(all, estimate, &Candidate::seconds) == all.end()) {
      all.push_back({estimate, kernel.traffic(p, device), [&kernel, p, device](const Operands& o) {
                       return kernel.prepare(p, device, o);
                     }});
    }
  }
  std::vector<Candidate> firsts, others;
  for (auto& [name, all] : kernels) {
    std::ranges::stable_sort(all, {}, &Candidate::seconds);
    firsts.push_back(all.front());
    others.insert(others.end(), all.begin() + 1, all.end());
  }
  std::ranges::stable_sort(others, {}, &Candidate::seconds);
  const std::size_t left = most > firsts.size() ? most - firsts.size() : 0;
  others.resize(std::min(others.size(), left));
  firsts.insert(firsts.end(), others.begin(), others.end());
  std::ranges::stable_sort(firsts, {}, &Candidate::seconds);
  return firsts;
}

// What trials found: indices of the candidates. Shared by the operand sets of all cases.
class Trials {
 public:
  static constexpr std::size_t kMost = 16;

  std::optional<std::size_t> index(const Problem& p, const Device& device) const {
    const auto one = std::ranges::find(found_, Key(p, device.name), &Found::first);
    return one == found_.end() ? std::nullopt : std::optional(one->second);
  }

  Launch prepare(const Problem& p, const Device& device, const Operands& o) {
    const std::vector<Candidate> all = candidates(p, device, kMost);
    if (const auto tried = index(p, device)) return all[*tried].prepare(o);
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
    const std::size_t fastest = Trial().fastest(works);
    found_.emplace_back(Key(p, device.name), fastest);
    return launches[fastest].front();
  }

 private:
  using Key = std::tuple<Problem, std::string>;
  using Found = std::pair<Key, std::size_t>;

  std::vector<Found> found_;
};

Kernel best(bool tried) {
  Kernel kernel{
      .name = "Best",
      .idea = "Picks the kernel whose model predicts the shortest time.",
      .source = "NOTES.md: waves, measured rates of tiles, bytes",
      .rung = 99,
      .precisions = {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16,
                     Precision::e4m3, Precision::e4m3fast, Precision::e5m2, Precision::e5m2fast,
                     Precision::f64, Precision::s8},
      .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
      .unsupported = [](const Problem& p, const Device& device) -> std::optional<std::string> {
        if (!candidates(p, device).empty()) return std::nullopt;
        return "requires a precision and layout of a kernel with a time model on this device";
      },
      .candidates = [](const Problem& p, const Device& device) { return candidates(p, device); },
  };
  if (!tried) return kernel;
  kernel.parameters = {{"pick", "tried"}};
  kernel.variant = true;
  kernel.candidates = nullptr;
  const auto trials = std::make_shared<Trials>();
  // Before a trial that of the least estimate.
  kernel.traffic = [trials](const Problem& p, const Device& device) {
    return candidates(p, device, Trials::kMost)[trials->index(p, device).value_or(0)].traffic;
  };
  kernel.prepare = [trials](const Problem& p, const Device& device, const Operands& o) {
    return trials->prepare(p, device, o);
  };
  return kernel;
}

const Registration picked(best(false));
const Registration tried(best(true));

}  // namespace
}  // namespace gemm::simt
