// What the suite consists of: every kernel on every problem that it can compute.
#pragma once

#include <string>
#include <vector>

#include "bench/cases/shapes.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/layout.hpp"
#include "kernels/registry.hpp"

namespace gemm::bench {

struct Case {
  const RegisteredKernel* kernel;
  Problem problem;

  // "Tiled/tile:16/f32/1024x1024x768", "Tiled/tile:16/layout:nt/epilogue:bias/f32/1024x1024x768"
  // where they are not nn and none
  std::string name() const;
  // What is before the precision, and the size: "4096", "64x8192x512", "batched:16x512".
  std::string kernel_name() const;
  std::string size() const;
  bool operator==(const Case&) const = default;
};

// Problem by problem, so that operands and reference are made once, and libraries before the
// kernels that are compared with them. An empty list of precisions or layouts means all; the points
// of tuning spaces are left out unless `variants`.
std::vector<Case> make_cases(const std::vector<Shape>& shapes,
                             const std::vector<Precision>& precisions, Device::Kind kind,
                             bool variants = false,
                             const std::vector<Layout>& layouts = {Layout::nn},
                             const std::vector<Activation>& activations = {Activation::none});

// The default: precisions with a kernel of this project, without those that run at another's rate
// (FP16 at that of BF16, the other FP8 precisions at that of E4M3), so that the suite takes
// minutes.
std::vector<Precision> usual_precisions(Device::Kind kind);

// Whether an item of --gemm_versus means the kernel: "library", "cuBLAS", "cuBLAS/math:pedantic".
bool is_meant(const std::string& name, const RegisteredKernel& kernel);

// The kernels that `versus`, the list of --gemm_versus, names, on the problem of a case. May
// contain the case itself.
std::vector<Case> baselines_of(const Case& which, const std::string& versus, bool variants);

}  // namespace gemm::bench
