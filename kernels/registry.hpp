// Every kernel of the suite, by rung. A kernel's file registers itself, so that adding a kernel is
// adding one file.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/gemm.hpp"

namespace gemm {

// What a user named at run time.
struct UserFile {
  std::string name, hash;  // without its folder
};

struct RegisteredKernel : Kernel {
  // The folder of kernels/ that has its file: cpu, simt, tensor, library; or user, or peer.
  std::string family;
  std::string stem;  // the name of its file without the ending
  Device::Kind runs_on = Device::Kind::gpu;

  // "Tiled/tile:16"
  std::string label() const;
  bool is_library() const { return family == "library"; }

  // Of a user's kernel only (kernels/user/user_kernel.hpp).
  std::optional<UserFile> file = {};
  std::shared_ptr<const std::string> owned_name = {};  // behind `name`
  std::string python = {};  // the absolute path of its file, where that is Python
  bool is_users() const { return file.has_value(); }
};

// Ordered by rung, then by the order of registration within a file. Labels are unique.
const std::vector<RegisteredKernel>& registry();

// Whether some of the kernel's variants are points of a tuning space.
bool is_tunable(std::string_view name);

// At its place by rung. Throws std::logic_error if a kernel with this label is there.
void add_to_registry(RegisteredKernel kernel);

// A namespace-scope object of this type in a kernel's file puts the kernel into the registry.
// Libraries exist for both kinds of device and say which they run on.
struct Registration {
  explicit Registration(Kernel kernel, std::source_location file = std::source_location::current());
  Registration(Kernel kernel, Device::Kind runs_on,
               std::source_location file = std::source_location::current());
};

// The same for a tunable kernel, given all points of its space, the one to take by default first:
// each becomes a variant, and beside them stands the kernel without parameters, which takes the
// point that tools/tune found to be the fastest for the most similar problem on the most similar
// device (kernels/tuned.inc), or the first that supports the problem.
struct TunableRegistration {
  explicit TunableRegistration(std::vector<Kernel> points,
                               std::source_location file = std::source_location::current());
};

// What was found to be the fastest, where.
struct TunedPoint {
  std::string_view kernel;
  Precision precision;
  int compute_capability;
  std::array<std::int64_t, 3> shape;  // m, n, k
  std::string_view parameters;        // "BM:128/BN:128/BK:8/NR:16"
};

// The table.
std::span<const TunedPoint> tuned_points();

// Of `points`, which all bear one name, the one for this problem; null if none supports it.
const Kernel* tuned(const std::vector<Kernel>& points, std::span<const TunedPoint> table,
                    const Problem& p, const Device& device);

}  // namespace gemm
