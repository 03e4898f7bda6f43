// A kernel from a file that a user names at run time (--gemm_kernel): a .cu source or a shared
// library, with the one header gemm_kernel.h between them and us, or a Python file.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/registry.hpp"

namespace gemm {

struct UserKernel {
  std::filesystem::path file;
  std::string entry;  // empty: `launch` of a .cu, `gemm_kernel` of a library, `prepare` of a .py
  std::vector<Parameter> defines;  // macros of a .cu, and the parameters of the row
  std::string file_hash;
  std::vector<Precision> precisions;
  std::vector<Layout> layouts;

  bool is_source() const { return file.extension() == ".cu"; }
  bool is_python() const { return file.extension() == ".py"; }
  // "my_kernel", "my_kernel.entry": of letters, digits, dots, dashes and underlines.
  std::string name() const;
};

// Puts it into the registry, in the family "user", or "peer" where its folder is called other_implementations. The
// file is opened, compiled and run by `prepare` alone. Throws std::logic_error for a label that
// another kernel has.
void register_user_kernel(const UserKernel& kernel, Device::Kind runs_on);

// What a user's function is told; gemm_kernel.h has it.
struct Call;
Call call_of(const Problem& problem, const Operands& operands);

// How the loaders make the launches of one operand set.
using Prepare = std::function<Launch(const Problem&, const Device&, const Operands&)>;
Prepare load_library(const UserKernel& kernel);
Prepare load_source(const UserKernel& kernel);
// What a library or a Python file says is anybody's: the line before a line break or an escape
// sequence.
std::string first_line(std::string_view text);

// What NVRTC makes of a source. Throws std::runtime_error with its first error, and prints all that
// it says, so that nothing is lost where only a line is shown.
struct CompiledSource {
  std::string cubin, kernel;  // the kernel's name in it; `kDescribe` is there too
};
CompiledSource compile_source(const UserKernel& kernel, Precision precision,
                              int compute_capability);
inline constexpr char kDescribe[] = "gemm_bench_describe";

}  // namespace gemm
