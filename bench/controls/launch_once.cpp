// Launches a kernel once, on matrices that each end where their allocation ends, so that
// compute-sanitizer sees every access beyond them. For tools/sanitize and the tests of the negative
// controls; times nothing.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cases/cases.hpp"
#include "bench/controls/negative_controls.hpp"
#include "bench/device/backend.hpp"
#include "bench/verification/scales.hpp"

namespace gemm::bench {
namespace {

constexpr const char* kUsage =
    "launch_once kernels            the names of the suite's own GPU kernels\n"
    "launch_once kernel NAME...     runs all variants and layouts of each at ragged sizes; 1 if "
    "one "
    "is wrong\n"
    "launch_once control NAME       runs a negative control; 0 whatever it does\n"
    "launch_once twin NAME          runs its right twin; 1 if that is wrong\n";

// Odd sizes; multiples of 4, for vectors, that no tile divides; multiples of every tile and few
// columns or rows, for kernels that take nothing else; batches, also with scales of blocks.
constexpr Shape kShapes[] = {{127, 129, 65}, {33, 65, 17},  {132, 136, 68},    {128, 256, 64},
                             {130, 5, 257},  {5, 130, 257}, {130, 136, 80, 3}, {128, 129, 72, 3}};

// `poisoned`: elements of C that stay unwritten are NaN, or -1, and so wrong. Otherwise initcheck
// finds them, but it also complains of those that TMA stored (CUDA 13.0).
std::optional<std::string> launch_once(Backend& backend, const NegativeControl::Prepare& prepare,
                                       const Problem& p, bool poisoned) {
  const PrecisionTraits& traits = traits_of(p.precision);
  const Buffer a = backend.allocate(elements_of_a(p) * traits.input_bytes),
               b = backend.allocate(elements_of_b(p) * traits.input_bytes),
               c = backend.allocate(elements_of_c(p) * traits.output_bytes);
  backend.fill(a.get(), traits.input, elements_of_a(p), Fill::uniform, 1);
  backend.fill(b.get(), traits.input, elements_of_b(p), Fill::uniform, 2);
  const Buffer reference =
      backend.allocate(2 * elements_of_c(p) * static_cast<std::int64_t>(sizeof(double)));
  auto* expected = reinterpret_cast<double*>(reference.get());
  double* const magnitude = expected + elements_of_c(p);
  Operands operands{a.get(), b.get(), c.get()};
  Buffer a_scales, b_scales, added;
  if (has_scales(p.precision)) {
    const auto scales = [&](Buffer& memory, std::int64_t count, std::uint64_t seed) {
      memory = backend.allocate(count * static_cast<std::int64_t>(sizeof(float)));
      const auto* const to = reinterpret_cast<const float*>(memory.get());
      backend.fill_scales(to, count, Fill::uniform, seed);
      return to;
    };
    operands.a_scales = scales(a_scales, scales_of_a(p), 3);
    operands.b_scales = scales(b_scales, scales_of_b(p), 4);
  }
  if (const std::int64_t count = elements_of_bias(p) + elements_of_residual(p); count > 0) {
    added = backend.allocate(count * traits.output_bytes);
    backend.fill(added.get(), traits.output, count, Fill::uniform, 5);
    (p.activation == Activation::residual ? operands.residual : operands.bias) = added.get();
  }
  backend.reference(p, operands, expected, magnitude);
  if (poisoned) backend.poison(c.get(), elements_of_c(p) * traits.output_bytes);

  backend.run(prepare(p, backend.device(), operands));
  // Reads all of C.
  return complaint(p, backend.judge(p, operands, expected, magnitude, bound_for(p)));
}

bool is_ours(const RegisteredKernel& kernel) {
  return kernel.runs_on == Device::Kind::gpu && !kernel.is_library();
}

int list_kernels() {
  std::set<std::string_view> seen;
  for (const RegisteredKernel& kernel : registry())
    if (is_ours(kernel) && seen.insert(kernel.name).second)
      std::printf("%.*s\n", static_cast<int>(kernel.name.size()), kernel.name.data());
  return 0;
}

void require_ours(std::string_view name) {
  if (std::ranges::none_of(registry(), [&](const RegisteredKernel& kernel) {
        return is_ours(kernel) && kernel.name == name;
      }))
    throw std::runtime_error("no GPU kernel of ours is called " + std::string(name));
}

// Prints each case before it runs, since the sanitizer may end the process.
int run_kernel(Backend& backend, std::string_view name) {
  int runs = 0, wrong = 0;
  for (const Shape& shape : kShapes)
    for (const Case& one : make_cases({shape}, {}, Device::Kind::gpu, true, {}, {})) {
      const RegisteredKernel& kernel = *one.kernel;
      if (!is_ours(kernel) || kernel.name != name) continue;
      if (kernel.unsupported && kernel.unsupported(one.problem, backend.device())) continue;
      std::printf("%s\n", one.name().c_str());
      std::fflush(stdout);
      ++runs;
      const auto text = launch_once(backend, kernel.prepare, one.problem, true);
      if (!text) continue;
      std::printf("%s\n", text->c_str());
      ++wrong;
    }
  if (runs == 0)
    std::printf("%.*s runs at none of the sizes here\n", static_cast<int>(name.size()),
                name.data());
  return wrong == 0 ? 0 : 1;
}

int run_control(Backend& backend, const NegativeControl& control) {
  try {
    const auto text = launch_once(backend, control.spoiled, control.problem, false);
    std::printf("%s\n", text ? text->c_str() : "right, this time");
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
  }
  return 0;
}

int run_twin(Backend& backend, const NegativeControl& control) {
  const auto text = launch_once(backend, control.twin, control.problem, false);
  if (text) std::printf("%s\n", text->c_str());
  return text ? 1 : 0;
}

int run(const std::vector<std::string>& arguments) {
  const std::string what = arguments.empty() ? "" : arguments[0];
  if (what == "kernels" && arguments.size() == 1) return list_kernels();
  const bool kernel = what == "kernel", control = what == "control", twin = what == "twin";
  if (!(kernel && arguments.size() > 1) && !((control || twin) && arguments.size() == 2)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  for (std::size_t i = 1; kernel && i < arguments.size(); ++i) require_ours(arguments[i]);
  std::string reason;
  const auto backend = make_cuda_backend(0, reason);
  if (!backend) throw std::runtime_error(reason);
  if (kernel) {
    int status = 0;
    for (std::size_t i = 1; i < arguments.size(); ++i)
      status = std::max(status, run_kernel(*backend, arguments[i]));
    return status;
  }
  for (const NegativeControl& one : negative_controls())
    if (one.name == arguments[1])
      return control ? run_control(*backend, one) : run_twin(*backend, one);
  throw std::runtime_error("no negative control is called " + arguments[1]);
}

}  // namespace
}  // namespace gemm::bench

int main(int argc, char** argv) {
  try {
    return gemm::bench::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "launch_once: %s\n", error.what());
    return 2;
  }
}
