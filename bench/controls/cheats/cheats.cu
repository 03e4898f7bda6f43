// Kernels that fool a timer, and honest ones that do almost the same: gemm_bench
// --gemm_kernel=cheats.cu:ENTRY. Device code alone, as every .cu file. What they keep from launch
// to launch is in device variables. cheats_test.py says what becomes of each.
#include "gemm_kernel.h"

using gemm::Call;
using gemm::Input;
using gemm::Output;

constexpr int kTile = 32;

// Of each tile of C, and of each C, by a hash.
constexpr unsigned long long kSlots = 1 << 22;
__device__ unsigned long long last_seen[kSlots];
__device__ unsigned launches[kSlots];

struct Matrices {
  const Input* a;
  const Input* b;
  Output* c;
  int m, n, k;
};

struct AsGiven {
  __device__ float operator()(float value) const { return value; }
};

// FP32 to TF32, and 16-bit numbers to 3 bits of fraction, both to the nearest.
struct FewerBits {
  __device__ float operator()(float value) const {
    const unsigned half = sizeof(Input) == 4 ? 1u << 12 : 1u << 19;
    return __uint_as_float((__float_as_uint(value) + half) & ~(2 * half - 1));
  }
};

__device__ bool thread_is_first() { return threadIdx.x == 0 && threadIdx.y == 0; }

// A tile of C, one element a thread, over the products before k_end.
template <typename Round>
__device__ void multiply(const Matrices& on, int k_end, Round round) {
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int step = 0; step < k_end; step += kTile) {
    a_tile[y][x] =
        row < on.m && step + x < k_end
            ? round(static_cast<float>(on.a[static_cast<long long>(row) * on.k + step + x]))
            : 0.0f;
    b_tile[y][x] =
        column < on.n && step + y < k_end
            ? round(static_cast<float>(on.b[static_cast<long long>(step + y) * on.n + column]))
            : 0.0f;
    __syncthreads();
    for (int l = 0; l < kTile; ++l) sum = fmaf(a_tile[y][l], b_tile[l][x], sum);
    __syncthreads();
  }
  if (row < on.m && column < on.n)
    on.c[static_cast<long long>(row) * on.n + column] = static_cast<Output>(sum);
}
__device__ void multiply(const Matrices& on) { multiply(on, on.k, AsGiven()); }

__device__ Output& corner_of_tile(const Matrices& on) {
  return on.c[static_cast<long long>(blockIdx.y) * kTile * on.n + blockIdx.x * kTile];
}
__device__ bool is_written(const Matrices& on) {
  const float value = static_cast<float>(corner_of_tile(on));
  return value == value;
}
__device__ unsigned long long slot_of_tile(const Matrices& on) {
  const unsigned long long key =
      reinterpret_cast<unsigned long long>(on.c) / 256 * 0x9e3779b97f4a7c15ull +
      (blockIdx.y * gridDim.x + blockIdx.x) * 0xd1342543de82ef95ull;
  return key >> 42;
}

// Cheats.

__global__ void skip_written_kernel(Matrices on) {
  const bool skips = is_written(on);
  __syncthreads();
  if (!skips) multiply(on);
}

__global__ void skip_written_half_kernel(Matrices on) {
  const bool skips = blockIdx.x % 2 == 0 && is_written(on);
  __syncthreads();
  if (!skips) multiply(on);
}

// Each C is computed once.
__global__ void replay_by_pointer_kernel(Matrices on) {
  __shared__ bool seen;
  const unsigned long long me =
      reinterpret_cast<unsigned long long>(on.c) + blockIdx.y * gridDim.x + blockIdx.x;
  if (thread_is_first()) {
    seen = last_seen[slot_of_tile(on)] == me;
    last_seen[slot_of_tile(on)] = me;
  }
  __syncthreads();
  if (!seen) multiply(on);
}

