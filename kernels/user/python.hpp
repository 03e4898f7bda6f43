// Kernels from Python files. Python runs gemm_bench inside itself (run_in_python.py loads its
// library), so that launches on one stream of one process may come from C++ and from Python; what
// it calls the functions of a file by is here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "kernels/user/user_kernel.hpp"

namespace gemm {

// A function of a file, and what it is told. run_in_python.py has the same structs.
struct PythonCall {
  const char *file, *entry;                    // the entry is "prepare" by default
  const char *precision, *layout, *device;     // "tf32", "nt", "gpu"
  const char *input_element, *output_element;  // "f32", "bf16", ...
  const void *a, *b;
  void* c;
  std::int64_t m, n, k;
};

// Each returns null, or in one line what was raised, which is valid until the next call.
struct PythonFunctions {
  // `reason` becomes that for which the row is skipped, or stays null.
  const char* (*unsupported)(const PythonCall*, const char** reason);
  const char* (*prepare)(const PythonCall*, std::int64_t* launch);
  const char* (*launch)(std::int64_t launch, Stream stream);
  const char* (*release)(std::int64_t launch);
};

// Once, before any row; null where this process is not Python.
void set_python(const PythonFunctions* functions);

std::function<std::optional<std::string>(const Problem&, const Device&)> unsupported_in_python(
    const UserKernel& kernel);
Prepare prepare_in_python(const UserKernel& kernel);

}  // namespace gemm
