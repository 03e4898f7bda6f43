// Picks the fastest of our kernels for a problem, on CUDA cores or tensor cores, by the kernels'
// own models of their time (`estimate`): waves of tiles, measured rates, bytes. There is no table
// of sizes. The record names the GPU kernel that ran.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "kernels/registry.hpp"

namespace gemm::simt {
namespace {

bool runs(const RegisteredKernel& kernel, const Problem& p, const Device& device) {
  const auto has = [](const auto& list, auto value) {
    return std::ranges::find(list, value) != list.end();
  };
  return device.sm_count > 0 && kernel.estimate && !kernel.variant &&
         has(kernel.precisions, p.precision) && has(kernel.layouts, p.layout) &&
         !(kernel.unsupported && kernel.unsupported(p, device));
}

// Null if no kernel with a model runs the problem.
const RegisteredKernel* pick(const Problem& p, const Device& device) {
  const RegisteredKernel* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const RegisteredKernel& kernel : registry()) {
    if (!runs(kernel, p, device)) continue;
    const double seconds = kernel.estimate(p, device);
    if (!(seconds < least)) continue;
    least = seconds;
    best = &kernel;
  }
  return best;
}

const Registration registration({
    .name = "Best",
    .idea = "Picks the kernel whose model predicts the shortest time.",
    .source = "NOTES.md: waves, measured rates of tiles, bytes",
    .rung = 99,
    .precisions = {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16,
                   Precision::e4m3, Precision::e4m3fast, Precision::e5m2, Precision::e5m2fast,
                   Precision::f64, Precision::s8},
    .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
    .unsupported = [](const Problem& p, const Device& device) -> std::optional<std::string> {
      if (pick(p, device) != nullptr) return std::nullopt;
      return "requires a precision and layout of a kernel with a time model on this device";
    },
    .traffic = [](const Problem& p,
                  const Device& device) { return pick(p, device)->traffic(p, device); },
    .prepare = [](const Problem& p, const Device& device, const Operands& o) -> Launch {
      return pick(p, device)->prepare(p, device, o);
    },
});

}  // namespace
}  // namespace gemm::simt
