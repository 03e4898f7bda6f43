// The registry of all kernels, ordered by rung. A kernel's file registers itself: adding a kernel
// is adding one file.
#pragma once

#include <initializer_list>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/gemm.hpp"

namespace gemm {

// A file that the user named at run time.
struct UserFile {
  std::string name, hash;  // the name without its folder
};

struct RegisteredKernel : Kernel {
  // The folder of kernels/ with its file: cpu, simt, tensor, library; or user, or "peer".
  std::string family;
  std::string stem;  // file name without the extension
  Device::Kind runs_on = Device::Kind::gpu;

  // "Tiled/tile:16"
  std::string label() const;
  bool is_library() const { return family == "library"; }

  // Only for a user's kernel (kernels/user/user_kernel.hpp).
  std::optional<UserFile> file = {};
  std::string python = {};  // absolute path of its file, if that is Python
  bool is_users() const { return file.has_value(); }
};

// Ordered by rung, then by registration within a file. Labels are unique.
const std::vector<RegisteredKernel>& registry();

// Whether the kernel has variants that are points of a tuning space.
bool is_tunable(std::string_view name);

// Inserts by rung. Throws std::logic_error if the label is taken.
void add_to_registry(RegisteredKernel kernel);

// Parameters whose values are numbers.
std::vector<Parameter> numbers(std::initializer_list<std::pair<const char*, int>> parameters);

// A namespace-scope object of this type in a kernel's file registers the kernel. Libraries exist
// for both kinds of device and say which one they run on.
struct Registration {
  explicit Registration(Kernel kernel, std::optional<Device::Kind> runs_on = std::nullopt,
                        std::source_location file = std::source_location::current());
};

// Registers a tunable kernel, given all points of its tuning space, the default first. Each point
// becomes a variant. The kernel without parameters runs the first point that supports the problem.
struct TunableRegistration {
  explicit TunableRegistration(std::vector<Kernel> points,
                               std::source_location file = std::source_location::current());
};

// The first of `points` that supports this problem; null if none does.
const Kernel* first_that_runs(const std::vector<Kernel>& points, const Problem& p,
                              const Device& device);

}  // namespace gemm
