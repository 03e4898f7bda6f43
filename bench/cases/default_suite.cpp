#include "bench/cases/default_suite.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace gemm::bench {
namespace {

// By label, of both kinds of devices.
constexpr std::string_view kOurs[] = {"Best", "CpuBlocked"},
                           kLibraries[] = {"cuBLAS/math:default", "cuBLASLt/algo:best", "OpenBLAS"};

struct Plan {
  std::vector<Precision> precisions, ladders;
  std::vector<std::int64_t> sizes;
  std::int64_t ladder_size;  // one of these
};

// 1020 is an edge in every tile, and not for FP8: libraries want a multiple of 16.
Plan plan_of(Device::Kind kind) {
  using enum Precision;
  if (kind == Device::Kind::cpu) return {{f32}, {f32}, {128, 256, 512, 1000, 1024}, 512};
  return {{f32, tf32, bf16, e4m3, f64, s8}, {f32, bf16}, {512, 1020, 2048, 4096, 8192}, 4096};
}

bool fits(Precision precision, std::int64_t size) {
  return precision != Precision::e4m3 || size % 16 == 0;
}

// Of the set `layers`, from few tokens to many: their times are spread from the bandwidth of the
// DRAM to the peak.
constexpr Shape kLayers[] = {
    {1, 28672, 4096},   {2, 51200, 5120},     {4, 3584, 18944},   {8, 8192, 28672},
    {16, 32768, 6144},  {32, 4096, 4096},     {64, 5120, 25600},  {128, 7168, 2048},
    {512, 10240, 8192}, {1024, 18432, 16384}, {4096, 2112, 7168}, {8192, 9216, 4096},
};

bool is_one_of(const auto& labels, const std::string& label) {
  return std::ranges::find(labels, label) != std::end(labels);
}

}  // namespace

std::vector<Case> default_suite(Device::Kind kind, const std::function<bool(const Case&)>& runs) {
  std::vector<Case> suite;
  const auto add = [&](const Shape& shape, Precision precision, auto&& wanted) {
    const Layout layout = traits_of(precision).input_bytes <= 2 ? Layout::nt : Layout::nn;
    for (const Case& one : make_cases({shape}, {precision}, kind, false, {layout}))
      if (wanted(*one.kernel) && (one.kernel->is_library() || runs(one))) suite.push_back(one);
  };
  const Plan plan = plan_of(kind);
  for (const Precision precision : plan.precisions)
    for (const std::int64_t size : plan.sizes) {
      if (!fits(precision, size)) continue;
      const bool ladder = size == plan.ladder_size &&
                          std::ranges::find(plan.ladders, precision) != plan.ladders.end();
      add({size, size, size}, precision, [&](const RegisteredKernel& kernel) {
        if (kernel.is_library()) return is_one_of(kLibraries, kernel.label());
        return ladder || is_one_of(kOurs, kernel.label());
      });
    }
  if (kind == Device::Kind::gpu)
    for (const Shape& layer : kLayers)
      add(layer, Precision::bf16, [](const RegisteredKernel& kernel) {
        return is_one_of(kOurs, kernel.label()) || kernel.label() == "cuBLASLt/algo:best";
      });
  return suite;
}

}  // namespace gemm::bench
