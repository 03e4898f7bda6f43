// Kernels from files that a user names at run time (--gemm_kernel): a .cu source, a shared library,
// or a Python file.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/registry.hpp"

namespace gemm {

// A file that cannot be compiled or loaded; what() says why in one line.
struct CannotLoad : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct UserKernel {
  std::filesystem::path file;
  std::string entry;  // empty: `launch` of a .cu, `gemm_kernel` of a library, `prepare` of a .py
  std::vector<Parameter> defines;  // macros of a .cu, and parameters in the benchmark's name
  std::vector<std::filesystem::path> includes;  // folders of a .cu's headers
  std::filesystem::path machine_code;           // folder that keeps what was compiled; or empty
  std::string file_hash;
  std::vector<Precision> precisions;
  std::vector<Layout> layouts;

  bool is_source() const { return file.extension() == ".cu"; }
  bool is_python() const { return file.extension() == ".py"; }
  // "my_kernel" or "my_kernel.entry": letters, digits, dots, dashes and underscores.
  std::string name() const;
};

// Registers it in the family "user", or "peer" if its folder is called other_implementations. Only
// `prepare` opens, compiles and runs the file, and `unsupported` where a problem is more than one
// plain product, or the file is Python. Throws std::logic_error if the label is taken.
void register_user_kernel(const UserKernel& kernel, Device::Kind runs_on);

// The arguments of a user's function (gemm_kernel.h), with what they point to besides operands.
struct Call;
std::shared_ptr<const Call> call_of(const Problem& problem, const Device& device,
                                    const Operands& operands);
// A copy in the GPU's memory. Throws std::runtime_error.
std::shared_ptr<const int> copy_on_gpu(const std::vector<int>& values);

// What a file's kernel does.
struct Loaded {
  // Its gemm_kernel_takes.
  std::function<unsigned(const Problem&, const Device&)> takes;
  std::function<std::optional<std::string>(const Problem&, const Device&)> unsupported = {};
  // Makes the launch of one operand set.
  std::function<Launch(const Problem&, const Device&, const Operands&)> prepare;
};
Loaded load_library(const UserKernel& kernel);
Loaded load_source(const UserKernel& kernel);
// Messages of a library or a Python file are untrusted: cuts at the first line break or escape
// sequence.
std::string first_line(std::string_view text);

// Compiles a source with NVRTC. Throws CannotLoad with the first error, and prints the
// whole log, since a benchmark shows only one line.
struct CompiledSource {
  std::string cubin, kernel;  // the kernel's name in it; the names below are there too
};
CompiledSource compile_source(const UserKernel& kernel, Precision precision,
                              int compute_capability);
inline constexpr char kDescribe[] = "gemm_bench_describe", kDeclared[] = "gemm_bench_takes";

}  // namespace gemm
