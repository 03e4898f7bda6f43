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
//
// A kernel is given one plain product at a time, unless its file declares what else it takes:
//
//   constexpr unsigned gemm_kernel_takes = gemm::kBatches | gemm::kGroups;
#pragma once

namespace gemm {

#ifdef __CUDACC_RTC__
using Input = GEMM_INPUT;    // float, __nv_bfloat16, ..., by the precision of the benchmark
using Output = GEMM_OUTPUT;  // at least as wide; C is overwritten, not accumulated
#else
using Input = void;
using Output = void;
#endif

// What a kernel takes besides one plain product. Where a problem needs several, all are declared.
constexpr unsigned kBatches = 1;    // so many products of one size
constexpr unsigned kGroups = 2;     // products that differ in their rows of A and C
constexpr unsigned kScales = 4;     // factors of blocks of A and B: precision e4m3block
constexpr unsigned kEpilogues = 8;  // all of Epilogue

// What is done to an element of C before it is stored: the bias of its column is added; then GELU
// in its tanh form is applied; or the element of the residual is added.
enum class Epilogue : int { none, bias, bias_gelu, residual };

// C (m x n) = A (m x k) * B (k x n), dense and row-major; a transposed A is stored as k x m, a
// transposed B as n x k. The pointers a, b and c are multiples of 256 bytes.
struct Call {
  const Input* a;
  const Input* b;
  Output* c;
  long long m, n, k;
  bool a_transposed, b_transposed;

  // The rest is 1, none and null unless the kernel takes it (gemm_kernel_takes).
  Epilogue epilogue;
  // Products of a batch, or groups. Their A are one after another without a gap, so are B and C.
  long long batch;
  // Of groups, batch + 1 numbers: the first of the batch * m rows of all A and C that a group has,
  // and at last the number of all rows. A group may have no row; m is the average.
  const int* row_starts;       // on the device
  const int* host_row_starts;  // the same; null in a .cu file, all of which runs on the device
  // Of 128 elements along k of each row of A: ceil(k/128) rows of batch * m. Of blocks of 128 x 128
  // of each B: ceil(n/128) rows of ceil(k/128), padded to a multiple of 4.
  const float* a_scales;
  const float* b_scales;
  const Output* bias;      // n elements
  const Output* residual;  // m x n, as C
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

#ifdef __CUDACC_RTC__

// ::gemm_kernel_takes is this one in a file that declares none.
namespace gemm::plain {
constexpr unsigned gemm_kernel_takes = 0;
}
using namespace gemm::plain;

#else

// Incremented with every change of Call or gemm_kernel; a library contains the version that it was
// built with. Call had only its first fields in version 1, which still runs.
extern "C" [[gnu::used]] inline int gemm_kernel_abi() { return 2; }

// You may define this.
extern "C" const unsigned gemm_kernel_takes;

// You define this. It enqueues C = A * B on the stream, a cudaStream_t; on a CPU the stream is null
// and it computes C. Returns null, or an error message of one line. `precision` is "f32", "bf16",
// ...
extern "C" const char* gemm_kernel(const gemm::Call* call, const char* precision, void* stream);

#endif
