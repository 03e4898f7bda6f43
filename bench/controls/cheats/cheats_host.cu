// Shared libraries that fool a timer from the host, honest ones that do almost the same, and
// hostile ones that break while they are timed: nvcc -shared -DCHEAT=NAME. For FP32, nn.
// cheats_test.py says what becomes of each.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>
#include <utility>

#include "gemm_kernel.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kTile = 32;

__global__ void multiply_kernel(const float* a, const float* b, float* c, int m, int n, int k,
                                int first_row) {
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = first_row + blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int step = 0; step < k; step += kTile) {
    a_tile[y][x] = row < m && step + x < k ? a[static_cast<long long>(row) * k + step + x] : 0;
    b_tile[y][x] =
        column < n && step + y < k ? b[static_cast<long long>(step + y) * n + column] : 0;
    __syncthreads();
    for (int l = 0; l < kTile; ++l) sum = fmaf(a_tile[y][l], b_tile[l][x], sum);
    __syncthreads();
  }
  if (row < m && column < n) c[static_cast<long long>(row) * n + column] = sum;
}

// Rows from the tile `first` to the tile `end`.
void multiply(const gemm::Call& p, float* c, long long first, long long end, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((p.n + kTile - 1) / kTile),
                  static_cast<unsigned>(end - first));
  multiply_kernel<<<grid, dim3(kTile, kTile), 0, stream>>>(
      static_cast<const float*>(p.a), static_cast<const float*>(p.b), c, static_cast<int>(p.m),
      static_cast<int>(p.n), static_cast<int>(p.k), static_cast<int>(first * kTile));
}
long long tiles(const gemm::Call& p) { return (p.m + kTile - 1) / kTile; }
float* c_of(const gemm::Call& p) { return static_cast<float*>(p.c); }
std::size_t c_bytes(const gemm::Call& p) {
  return sizeof(float) * static_cast<std::size_t>(p.m * p.n);
}

// Of the size of C, and kept: a part of a larger problem may come first, at the same addresses.
float* memory_for(const gemm::Call& p) {
  static std::map<std::pair<void*, std::size_t>, float*> kept;
  float*& memory = kept[{p.c, c_bytes(p)}];
  if (memory == nullptr) cudaMalloc(&memory, c_bytes(p));
  return memory;
}

cudaStream_t own_stream() {
  static const cudaStream_t stream = [] {
    cudaStream_t made;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
  }();
  return stream;
}

std::pair<cudaEvent_t, cudaEvent_t> two_events() {
  std::pair<cudaEvent_t, cudaEvent_t> made;
  cudaEventCreateWithFlags(&made.first, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&made.second, cudaEventDisableTiming);
  return made;
}

// Half of the rows on a stream that nobody waits for.
void side_stream(const gemm::Call& p, cudaStream_t stream) {
  const long long half = tiles(p) / 2;
  if (half > 0) multiply(p, c_of(p), 0, half, stream);
  multiply(p, c_of(p), half, tiles(p), own_stream());
}

// The product is computed elsewhere and copied to C a little later.
void late_thread(const gemm::Call& p, cudaStream_t) {
  std::thread([p, result = memory_for(p)] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    multiply(p, result, 0, tiles(p), own_stream());
    cudaMemcpyAsync(p.c, result, c_bytes(p), cudaMemcpyDeviceToDevice, own_stream());
  }).detach();
}

void skip_calls(const gemm::Call& p, cudaStream_t stream) {
  static std::map<void*, int> calls;
  if (calls[p.c]++ % 3 != 2) multiply(p, c_of(p), 0, tiles(p), stream);
}

// Computes when the call before is some time ago, as it is where values were just written.
void after_a_pause(const gemm::Call& p, cudaStream_t stream) {
  static Clock::time_point last;
  static int honest = 0;
  if (Clock::now() - last > std::chrono::microseconds(300)) honest = 80;
  if (honest-- > 0) multiply(p, c_of(p), 0, tiles(p), stream);
  last = Clock::now();
}

// On a stream of its own, which only its next launch waits for.
void late_stream(const gemm::Call& p, cudaStream_t stream) {
  static const auto events = two_events();
  cudaEventRecord(events.first, stream);
  cudaStreamWaitEvent(own_stream(), events.first);
  multiply(p, c_of(p), 0, tiles(p), own_stream());
  static bool launched = false;
  if (std::exchange(launched, true)) cudaStreamWaitEvent(stream, events.second);
  cudaEventRecord(events.second, own_stream());
}

