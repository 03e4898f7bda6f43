// Names of the epilogues: what is done to an element of C before it is stored.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/gemm.hpp"

namespace gemm {

inline constexpr std::array kActivations = {Activation::none, Activation::bias,
                                            Activation::bias_gelu, Activation::residual};

// As in benchmark names and on the command line.
constexpr std::string_view name_of(Activation activation) {
  constexpr std::string_view kNames[] = {"none", "bias", "bias-gelu", "residual"};
  return kNames[static_cast<int>(activation)];
}

constexpr std::optional<Activation> activation_named(std::string_view name) {
  for (const Activation activation : kActivations)
    if (name_of(activation) == name) return activation;
  return std::nullopt;
}

// Why no kernel is given this problem with its epilogue, or nothing. The error bounds of the others
// would have to follow errors of operands through GELU.
inline std::optional<std::string> epilogue_unsupported(const Problem& p) {
  if (p.activation == Activation::none) return std::nullopt;
  if (p.batch > 1) return "an epilogue is supported for one product only";
  if (p.precision == Precision::f32 || p.precision == Precision::bf16 ||
      p.precision == Precision::f16)
    return std::nullopt;
  return "an epilogue is supported in f32, bf16 and f16 only";
}

}  // namespace gemm
