#include "bench/cases.hpp"

#include <algorithm>

namespace gemm::bench {
namespace {

constexpr char kEndToEnd[] = "EndToEnd";

}  // namespace

std::string Case::name() const {
  const std::string way =
      transfer ? std::string(kEndToEnd) + "/" + std::string(name_of(*transfer)) + "/" : "";
  return way + kernel->label() + "/" + std::string(traits_of(problem.precision).name) + "/" +
         name_of(Shape{problem.m, problem.n, problem.k});
}

std::vector<Case> make_cases(const std::vector<Shape>& shapes,
                             const std::vector<Precision>& precisions, Device::Kind kind,
                             bool variants) {
  std::vector<const RegisteredKernel*> kernels;
  for (const RegisteredKernel& kernel : registry())
    if (kernel.runs_on == kind && (variants || !kernel.variant)) kernels.push_back(&kernel);
  std::ranges::stable_partition(kernels, &RegisteredKernel::is_library);

  std::vector<Case> cases;
  for (const Shape& shape : shapes)
    for (const PrecisionTraits& traits : kPrecisions) {
      if (!precisions.empty() &&
          std::ranges::find(precisions, traits.precision) == precisions.end())
        continue;
      for (const RegisteredKernel* kernel : kernels)
        if (std::ranges::find(kernel->precisions, traits.precision) != kernel->precisions.end())
          cases.push_back({kernel, {shape.m, shape.n, shape.k, traits.precision}});
    }
  return cases;
}

std::vector<Case> end_to_end_cases(const std::vector<Case>& cases) {
  std::vector<Case> all;
  for (const Case& one : cases)
    if (!one.kernel->rearranges)
      for (const Transfer transfer : kTransfers) all.push_back({one.kernel, one.problem, transfer});
  return all;
}

bool asks_for_end_to_end(const std::string& filter) {
  return !filter.starts_with('-') && filter.find(kEndToEnd) != std::string::npos;
}

bool is_versus(const std::string& text, const RegisteredKernel& kernel) {
  return text == "library" ? kernel.is_library() : text == kernel.name || text == kernel.label();
}

}  // namespace gemm::bench