// B stays in a part of the L2 that other traffic does not use.
void persisting_window(const gemm::Call& p, cudaStream_t stream) {
  int most = 0;
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxAccessPolicyWindowSize, 0);
  static const cudaError_t limited = cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 30);
  cudaStreamAttrValue value = {};
  value.accessPolicyWindow = {
      .base_ptr = const_cast<void*>(static_cast<const void*>(p.b)),
      .num_bytes = std::min<std::size_t>(static_cast<std::size_t>(most),
                                         sizeof(float) * static_cast<std::size_t>(p.k * p.n)),
      .hitRatio = 1,
      .hitProp = cudaAccessPropertyPersisting,
      .missProp = cudaAccessPropertyStreaming};
  if (limited == cudaSuccess)
    cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value);
  multiply(p, c_of(p), 0, tiles(p), stream);
}

__global__ void spin_kernel(long long cycles) {
  for (const long long begin = clock64(); clock64() - begin < cycles;) {
  }
}

// Blocks keep the SMs busy while this kernel is not called.
void spins_meanwhile(const gemm::Call& p, cudaStream_t stream) {
  static std::atomic<Clock::time_point> last;
  last = Clock::now();
  static const bool started = [] {
    std::thread([] {
      for (;; std::this_thread::sleep_for(std::chrono::microseconds(50)))
        if (Clock::now() - last.load() > std::chrono::microseconds(500)) {
          spin_kernel<<<264, 256, 0, own_stream()>>>(200'000);
          cudaStreamSynchronize(own_stream());
        }
    }).detach();
    return true;
  }();
  if (started) multiply(p, c_of(p), 0, tiles(p), stream);
}

void forge(const gemm::Call&, cudaStream_t) {
  dprintf(3, R"({"token":"0123456789abcdef0123456789abcdef","row":{},"kernel_seconds":1})");
  _exit(0);
}

void honest(const gemm::Call& p, cudaStream_t stream) { multiply(p, c_of(p), 0, tiles(p), stream); }

// On a stream of its own too, which the given one waits for.
void joined_stream(const gemm::Call& p, cudaStream_t stream) {
  static const auto events = two_events();
  const long long half = tiles(p) / 2;
  cudaEventRecord(events.first, stream);
  cudaStreamWaitEvent(own_stream(), events.first);
  multiply(p, c_of(p), 0, half, stream);
  multiply(p, c_of(p), half, tiles(p), own_stream());
  cudaEventRecord(events.second, own_stream());
  cudaStreamWaitEvent(stream, events.second);
}

// Through scratch memory of its own.
void scratch(const gemm::Call& p, cudaStream_t stream) {
  float* memory = memory_for(p);
  multiply(p, memory, 0, tiles(p), stream);
  cudaMemcpyAsync(p.c, memory, c_bytes(p), cudaMemcpyDeviceToDevice, stream);
}

// Honest at first, but does harm while it is timed.
template <typename Harm>
void later(const gemm::Call& p, cudaStream_t stream, Harm harm) {
  static const Clock::time_point begin = Clock::now();
  static bool harmed = false;
  if (!std::exchange(harmed, harmed || Clock::now() - begin > std::chrono::milliseconds(250)) &&
      harmed)
    harm();
  honest(p, stream);
}
void crash(const gemm::Call& p, cudaStream_t stream) {
  later(p, stream, [] { *reinterpret_cast<volatile int*>(8) = 1; });
}
void leave(const gemm::Call& p, cudaStream_t stream) {
  later(p, stream, [] { _exit(0); });
}
void hang(const gemm::Call& p, cudaStream_t stream) {
  later(p, stream, [] {
    for (;;) sleep(1);
  });
}
void reset(const gemm::Call& p, cudaStream_t stream) {
  later(p, stream, [] { cudaDeviceReset(); });
}
void scribble(const gemm::Call& p, cudaStream_t stream) {
  later(p, stream, [] {
    for (int descriptor = 3; descriptor < 20; ++descriptor) dprintf(descriptor, "{}");
  });
}
// Both processes go on.
void split(const gemm::Call& p, cudaStream_t stream) {
  later(p, stream, [] { fork(); });
}

}  // namespace

extern "C" const char* gemm_kernel(const gemm::Call* call, const char*, void* stream) {
  CHEAT(*call, static_cast<cudaStream_t>(stream));
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
