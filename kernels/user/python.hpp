// Kernels from Python files. Python loads gemm_bench as a library and runs it inside its own
// process (run_in_python.py), so that C++ and Python can launch on one stream. This header declares
// the functions that C++ calls in Python.
#pragma once

#include <cstdint>

#include "kernels/user/gemm_kernel.h"
#include "kernels/user/user_kernel.hpp"

namespace gemm {

// A function of a file and its arguments. run_in_python.py declares the same structs.
struct PythonCall {
  const char *file, *entry;                    // the entry is "prepare" by default
  const char *precision, *layout, *device;     // "tf32", "nt", "gpu"
  const char *input_element, *output_element;  // "f32", "bf16", ...
  const char* epilogue;                        // "none", "bias", ...
  Call call;
};

struct PythonFunctions {
  void (*takes)(const PythonCall*, unsigned* takes);  // as gemm_kernel_takes
  // `reason` is set to why the benchmark is skipped, or stays null.
  void (*unsupported)(const PythonCall*, const char** reason);
  void (*prepare)(const PythonCall*, std::int64_t* launch);
  void (*launch)(std::int64_t launch, Stream stream);
  void (*release)(std::int64_t launch);
  // Each sets it to null, or to the message of the exception in one line, valid until the next
  // call. It stays as it was if an exception came of that, too: ctypes would return garbage.
  const char** raised;
  const bool* not_loaded;  // whether that is because the file has no such function
};

// Called once, before any benchmark; null if this process is not Python.
void set_python(const PythonFunctions* functions);

Loaded load_python(const UserKernel& kernel);

}  // namespace gemm