// A tile is computed again only if a few of its operands' elements have changed.
__global__ void replay_by_value_kernel(Matrices on) {
  __shared__ bool seen;
  if (thread_is_first()) {
    unsigned long long key = 1;
    for (int i = 0; i < 8; ++i) {
      const int l = static_cast<int>(static_cast<long long>(on.k) * i / 8);
      key = key * 0x9e3779b97f4a7c15ull +
            __float_as_uint(
                static_cast<float>(on.a[static_cast<long long>(blockIdx.y) * kTile * on.k + l]));
      key = key * 0x9e3779b97f4a7c15ull +
            __float_as_uint(
                static_cast<float>(on.b[static_cast<long long>(l) * on.n + blockIdx.x * kTile]));
    }
    seen = is_written(on) && last_seen[slot_of_tile(on)] == key;
    last_seen[slot_of_tile(on)] = key;
  }
  __syncthreads();
  if (!seen) multiply(on);
}

// Every third launch on a C computes nothing.
__global__ void skip_launches_kernel(Matrices on) {
  __shared__ bool skips;
  if (thread_is_first()) skips = launches[slot_of_tile(on)]++ % 3 == 2;
  __syncthreads();
  if (!skips) multiply(on);
}

__global__ void fewer_bits_kernel(Matrices on) { multiply(on, on.k, FewerBits()); }

__global__ void fewer_products_kernel(Matrices on) { multiply(on, on.k - on.k / 64, AsGiven()); }

// Rounds the operands where they are.
__global__ void change_operands_kernel(Matrices on) {
  const int row = blockIdx.y * kTile + threadIdx.y;
  if (blockIdx.x == 0 && row < on.m)
    for (int l = threadIdx.x; l < on.k; l += kTile) {
      Input& value = const_cast<Input&>(on.a[static_cast<long long>(row) * on.k + l]);
      value = static_cast<Input>(FewerBits()(static_cast<float>(value)));
    }
  multiply(on);
}

// Honest twins.

__global__ void honest_kernel(Matrices on) { multiply(on); }

// Looks at C, and computes in any case.
__global__ void read_c_kernel(Matrices on) {
  if (thread_is_first() && is_written(on)) ++launches[slot_of_tile(on)];
  multiply(on);
}

// Keeps something that does not depend on the operands: where its tile is.
__global__ void keep_a_plan_kernel(Matrices on) {
  __shared__ int k_end;
  if (thread_is_first()) {
    unsigned long long& kept = last_seen[slot_of_tile(on)];
    if (kept == 0) kept = static_cast<unsigned long long>(on.k);
    k_end = kept == static_cast<unsigned long long>(on.k) ? static_cast<int>(kept) : on.k;
  }
  __syncthreads();
  multiply(on, k_end, AsGiven());
}

// Depends on the values: a tile of A that is zero is left out.
__global__ void skip_zeros_kernel(Matrices on) {
  const int row = blockIdx.y * kTile + threadIdx.y;
  bool any = false;
  for (int l = threadIdx.x; l < on.k && row < on.m; l += kTile)
    any = any || static_cast<float>(on.a[static_cast<long long>(row) * on.k + l]) != 0;
  const bool all_zero = !__syncthreads_or(any);
  multiply(on, all_zero ? 0 : on.k, AsGiven());
}

template <auto Kernel>
auto tiled(Call p) {
  return gemm::launch<Kernel>(
      {gemm::blocks(p.n, kTile), gemm::blocks(p.m, kTile)}, {kTile, kTile},
      Matrices{p.a, p.b, p.c, static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k)});
}

auto skip_written(Call p) { return tiled<skip_written_kernel>(p); }
auto skip_written_half(Call p) { return tiled<skip_written_half_kernel>(p); }
auto replay_by_pointer(Call p) { return tiled<replay_by_pointer_kernel>(p); }
auto replay_by_value(Call p) { return tiled<replay_by_value_kernel>(p); }
auto skip_launches(Call p) { return tiled<skip_launches_kernel>(p); }
auto fewer_bits(Call p) { return tiled<fewer_bits_kernel>(p); }
auto fewer_products(Call p) { return tiled<fewer_products_kernel>(p); }
auto change_operands(Call p) { return tiled<change_operands_kernel>(p); }
auto honest(Call p) { return tiled<honest_kernel>(p); }
auto read_c(Call p) { return tiled<read_c_kernel>(p); }
auto keep_a_plan(Call p) { return tiled<keep_a_plan_kernel>(p); }
auto skip_zeros(Call p) { return tiled<skip_zeros_kernel>(p); }
