// One GPU as a device: CUDA events on a stream of its own, graphs for short kernels, and the FP64
// reference and the verdict computed where the operands are.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/base/clock.hpp"
#include "bench/base/cuda.hpp"
#include "bench/base/device_errors.hpp"
#include "bench/base/text.hpp"
#include "bench/device/backend.hpp"
#include "bench/device/batch.hpp"
#include "bench/device/element_types.cuh"
#include "bench/device/verify_cuda.cuh"
#include "bench/kernel_code/fingerprint.hpp"
#include "bench/kernel_code/kernel_code.hpp"
#include "kernels/layout.hpp"

namespace gemm::bench {
namespace {

__global__ void empty_kernel() {}

template <typename T>
__global__ void flip_kernel(T* matrix, std::int64_t count, std::int64_t rows, std::int64_t columns,
                            Signs signs) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t e = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       e < count * rows * columns; e += stride)
    if (signs.at(e / columns % rows, e % columns) < 0) {
      if constexpr (std::is_arithmetic_v<T>)
        matrix[e] = static_cast<T>(-matrix[e]);
      else
        matrix[e] = static_cast<T>(-static_cast<float>(matrix[e]));
    }
}

template <typename T>
__global__ void fill_kernel(T* to, std::int64_t count, Fill fill, std::uint64_t seed) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    to[i] = fill_element<T>(fill, seed, i);
}

__global__ void fill_scales_kernel(float* to, std::int64_t count, Fill fill, std::uint64_t seed) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    to[i] = scale_value(fill, seed, i);
}

// Both clocks of one SM at the same moment: nanoseconds since some day, and cycles.
struct Stamp {
  unsigned long long nanoseconds;
  long long cycles;
};

// Cycles are counted by each SM for itself, so that it is always SM 0 that writes: with two blocks
// for each SM, one of them is there.
__global__ void stamp_kernel(Stamp* stamp, unsigned wait_nanoseconds) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (sm != 0) return;
  const auto now = [] {
    unsigned long long nanoseconds;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    return nanoseconds;
  };
  for (const unsigned long long start = now(); now() - start < wait_nanoseconds;) {
  }
  *stamp = {now(), clock64()};
}

// The device's stream, and waiting for it with a time limit.
class Timeline {
 public:
  Timeline(int sm_count, double patience_seconds)
      : sm_count_(sm_count), patience_(patience_seconds), stream_(make_stream()) {}

  operator cudaStream_t() const { return stream_.get(); }

  // Two blocks for each SM, so that one is on SM 0.
  void stamp(Stamp* to, double wait_seconds) {
    stamp_kernel<<<2 * sm_count_, 1, 0, stream_.get()>>>(to,
                                                         static_cast<unsigned>(1e9 * wait_seconds));
  }

  void finish() const {
    wait([&] { return cudaStreamQuery(stream_.get()); });
  }
  void wait_for(cudaEvent_t event) const {
    wait([&] { return cudaEventQuery(event); });
  }

 private:
  // cudaStreamSynchronize and its like, but for a GPU that never finishes.
  template <typename Query>
  void wait(Query&& query) const {
    check(cudaGetLastError());
    const double start = now_seconds();
    for (;;) {
      const cudaError_t status = query();
      if (status != cudaErrorNotReady) return check(status);
      const double waited = now_seconds() - start;
      if (waited > patience_)
        throw DeviceLost("the GPU did not finish within " +
                         std::to_string(std::lround(std::ceil(patience_))) + " s");
      if (waited > 1e-3) std::this_thread::yield();
    }
  }

  int sm_count_;
  double patience_;
  OwnedStream stream_;
};

class CudaMark : public Mark {
 public:
  explicit CudaMark(Timeline& stream) : stream_(stream) {
    void* memory = nullptr;  // the kernel writes into the host's memory: nothing to copy
    check(cudaHostAlloc(&memory, sizeof(Stamp), cudaHostAllocMapped));
    stamp_.reset(static_cast<Stamp*>(memory));
  }

