// What the suite consists of: every kernel on every problem that it can compute.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/shapes.hpp"
#include "bench/transfer.hpp"
#include "kernels/registry.hpp"

namespace gemm::bench {

struct Case {
  const RegisteredKernel* kernel;
  Problem problem;
  std::optional<Transfer> transfer = {};  // with the copies from and to the host, if any

  // "Tiled/tile:16/f32/1024x1024x768", "EndToEnd/pinned/Tiled/tile:16/f32/1024x1024x768"
  std::string name() const;
  bool operator==(const Case&) const = default;
};

// Problem by problem, so that operands and reference are made once, and libraries before the
// kernels that are compared with them. An empty list of precisions means all; the points of tuning
// spaces are left out unless `variants`.
std::vector<Case> make_cases(const std::vector<Shape>& shapes,
                             const std::vector<Precision>& precisions, Device::Kind kind,
                             bool variants = false);

// Each of these with every transfer, but for kernels that work on rearranged operands.
std::vector<Case> end_to_end_cases(const std::vector<Case>& cases);

// Whether a --benchmark_filter is about such cases. Nobody else is shown them: they would be three
// times as many as the others.
bool asks_for_end_to_end(const std::string& filter);

// Does --gemm_versus=text mean this kernel? "library", "cuBLAS" or "cuBLAS/math:pedantic".
bool is_versus(const std::string& text, const RegisteredKernel& kernel);

}  // namespace gemm::bench
