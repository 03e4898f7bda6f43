// What a kernel of yours includes to be run by gemm_bench --gemm_kernel=FILE.
//
// In a .cu file, which NVRTC compiles for the card that is there (C++20; what is not marked
// __global__ is device code), a function says how its kernel is launched on a problem, as <<<>>>
// would. It is evaluated on the card, once for each operand set and untimed:
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
// A Python file needs no header: run_in_python.py says how it is written.
#pragma once

namespace gemm {

#ifdef __CUDACC_RTC__
using Input = GEMM_INPUT;    // float, __nv_bfloat16, ..., as the precision of the row has it
using Output = GEMM_OUTPUT;  // no poorer, and C is written, not added to
#else
using Input = void;
using Output = void;
#endif

// C (m x n) = A (m x k) * B (k x n), dense and row-major; a transposed one is stored as k x m, or n
// x k. The pointers are multiples of 256 bytes.
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
  // Not set to zero, which would be half of the time that a small file takes to compile.
  unsigned offsets[kMostArguments];
  alignas(16) unsigned char bytes[kMostArgumentBytes];
};

#ifdef __CUDACC_RTC__

// How many blocks of `tile` cover `extent`.
constexpr unsigned blocks(long long extent, long long tile) {
  return static_cast<unsigned>((extent + tile - 1) / tile);
}

template <auto Kernel>
struct LaunchOf : Configuration {
  static constexpr auto kernel = Kernel;

  // Dynamic shared memory of a block.
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

// Each argument as the kernel's parameter has it.
template <auto Kernel, typename... Parameters, typename... Arguments>
LaunchOf<Kernel> launch_as(void (*)(Parameters...), Dim grid, Dim block, Arguments... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "the kernel has another number of parameters");
  static_assert(sizeof...(Parameters) <= kMostArguments, "a kernel may have 32 parameters here");
  static_assert((sizeof(Parameters) + ... + (8 * sizeof...(Parameters))) <= kMostArgumentBytes,
                "the parameters of a kernel may take 512 bytes here");
  static_assert((Becomes<Arguments, Parameters> && ...),
                "an argument is not of its parameter's type: is the kernel of this precision?");
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

// Raised with every change of Call and of gemm_kernel; a library brings along what it was built
// with.
extern "C" [[gnu::used]] inline int gemm_kernel_abi() { return 1; }

// Yours: enqueues C = A * B on the stream, a cudaStream_t, or computes it where that is null (on a
// CPU). Returns null, or what is wrong in one line. `precision` is "f32", "bf16", ...
extern "C" const char* gemm_kernel(const gemm::Call* call, const char* precision, void* stream);

#endif