  void set(Clock clock, double head_start_seconds) override {
    *stamp_ = {};
    if (clock == Clock::before || head_start_seconds > 0)
      stream_.stamp(stamp_.get(), head_start_seconds);
    check(cudaEventRecord(event_.get(), stream_));
    stamped_after_ = clock == Clock::after;
    if (!stamped_after_) return;
    stream_.stamp(stamp_.get(), 0);
    check(cudaEventRecord(stamped_.get(), stream_));
  }

  static Elapsed between(const CudaMark& from, const CudaMark& to) {
    to.stream_.wait_for(to.stamped_after_ ? to.stamped_.get() : to.event_.get());
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, from.event_.get(), to.event_.get()));
    return {milliseconds * 1e-3, sm_hz(*from.stamp_, *to.stamp_)};
  }

 private:
  // The nanoseconds advance in steps of up to a microsecond.
  static std::optional<double> sm_hz(const Stamp& from, const Stamp& to) {
    constexpr double kShortestNanoseconds = 200e3;
    const auto nanoseconds = static_cast<double>(to.nanoseconds - from.nanoseconds);
    const auto cycles = static_cast<double>(to.cycles - from.cycles);
    const bool both = from.nanoseconds > 0 && to.nanoseconds > from.nanoseconds;
    if (!both || nanoseconds < kShortestNanoseconds || !(cycles > 0)) return std::nullopt;
    return 1e9 * cycles / nanoseconds;
  }

  Timeline& stream_;
  OwnedEvent event_ = make_event(), stamped_ = make_event(cudaEventDisableTiming);
  bool stamped_after_ = false;
  Owned<Stamp*, cudaFreeHost> stamp_;
};

class StreamSequence : public Sequence {
 public:
  StreamSequence(Timeline& stream, std::vector<const Launch*> launches)
      : stream_(stream), launches_(std::move(launches)) {}
  double enqueue() override {
    double first = 0;
    for (const Launch* launch : launches_) {
      (*launch)(stream_);
      if (first == 0) first = now_seconds();
    }
    check(cudaGetLastError());
    return first;
  }
  std::string_view launch() const override { return "stream"; }

 private:
  Timeline& stream_;
  std::vector<const Launch*> launches_;
};

// So that the host does not set the rate of short kernels.
class GraphSequence : public Sequence {
 public:
  GraphSequence(Timeline& stream, std::vector<const Launch*> launches) : stream_(stream) {
    StreamSequence sequence(stream, std::move(launches));
    const OwnedGraph graph = captured(stream, [&] { sequence.enqueue(); });
    cudaGraphExec_t exec = nullptr;
    check(cudaGraphInstantiate(&exec, graph.get(), 0));
    graph_.reset(exec);
    check(cudaGraphUpload(exec, stream));
  }
  double enqueue() override {
    check(cudaGraphLaunch(graph_.get(), stream_));
    return now_seconds();
  }
  std::string_view launch() const override { return "graph"; }

 private:
  Timeline& stream_;
  OwnedGraphExec graph_;
};

class CudaBackend : public Backend {
 public:
  CudaBackend(DeviceInfo device, double patience_seconds)
      : device_(std::move(device)),
        stream_(device_.sm_count, patience_seconds),
        verdicts_(allocate(sizeof(Verdict) * blocks())) {
    // The padding of verdicts is copied too, and initcheck reports what was never written.
    CudaBackend::poison(verdicts_.get(), sizeof(Verdict) * blocks());
  }

  const DeviceInfo& device() const override { return device_; }
  void set_rates(double dram, double l2) override {
    device_.dram_bytes_per_second = dram;
    device_.l2_bytes_per_second = l2;
  }
  std::string_view timer() const override { return "CUDA events"; }

  // The best of several: whatever delays one of them is not the method's.
  std::optional<Overheads> overheads() override {
    const std::vector<Launch> nothing{[](Stream) {}};
    const std::vector<Launch> empty{[](Stream stream) { empty_kernel<<<1, 32, 0, stream>>>(); }};
    constexpr std::int64_t kLaunches = 200;
    const auto fastest = [&](const std::vector<Launch>& launches, std::int64_t count, bool graph) {
      Batch one(*this, launches, count, graph);
      double best = one.time().seconds;
      for (int i = 0; i < 9; ++i) best = std::min(best, one.time().seconds);
      return best / static_cast<double>(count);
    };
    return Overheads{fastest(nothing, 1, false), fastest(empty, kLaunches, true),
                     fastest(empty, kLaunches, false)};
  }

