// Include this header in a kernel of yours to run it with gemm_bench --gemm_kernel=FILE.
//
// A .cu file is compiled at run time by NVRTC for the GPU at hand (C++20; functions without
// __global__ are device code). One function describes how the kernel is launched, as <<<>>> would.
// It runs on the GPU, once per operand set, untimed:
//
//   auto launch(gemm::Call p) {
//     return gemm::launch<my_kernel>({gemm::blocks(p.n, 16), gemm::blocks(p.m, 16)}, {16, 16},
//                                    p.a, p.b, p.c, p.m, p.n, p.k);
//   }
//
// In a shared library the C function gemm_kernel does the launch itself:
//
//   nvcc -std=c++20 -shared -Xcompiler -fPIC -I kernels/user my.cu -o my.so    for a GPU
//   c++ -std=c++20 -shared -fPIC -I kernels/user my.cpp -o my.so               for a CPU
//
// A Python file needs no header: run_in_python.py documents its functions.
#pragma once

namespace gemm {

#ifdef __CUDACC_RTC__
using Input = GEMM_INPUT;    // float, __nv_bfloat16, ..., by the precision of the benchmark
using Output = GEMM_OUTPUT;  // at least as wide; C is overwritten, not accumulated
#else
using Input = void;
using Output = void;
#endif

// C (m x n) = A (m x k) * B (k x n), dense and row-major; a transposed A is stored as k x m, a
// transposed B as n x k. The pointers are multiples of 256 bytes.
struct Call {
  const Input* a;
  const Input* b;
  Output* c;
  long long m, n, k;
  bool a_transposed, b_transposed;
};

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};

constexpr unsigned kMostArguments = 32, kMostArgumentBytes = 512;

// A launch as the host reads it.
struct Configuration {
  Dim grid, block;
  unsigned shared_bytes = 0, arguments = 0;
  // Not initialised: that would take half of the compile time of a small file.
  unsigned offsets[kMostArguments];
  alignas(16) unsigned char bytes[kMostArgumentBytes];
};

#ifdef __CUDACC_RTC__

// The number of blocks of `tile` that cover `extent`.
constexpr unsigned blocks(long long extent, long long tile) {
  return static_cast<unsigned>((extent + tile - 1) / tile);
}

template <auto Kernel>
struct LaunchOf : Configuration {
  static constexpr auto kernel = Kernel;

  // Sets the dynamic shared memory per block.
  constexpr LaunchOf with_shared(unsigned bytes) const {
    LaunchOf changed = *this;
    changed.shared_bytes = bytes;
    return changed;
  }
};

template <typename From, typename To>
concept Becomes = requires(From from) {
  static_cast<To>(from);
};

// Converts each argument to the type of the kernel's parameter.
template <auto Kernel, typename... Parameters, typename... Arguments>
LaunchOf<Kernel> launch_as(void (*)(Parameters...), Dim grid, Dim block, Arguments... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "wrong number of arguments for this kernel");
  static_assert(sizeof...(Parameters) <= kMostArguments,
                "at most 32 kernel parameters are supported");
  static_assert((sizeof(Parameters) + ... + (8 * sizeof...(Parameters))) <= kMostArgumentBytes,
                "at most 512 bytes of kernel parameters are supported");
  static_assert((Becomes<Arguments, Parameters> && ...),
                "an argument does not convert to its parameter's type: does the kernel support "
                "this precision?");
  LaunchOf<Kernel> launch;
  launch.grid = grid;
  launch.block = block;
  unsigned at = 0;
  const auto put = [&]<typename T>(const T& value) {
    at = (at + alignof(T) - 1) / alignof(T) * alignof(T);
    launch.offsets[launch.arguments++] = at;
    memcpy(launch.bytes + at, &value, sizeof value);
    at += sizeof value;
  };
  (put(static_cast<Parameters>(arguments)), ...);
  return launch;
}

// kernel<<<grid, block>>>(arguments...); Kernel may be a template's: launch<tiled<16>>(...).
template <auto Kernel, typename... Arguments>
auto launch(Dim grid, Dim block, Arguments... arguments) {
  return launch_as<Kernel>(static_cast<decltype(Kernel)>(nullptr), grid, block, arguments...);
}

#endif

}  // namespace gemm

#ifndef __CUDACC_RTC__

// Incremented with every change of Call or gemm_kernel; a library contains the version that it was
// built with.
extern "C" [[gnu::used]] inline int gemm_kernel_abi() { return 1; }

// You define this. It enqueues C = A * B on the stream, a cudaStream_t; on a CPU the stream is null
// and it computes C. Returns null, or an error message of one line. `precision` is "f32", "bf16",
// ...
extern "C" const char* gemm_kernel(const gemm::Call* call, const char* precision, void* stream);

#endif
