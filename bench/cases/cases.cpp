#include "bench/cases/cases.hpp"

#include <algorithm>
#include <iterator>

#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

template <typename T>
bool has(const std::vector<T>& all, const T& one) {
  return std::ranges::find(all, one) != all.end();
}

}  // namespace

std::string Case::kernel_name() const {
  const std::string layout =
      problem.layout == Layout::nn ? "" : "/layout:" + std::string(name_of(problem.layout));
  const std::string epilogue = problem.activation == Activation::none
                                   ? ""
                                   : "/epilogue:" + std::string(name_of(problem.activation));
  return kernel->label() + layout + epilogue;
}

std::string Case::size() const { return name_of(shape_of(problem), true); }

std::string Case::name() const {
  return kernel_name() + "/" + std::string(traits_of(problem.precision).name) + "/" +
         name_of(shape_of(problem));
}

std::vector<Case> make_cases(const std::vector<Shape>& shapes,
                             const std::vector<Precision>& precisions, Device::Kind kind,
                             bool variants, const std::vector<Layout>& layouts,
                             const std::vector<Activation>& activations) {
  std::vector<const RegisteredKernel*> kernels;
  for (const RegisteredKernel& kernel : registry())
    if (kernel.runs_on == kind && (variants || !kernel.variant)) kernels.push_back(&kernel);
  std::ranges::stable_partition(kernels, &RegisteredKernel::is_library);

  std::vector<Case> cases;
  for (const Shape& shape : shapes)
    for (const Layout layout : kLayouts) {
      if (!layouts.empty() && !has(layouts, layout)) continue;
      for (const PrecisionTraits& traits : kPrecisions) {
        if (!precisions.empty() && !has(precisions, traits.precision)) continue;
        for (const Activation activation : kActivations) {
          if (!activations.empty() && !has(activations, activation)) continue;
          for (const RegisteredKernel* kernel : kernels) {
            Problem p = problem_of(shape, traits.precision, layout);
            p.activation = activation;
            if (has(kernel->precisions, p.precision) && has(kernel->layouts, layout) &&
                (p.batch > 1 || kernel->batches != Batches::only) &&
                (activation != Activation::none || has(kernel->activations, activation)))
              cases.push_back({kernel, p});
          }
        }
      }
    }
  return cases;
}

std::vector<Precision> usual_precisions(Device::Kind kind) {
  constexpr Precision kDoubles[] = {Precision::f16, Precision::e4m3fast, Precision::e5m2,
                                    Precision::e5m2fast, Precision::e4m3block};
  std::vector<Precision> usual;
  for (const PrecisionTraits& traits : kPrecisions)
    if (std::ranges::find(kDoubles, traits.precision) == std::end(kDoubles) &&
        std::ranges::any_of(registry(), [&](const RegisteredKernel& kernel) {
          return kernel.runs_on == kind && !kernel.is_library() &&
                 has(kernel.precisions, traits.precision);
        }))
      usual.push_back(traits.precision);
  return usual;
}

bool is_meant(const std::string& name, const RegisteredKernel& kernel) {
  return name == "library" ? kernel.is_library() : name == kernel.name || name == kernel.label();
}

std::vector<Case> baselines_of(const Case& which, const std::string& versus, bool variants) {
  const Problem& p = which.problem;
  const auto all = make_cases({shape_of(p)}, {p.precision}, which.kernel->runs_on, variants,
                              {p.layout}, {p.activation});
  std::vector<Case> baselines;
  for (const std::string& name : parts_of(versus))
    for (const Case& one : all)
      if (is_meant(name, *one.kernel) && !has(baselines, one)) baselines.push_back(one);
  return baselines;
}

}  // namespace gemm::bench