  double free_bytes() const override {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total));
    return static_cast<double>(free);
  }

  Buffer allocate(std::int64_t bytes) override {
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes));
    return {static_cast<std::byte*>(memory), [](std::byte* p) { cudaFree(p); }};
  }

  void fill(void* to, ElementType type, std::int64_t count, Fill fill,
            std::uint64_t seed) override {
    with_type(type, [&]<typename T>(T) {
      fill_kernel<<<blocks(), 256, 0, stream_>>>(static_cast<T*>(to), count, fill, seed);
    });
    check(cudaGetLastError());
  }

  void fill_scales(const float* to, std::int64_t count, Fill fill, std::uint64_t seed) override {
    if (count == 0) return;
    fill_scales_kernel<<<blocks(), 256, 0, stream_>>>(const_cast<float*>(to), count, fill, seed);
    check(cudaGetLastError());
  }

  void flip(void* matrices, ElementType type, std::int64_t count, std::int64_t rows,
            std::int64_t columns, const Signs& signs) override {
    with_type(type, [&]<typename T>(T) {
      flip_kernel<<<blocks(), 256, 0, stream_>>>(static_cast<T*>(matrices), count, rows, columns,
                                                 signs);
    });
    check(cudaGetLastError());
  }

  void renew(const RingMemory& ring, std::uint64_t seed) override {
    forget_persisting_lines();
    const Products p(ring.problem);
    const OperandLayout at = ring.layout();
    const auto sets = static_cast<unsigned>(ring.sets);
    with_type(traits_of(p.precision).input, [&]<typename T>(T) {
      const dim3 grid(blocks_for(at.a_bytes + at.b_bytes + at.c_bytes, sets), sets);
      renew_kernel<T><<<grid, 256, 0, stream_>>>(p, ring.fill, ring.base, at, seed);
      thin_out_kernel<T><<<dim3(blocks_for(8 * p.k, sets), sets), 256, 0, stream_>>>(
          p, ring.base, at.total, at.a, at.b, seed);
    });
    check(cudaGetLastError());
  }

  std::unique_ptr<PendingVerdict> check_renewed(const RingMemory& ring, std::uint64_t seed,
                                                std::span<const std::int64_t> places,
                                                std::uint64_t secret) override {
    const Products p(ring.problem);
    const OperandLayout at = ring.layout();
    auto pending = std::make_unique<Pending>(stream_, p, at, std::ssize(places), free_findings_);
    // As many at once as scratch memory holds.
    const auto each = static_cast<std::int64_t>(sizeof(RowCheck)) * (rows_of_c(p) + rows_of_b(p));
    constexpr std::int64_t kScratchBytes = 64 << 20;
    const auto at_once = std::clamp(kScratchBytes / each, std::int64_t{1}, std::ssize(places));
    if (checks_rows(p)) reserve_rows(at_once * (rows_of_c(p) + rows_of_b(p)));
    Findings* const findings = reserve_findings();
    check(cudaMemsetAsync(findings, 0, sizeof(Findings) * places.size(), stream_));
    const auto each_chunk = [&](auto&& step) {
      for (std::int64_t first = 0; first < std::ssize(places); first += at_once) {
        const auto chunk = places.subspan(first, std::min(at_once, std::ssize(places) - first));
        Places sets{at.at(ring.base), at.total, {}};
        std::ranges::copy(chunk, sets.at);
        step(sets, static_cast<unsigned>(chunk.size()), findings + first);
      }
    };
    const auto fingerprint = [&](int which) {
      each_chunk([&](const Places& sets, unsigned count, Findings* found) {
        fingerprint_kernel<<<dim3(blocks_for(at.c_bytes, count), count), 256, 0, stream_>>>(
            sets, at.c_bytes, which, found);
      });
    };
    fingerprint(0);
    each_chunk([&](const Places& sets, unsigned count, Findings* found) {
      with_type(traits_of(p.precision).input, [&]<typename T>(T) {
        check_elements_kernel<T><<<dim3(kVerdicts, count), kJudges, 0, stream_>>>(
            p, sets, seed, bound_for_element(p), bound_for_sparse(p), secret, found);
        compare_operands_kernel<T>
            <<<dim3(blocks_for(at.a_bytes + at.b_bytes, count), count), 256, 0, stream_>>>(
                p, sets, ring.fill, seed, found);
        if (checks_rows(p)) check_rows<T>(p, sets, count, secret, found);
      });
      const auto guard = [&](std::int64_t from, std::int64_t to) {
        compare_guard_kernel<<<dim3(blocks_for(8 * (to - from), count), count), 256, 0, stream_>>>(
            sets, ring.base, from, to, at.c, at.total, found);
      };
      for (const auto& [from, to] : at.guards_before_c()) guard(from, to);
      guard(at.c + at.c_bytes, at.total);
    });
    fingerprint(1);
    check(cudaGetLastError());
    pending->fetch(findings);
    return pending;
  }

  void finish_all() override {
    finish();
    check(cudaDeviceSynchronize());
  }

  void copy(void* to, const void* from, std::int64_t bytes) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
    finish();
  }

  void poison(void* to, std::int64_t bytes) override {
    check(cudaMemsetAsync(to, 0xff, bytes, stream_));
  }

  void reference(const Problem& p, const Operands& operands, double* expected,
                 double* magnitude) override {
    const Products all(p);
    with_type(traits_of(p.precision).input, [&]<typename T>(T) {
      for (std::int64_t which = 0; which < p.batch; ++which) {
        const Problem one = all.product(which);
        const std::int64_t tiles = ceil_div(one.m, kTile) * ceil_div(one.n, kTile);
        if (tiles > 0x7fffffff)
          throw std::runtime_error("C is too large for the reference product");
        if (tiles == 0) continue;
        reference_kernel<<<static_cast<unsigned>(tiles), kThreads, 0, stream_>>>(
            one, static_cast<const T*>(operands.a) + all.before_a(which),
            static_cast<const T*>(operands.b) + all.before_b(which),
            scales_of(p, operands).of_product(p, which, all.first_row(which)),
            expected + all.before_c(which), magnitude + all.before_c(which));
      }
    });
    finish();
  }

  Verdict judge(const Problem& p, const Operands& set, const double* expected,
                const double* magnitude, const Bound& bound, const Signs& signs) override {
    auto* partial = reinterpret_cast<Verdict*>(verdicts_.get());
    with_type(traits_of(p.precision).output, [&]<typename T>(T) {
      judge_kernel<<<blocks(), kJudges, 0, stream_>>>(Products(p), written<T>(set), expected,
                                                      magnitude, bound, signs, partial);
    });
    return merged();
  }

  Verdict judge_rows(const Problem& problem, const Operands& operands,
                     std::uint64_t secret) override {
    const Products p(problem);
    const Places sets{operands, 0, {}};
    reserve_rows(rows_of_c(p) + rows_of_b(p));
    Findings* const on_device = reserve_findings();
    check(cudaMemsetAsync(on_device, 0, sizeof(Findings), stream_));
    Findings found;
    Verdict verdict;
    with_type(traits_of(p.precision).input, [&]<typename T>(T) {
      check_rows<T>(p, sets, 1, secret, on_device);
      copy(&found, on_device, sizeof found);
      const Verdict rows = verdict_of(found, p, OperandLayout(p));
      judge_exactly_kernel<<<blocks(), kJudges, 0, stream_>>>(
          p, static_cast<const T*>(operands.a), static_cast<const T*>(operands.b),
          scales_of(p, operands), written<Out<T>>(operands), bound_for(p), secret,
          rows.first_wrong_row, reinterpret_cast<Verdict*>(verdicts_.get()));
      verdict = merged();
      verdict.merge(rows);
    });
    return verdict;
  }

  void run(const Launch& launch) override {
    launch(stream_);
    finish();
  }

  LaunchedKernels kernels_of(const Launch& launch) override {
    return bench::kernels_of(launch, stream_);
  }

  std::unique_ptr<Sequence> sequence(std::vector<const Launch*> launches, bool graph) override {
    if (graph) return std::make_unique<GraphSequence>(stream_, std::move(launches));
    return std::make_unique<StreamSequence>(stream_, std::move(launches));
  }
  std::unique_ptr<Mark> mark() override { return std::make_unique<CudaMark>(stream_); }
  Elapsed between(const Mark& from, const Mark& to) override {
    return CudaMark::between(dynamic_cast<const CudaMark&>(from),
                             dynamic_cast<const CudaMark&>(to));
  }

 private:
  // Findings of a check, on their way to the host.
  class Pending : public PendingVerdict {
   public:
    using Memory = Owned<std::byte*, cudaFreeHost>;
    // `free` has memory of checks that were read.
    Pending(const Timeline& stream, const Problem& p, const OperandLayout& layout,
            std::int64_t count, std::vector<Memory>& free)
        : stream_(stream), problem_(p), layout_(layout), count_(count), free_(free) {
      if (free.empty()) free.push_back(pinned_memory(sizeof(Findings) * kMostPlaces));
      memory_ = std::move(free.back());
      free.pop_back();
    }
    ~Pending() override { free_.push_back(std::move(memory_)); }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;

    void fetch(const Findings* from) {
      bench::check(cudaMemcpyAsync(memory_.get(), from, sizeof(Findings) * count_,
                                   cudaMemcpyDeviceToHost, stream_));
      bench::check(cudaEventRecord(there_.get(), stream_));
    }
    Verdict read() override {
      stream_.wait_for(there_.get());
      Verdict verdict;
      for (std::int64_t i = 0; i < count_ && verdict.passed(); ++i)
        verdict =
            verdict_of(reinterpret_cast<const Findings*>(memory_.get())[i], problem_, layout_);
      return verdict;
    }

   private:
    const Timeline& stream_;
    Problem problem_;
    OperandLayout layout_;
    std::int64_t count_;
    std::vector<Memory>& free_;
    Memory memory_;
    OwnedEvent there_ = make_event(cudaEventDisableTiming);
  };

  // No part of the L2 is set aside for what a kernel wants to stay there. Not every GPU can.
  static void forget_persisting_lines() {
    std::size_t bytes = 0;
    if (cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) == cudaSuccess && bytes > 0) {
      cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0);
      cudaCtxResetPersistingL2Cache();
    }
    cudaGetLastError();
  }

  unsigned blocks() const { return 4 * static_cast<unsigned>(device_.sm_count); }
  // In each of so many rows of a grid, for so many bytes of each, of which a thread takes 8 at a
  // time.
  unsigned blocks_for(std::int64_t bytes, unsigned rows) const {
    const std::int64_t enough = bytes / 8 / 256 + 1, room = 4 * std::int64_t{blocks()} / rows + 1;
    return static_cast<unsigned>(std::min(enough, room));
  }
  Findings* reserve_findings() {
    if (!findings_) findings_ = allocate(sizeof(Findings) * kMostPlaces);
    return reinterpret_cast<Findings*>(findings_.get());
  }
  void reserve_rows(std::int64_t count) {
    if (count <= row_count_) return;
    finish();  // what runs may use the smaller memory
    rows_ = allocate(static_cast<std::int64_t>(sizeof(RowCheck)) * count);
    row_count_ = count;
  }
  // By Freivalds' check.
  template <typename T>
  void check_rows(const Products& p, const Places& sets, unsigned count, std::uint64_t secret,
                  Findings* found) {
    auto* const b_rows = reinterpret_cast<RowCheck*>(rows_.get());
    RowCheck* const rows = b_rows + count * rows_of_b(p);
    project_b_kernel<T><<<dim3(row_blocks(rows_of_b(p)), count), kRowThreads, 0, stream_>>>(
        p, sets, secret, b_rows);
    project_a_kernel<T><<<dim3(row_blocks(rows_of_c(p)), count), kRowThreads, 0, stream_>>>(
        p, sets, b_rows, share_of_size(p), rows);
    judge_rows_kernel<Out<T>><<<dim3(row_blocks(rows_of_c(p)), count), kRowThreads, 0, stream_>>>(
        p, sets, secret, rows, share_of_added(p), found);
  }
  void finish() { stream_.finish(); }
  // The verdicts of all blocks.
  Verdict merged() {
    std::vector<Verdict> verdicts(blocks());
    copy(verdicts.data(), verdicts_.get(), sizeof(Verdict) * verdicts.size());
    Verdict all;
    for (const Verdict& verdict : verdicts) all.merge(verdict);
    return all;
  }

  DeviceInfo device_;
  Timeline stream_;
  Buffer verdicts_, findings_, rows_;  // the last two only where they are needed
  std::int64_t row_count_ = 0;
  std::vector<Pending::Memory> free_findings_;
};

