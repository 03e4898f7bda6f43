// Every kernel of the suite, by rung. A kernel's file registers itself, so that adding a kernel is
// adding one file.
#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "kernels/gemm.hpp"

namespace gemm {

struct RegisteredKernel : Kernel {
  std::string family;  // the folder of its file: cpu, simt, tensor, library
  std::string stem;    // the name of its file without the ending
  Device::Kind runs_on = Device::Kind::gpu;

  // "Tiled/tile:16"
  std::string label() const;
  bool is_library() const { return family == "library"; }
};

// Ordered by rung, then by the order of registration within a file. Labels are unique.
const std::vector<RegisteredKernel>& registry();

// A namespace-scope object of this type in a kernel's file puts the kernel into the registry.
// Libraries exist for both kinds of device and say which they run on.
struct Registration {
  explicit Registration(Kernel kernel, std::source_location file = std::source_location::current());
  Registration(Kernel kernel, Device::Kind runs_on,
               std::source_location file = std::source_location::current());
};

}  // namespace gemm
