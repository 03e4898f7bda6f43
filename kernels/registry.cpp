#include "kernels/registry.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "kernels/epilogue.hpp"
#include "kernels/parts/cost.hpp"

namespace gemm {
namespace {

// Function-local: initialised before the first registration of any file.
std::vector<RegisteredKernel>& kernels() {
  static std::vector<RegisteredKernel> all;
  return all;
}

std::string joined(const std::vector<Parameter>& parameters) {
  std::string text;
  for (const Parameter& parameter : parameters)
    text += (text.empty() ? "" : "/") + parameter.name + ":" + parameter.value;
  return text;
}

// Appends what is missing, and sorts.
template <typename T>
void add_missing(std::vector<T>& all, const std::vector<T>& some) {
  for (const T one : some)
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  std::ranges::sort(all);
}

// "simt" for .../kernels/ladder/fp32/10_naive.cu and .../kernels/best/best.cpp, "tensor" for a
// folder of that name; elsewhere its parent folder.
std::string family_of(const std::filesystem::path& file) {
  const std::string folder = file.parent_path().filename().string();
  return folder == "fp32" || folder == "best" ? "simt" : folder;
}

// "naive" for 11_naive.cu: rungs are numbered.
std::string stem_of(const std::filesystem::path& file) {
  std::string stem = file.stem().string();
  if (const std::size_t end = stem.find_first_not_of("0123456789"); end > 0 && stem[end] == '_')
    stem.erase(0, end + 1);
  return stem;
}

// A kernel that chooses runs the candidate of which the model predicts the shortest time.
void complete(Kernel& kernel) {
  const auto best = [candidates = kernel.candidates](const Problem& p, const Device& device) {
    return std::ranges::min(candidates(p, device), {},
                            [&](const Candidate& one) { return seconds(one.work, device); });
  };
  kernel.traffic = [best](const Problem& p, const Device& d) { return best(p, d).work.traffic; };
  kernel.work = [best](const Problem& p, const Device& d) { return best(p, d).work; };
  kernel.chosen = [best](const Problem& p, const Device& d) {
    return std::optional(PlanChoice{best(p, d).plan, "model"});
  };
  kernel.prepare = [best](const Problem& p, const Device& d, const Operands& o) {
    return best(p, d).prepare(o);
  };
}

void add(Kernel kernel, const std::filesystem::path& file, std::optional<Device::Kind> runs_on) {
  if (kernel.candidates) complete(kernel);
  RegisteredKernel entry{std::move(kernel)};
  entry.family = family_of(file);
  entry.stem = stem_of(file);
  entry.runs_on = runs_on.value_or(entry.family == "cpu" ? Device::Kind::cpu : Device::Kind::gpu);
  add_to_registry(std::move(entry));
}

}  // namespace

std::string RegisteredKernel::label() const {
  return name + (parameters.empty() ? "" : "/") + joined(parameters);
}

bool is_tunable(std::string_view name) {
  return std::ranges::any_of(registry(), [&](const RegisteredKernel& kernel) {
    return kernel.name == name && kernel.variant;
  });
}

const Kernel* first_that_runs(const std::vector<Kernel>& points, const Problem& p,
                              const Device& device) {
  const auto found = std::ranges::find_if(points, [&](const Kernel& point) {
    return std::ranges::find(point.precisions, p.precision) != point.precisions.end() &&
           std::ranges::find(point.layouts, p.layout) != point.layouts.end() &&
           !(point.unsupported && point.unsupported(p, device));
  });
  return found == points.end() ? nullptr : &*found;
}

const std::vector<RegisteredKernel>& registry() { return kernels(); }

std::vector<Parameter> numbers(std::initializer_list<std::pair<const char*, int>> parameters) {
  std::vector<Parameter> all;
  for (const auto& [name, value] : parameters) all.push_back({name, std::to_string(value)});
  return all;
}

void add_to_registry(RegisteredKernel kernel) {
  std::vector<RegisteredKernel>& all = kernels();
  kernel.unsupported = [batches = kernel.batches, activations = kernel.activations,
                        other = std::move(kernel.unsupported)](
                           const Problem& p, const Device& device) -> std::optional<std::string> {
    if (batches == Batches::none && p.batch > 1)
      return p.tokens == Tokens::equal ? "takes no batch" : "takes no groups";
    if (batches == Batches::only && p.batch == 1) return "takes only a batch";
    if (std::ranges::find(activations, p.activation) == activations.end())
      return p.activation == Activation::none
                 ? "takes only a product with an epilogue"
                 : "does not support the epilogue " + std::string(name_of(p.activation));
    if (const auto why = epilogue_unsupported(p)) return why;
    return other ? other(p, device) : std::nullopt;
  };
  if (std::ranges::any_of(all, [&](const auto& other) { return other.label() == kernel.label(); }))
    throw std::logic_error("duplicate kernel label: " + kernel.label());
  const auto place = std::ranges::upper_bound(all, kernel.rung, {}, &RegisteredKernel::rung);
  all.insert(place, std::move(kernel));
}

Registration::Registration(Kernel kernel, std::optional<Device::Kind> runs_on,
                           std::source_location file) {
  add(std::move(kernel), file.file_name(), runs_on);
}

TunableRegistration::TunableRegistration(std::vector<Kernel> points, std::source_location file) {
  Kernel chosen = points.at(0);
  chosen.parameters.clear();
  for (Kernel& point : points) {
    add_missing(chosen.precisions, point.precisions);
    add_missing(chosen.layouts, point.layouts);
    point.variant = true;
  }
  const auto all = std::make_shared<const std::vector<Kernel>>(std::move(points));
  const auto pick = [all](const Problem& p, const Device& device) {
    return first_that_runs(*all, p, device);
  };
  chosen.unsupported = [all, pick](const Problem& p,
                                   const Device& device) -> std::optional<std::string> {
    if (pick(p, device) != nullptr) return std::nullopt;
    for (const Kernel& point : *all)
      if (point.unsupported)
        if (auto why = point.unsupported(p, device)) return why;
    return "no point of its tuning space supports this precision and layout";
  };
  if (chosen.traffic)
    chosen.traffic = [pick](const Problem& p, const Device& device) {
      return pick(p, device)->traffic(p, device);
    };
  if (chosen.work)
    chosen.work = [pick](const Problem& p, const Device& device) {
      return pick(p, device)->work(p, device);
    };
  chosen.prepare = [pick](const Problem& p, const Device& device, const Operands& o) {
    return pick(p, device)->prepare(p, device, o);
  };
  add(std::move(chosen), file.file_name(), std::nullopt);
  for (const Kernel& point : *all) add(point, file.file_name(), std::nullopt);
}

}  // namespace gemm