// Attributes only: cudaDeviceProp lost its clocks in CUDA 13. A failure or 0 means: not reported.
std::optional<std::int64_t> attribute(cudaDeviceAttr which, int index) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, index) != cudaSuccess || value <= 0) {
    cudaGetLastError();
    return std::nullopt;
  }
  return value;
}

std::optional<double> kilohertz(cudaDeviceAttr which, int index) {
  const auto value = attribute(which, index);
  return value ? std::optional(static_cast<double>(*value) * 1e3) : std::nullopt;
}

// Clusters of so many blocks that fit at once, if each block takes the shared memory of an SM.
// Groups of SMs differ from GPU to GPU of a name. 0 if clusters are not supported.
int fitting_clusters(int size, std::size_t shared_bytes) {
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(size), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = size;
  config.blockDim = 128;
  config.dynamicSmemBytes = shared_bytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int count = 0;
  if (cudaFuncSetAttribute(empty_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(shared_bytes)) != cudaSuccess ||
      cudaFuncSetAttribute(empty_kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) !=
          cudaSuccess ||
      cudaOccupancyMaxActiveClusters(&count, empty_kernel, &config) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

DeviceInfo query_gpu(int index, int driver, int runtime) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index));
  DeviceInfo info;
  info.kind = Device::Kind::gpu;
  info.name = one_line(properties.name);
  info.compute_capability = 10 * properties.major + properties.minor;
  info.sm_count = properties.multiProcessorCount;
  info.last_level_cache_bytes = properties.l2CacheSize;
  // 64 bits: enough to distinguish two GPUs, too little to recover the UUID.
  info.uuid_hash = hash_of({properties.uuid.bytes, sizeof properties.uuid.bytes});
  char bus_id[32] = {};
  if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index) == cudaSuccess) info.pci_bus_id = bus_id;
  info.driver = "CUDA " + cuda_version(driver);
  info.runtime = cuda_version(runtime);
  info.clock_hz = kilohertz(cudaDevAttrClockRate, index);
  info.memory_clock_hz = kilohertz(cudaDevAttrMemoryClockRate, index);
  info.bus_width_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, index);
  info.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  info.integrated = properties.integrated != 0;
  set_queried_rates(info);
  return info;
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(int index, std::string& reason,
                                           double patience_seconds) {
  int driver = 0, runtime = 0, count = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver && driver > 0)
    throw std::runtime_error(cuda_problem(cudaGetErrorString(status), driver, runtime));
  if (status != cudaSuccess || count == 0) {
    reason = cuda_problem(cudaGetErrorString(status), driver, runtime);
    return nullptr;
  }
  if (index >= count)
    throw std::runtime_error("--gemm_device=" + std::to_string(index) + ": this machine has " +
                             std::to_string(count) + " GPU" + (count == 1 ? "" : "s") +
                             ", numbered from 0");
  check(cudaSetDevice(index));
  DeviceInfo device = query_gpu(index, driver, runtime);
  if (const auto shared = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, index))
    for (int size = 1; size < std::ssize(device.fitting_clusters); ++size)
      device.fitting_clusters[size] = fitting_clusters(size, *shared);
  return std::make_unique<CudaBackend>(std::move(device), patience_seconds);
}

}  // namespace gemm::bench
