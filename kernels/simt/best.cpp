// The fastest of our kernels for a problem, on CUDA cores or on tensor cores, by the kernels' own
// models of their time: tiles and waves, bytes and measured rates, and no table of sizes. What it
// chose is what it runs: the record names the kernels of the GPU.
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

// Null if there is none.
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
    .idea = "Of all kernels the one whose own model predicts the shortest time.",
    .source = "NOTES.md: waves, measured rates of tiles, bytes",
    .rung = 99,
    .precisions = {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16,
                   Precision::e4m3, Precision::e4m3fast, Precision::e5m2, Precision::e5m2fast,
                   Precision::s8},
    .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
    .unsupported = [](const Problem& p, const Device& device) -> std::optional<std::string> {
      if (pick(p, device) != nullptr) return std::nullopt;
      return "no kernel with a model of its time runs this layout on this device";
    },
    .traffic = [](const Problem& p,
                  const Device& device) { return pick(p, device)->traffic(p, device); },
    .prepare = [](const Problem& p, const Device& device, const Operands& o) -> Launch {
      return pick(p, device)->prepare(p, device, o);
    },
});

}  // namespace
}  // namespace gemm::simt
