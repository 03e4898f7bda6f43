#include "kernels/registry.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace gemm {
namespace {

// Function-local, so that it exists whichever file's registration runs first.
std::vector<RegisteredKernel>& kernels() {
  static std::vector<RegisteredKernel> all;
  return all;
}

void add(Kernel kernel, const std::filesystem::path& file, std::optional<Device::Kind> runs_on) {
  RegisteredKernel entry{std::move(kernel)};
  entry.family = file.parent_path().filename().string();
  entry.stem = file.stem().string();
  entry.runs_on = runs_on.value_or(entry.family == "cpu" ? Device::Kind::cpu : Device::Kind::gpu);
  std::vector<RegisteredKernel>& all = kernels();
  if (std::ranges::any_of(all, [&](const auto& other) { return other.label() == entry.label(); }))
    throw std::logic_error("two kernels are called " + entry.label());
  const auto place = std::ranges::upper_bound(all, entry.rung, {}, &RegisteredKernel::rung);
  all.insert(place, std::move(entry));
}

}  // namespace

std::string RegisteredKernel::label() const {
  std::string label{name};
  for (const Parameter& parameter : parameters)
    label += "/" + parameter.name + ":" + parameter.value;
  return label;
}

const std::vector<RegisteredKernel>& registry() { return kernels(); }

Registration::Registration(Kernel kernel, std::source_location file) {
  add(std::move(kernel), file.file_name(), std::nullopt);
}

Registration::Registration(Kernel kernel, Device::Kind runs_on, std::source_location file) {
  add(std::move(kernel), file.file_name(), runs_on);
}

}  // namespace gemm
