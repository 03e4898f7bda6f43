// How fast bytes move: out of the DRAM, out of the L2, out of shared memory, over the bus to
// the host.
//
// What is read is summed, and the sum leaves the registers only where `mask` keeps a bit of it:
// never in a timed launch, but the compiler cannot know. To see that everything was read, the
// memory is filled with words of -1: then the sum counts them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/base/cuda.hpp"
#include "bench/peaks/probes_cuda.hpp"

namespace gemm::bench {
namespace {

using Total = unsigned long long;  // what atomicAdd takes
using Memory = std::shared_ptr<std::byte>;

constexpr std::int64_t kMiB = 1 << 20;

__device__ std::uint32_t sum_of(uint4 v) { return v.x + v.y + v.z + v.w; }

__device__ void keep_sum(std::uint32_t sum, std::uint32_t mask, Total* words) {
  if ((sum & mask) != 0) atomicAdd(words, Total{0U - sum});
}

// What is wrong with the number of words that left keep_sum.
std::optional<std::string> wrong_count(Backend& backend, const Memory& count, double bytes) {
  Total words = 0;
  backend.copy(&words, count.get(), sizeof words);
  if (4.0 * static_cast<double>(words) == bytes) return std::nullopt;
  return "read " + std::to_string(4 * words) + " bytes of " +
         std::to_string(static_cast<Total>(bytes));
}
Memory zero_count(Backend& backend) {
  return shared_memory(backend, std::vector<std::byte>(sizeof(Total)));
}

// --- DRAM ----------------------------------------------------------------------------------------

struct Grid {
  int threads;
  bool resident;  // as many blocks as fit at once, each with many parts; else one part each
};
constexpr Grid kGrids[] = {{256, true},  {512, true},  {1024, true},
                           {256, false}, {512, false}, {1024, false}};
constexpr int kDramVectors = 8;

// A thread's loads are independent of each other; a block's part of the array is contiguous. All of
// it streams, as nothing is used twice.
__global__ void __launch_bounds__(1024)
    read_dram(const uint4* from, std::int64_t vectors, std::uint32_t mask, Total* words) {
  const std::int64_t part = std::int64_t{kDramVectors} * blockDim.x;
  std::uint32_t sum = 0;
  for (std::int64_t first = blockIdx.x * part; first < vectors; first += gridDim.x * part) {
    const uint4* at = from + first + threadIdx.x;
    uint4 x[kDramVectors];
#pragma unroll
    for (int j = 0; j < kDramVectors; ++j) x[j] = __ldcs(at + j * blockDim.x);
#pragma unroll
    for (int j = 0; j < kDramVectors; ++j) sum += sum_of(x[j]);
  }
  keep_sum(sum, mask, words);
}

// At least 1 GiB and four times the L2, and about a millisecond of the queried bandwidth.
std::int64_t array_bytes(const DeviceInfo& device, std::int64_t free) {
  const double bandwidth = device.memory_clock_hz.value_or(0) *
                           static_cast<double>(device.bus_width_bits.value_or(0)) / 4;
  const auto wanted = std::max({1024 * kMiB, 4 * device.last_level_cache_bytes,
                                static_cast<std::int64_t>(1e-3 * bandwidth)});
  return std::min(wanted, free / 4) / kMiB * kMiB;
}

Probe dram_probe(const DeviceInfo& device, std::int64_t bytes) {
  const auto launch = [bytes, sm_count = device.sm_count](Grid grid, const Memory& from,
                                                          std::uint32_t mask,
                                                          const Memory& words) -> Launch {
    const auto vectors = bytes / static_cast<std::int64_t>(sizeof(uint4));
    const std::int64_t parts = vectors / (kDramVectors * grid.threads);
    int per_sm = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, read_dram, grid.threads, 0));
    const auto blocks = static_cast<unsigned>(
        grid.resident ? std::min<std::int64_t>(parts, std::int64_t{per_sm} * sm_count) : parts);
    return [=](Stream stream) {
      read_dram<<<blocks, grid.threads, 0, stream>>>(reinterpret_cast<const uint4*>(from.get()),
                                                     vectors, mask,
                                                     reinterpret_cast<Total*>(words.get()));
    };
  };
  // Which grid moves most differs from GPU to GPU.
  const auto fastest = [=](Backend& backend) {
    const Memory from = shared_memory(backend, bytes);
    backend.fill(from.get(), ElementType::f32, bytes / 4, Fill::uniform, 0);
    std::vector<Launch> ways;
    for (const Grid& grid : kGrids) ways.push_back(launch(grid, from, 0, nullptr));
    return fastest_of(backend, ways, 3);
  };
  const auto complaint = [=](Backend& backend) -> std::optional<std::string> {
    const Memory from = shared_memory(backend, bytes);
    backend.poison(from.get(), bytes);
    for (const Grid& grid : kGrids) {
      const Memory words = zero_count(backend);
      backend.run(launch(grid, from, ~0U, words));
      if (const auto wrong = wrong_count(backend, words, static_cast<double>(bytes)))
        return *wrong + " by blocks of " + std::to_string(grid.threads) + " threads" +
               (grid.resident ? ", resident" : "");
    }
    return std::nullopt;
  };
  Probe probe{
      .name = "DRAM_read",
      .what = "sum of an array, " + std::to_string(bytes / kMiB) +
              " MiB, 16-byte accesses, the fastest of " + std::to_string(std::size(kGrids)) +
              " grids",
      .unit = Probe::Unit::bytes,
      .clock = Probe::Clock::memory,
      .work = static_cast<double>(bytes),
      .prepare = fastest,
      .complaint = complaint,
  };
  if (bytes < 4 * device.last_level_cache_bytes || bytes == 0)
    probe.unsupported = "too little free memory for arrays beyond the L2";
  return probe;
}

// --- L2 ------------------------------------------------------------------------------------------

constexpr int kL2Threads = 1024, kL2Vectors = 8;
constexpr std::int64_t kPieceBytes = std::int64_t{kL2Threads} * kL2Vectors * sizeof(uint4);

// Every block reads every piece, each from a start of its own; .cg passes the L1 by.
__global__ void __launch_bounds__(kL2Threads, 1)
    read_l2(const uint4* from, int pieces, int reads, std::uint32_t mask, Total* words) {
  std::uint32_t sum = 0;
  int piece = static_cast<int>(std::int64_t{blockIdx.x} * pieces / gridDim.x);
  for (int read = 0; read < reads; ++read) {
    const uint4* at = from + std::int64_t{piece} * kL2Vectors * kL2Threads + threadIdx.x;
    uint4 x[kL2Vectors];
#pragma unroll
    for (int j = 0; j < kL2Vectors; ++j) x[j] = __ldcg(at + j * kL2Threads);
#pragma unroll
    for (int j = 0; j < kL2Vectors; ++j) sum += sum_of(x[j]);
    piece = piece + 1 < pieces ? piece + 1 : 0;
  }
  keep_sum(sum, mask, words);
}

// Completes the probe of a kernel that reads so many bytes of memory again and again.
// launch(from, mask, words) makes a launch.
template <typename MakeLaunch>
Probe reading(Probe probe, std::int64_t bytes, MakeLaunch launch) {
  probe.unit = Probe::Unit::bytes;
  probe.prepare = [=](Backend& backend) {
    const Memory from = shared_memory(backend, bytes);
    backend.fill(from.get(), ElementType::f32, bytes / 4, Fill::uniform, 0);
    return launch(from, 0, nullptr);
  };
  probe.complaint = [=, work = probe.work](Backend& backend) {
    const Memory from = shared_memory(backend, bytes);
    backend.poison(from.get(), bytes);
    const Memory words = zero_count(backend);
    backend.run(launch(from, ~0U, words));
    return wrong_count(backend, words, work);
  };
  return probe;
}

Probe l2_probe(const DeviceInfo& device) {
  constexpr std::int64_t kBytesPerBlock = 48 * kMiB;  // a millisecond on an H200
  constexpr int kReads = static_cast<int>(kBytesPerBlock / kPieceBytes);
  const auto pieces = static_cast<int>(
      std::max<std::int64_t>(1, device.last_level_cache_bytes * 2 / 5 / kPieceBytes));
  const auto launch = [=, blocks = device.sm_count](const Memory& from, std::uint32_t mask,
                                                    const Memory& words) -> Launch {
    return [=](Stream stream) {
      read_l2<<<blocks, kL2Threads, 0, stream>>>(reinterpret_cast<const uint4*>(from.get()), pieces,
                                                 kReads, mask,
                                                 reinterpret_cast<Total*>(words.get()));
    };
  };
  const std::int64_t bytes = pieces * kPieceBytes;
  Probe probe = reading({.name = "L2_read",
                         .what = "each SM reads the same " + std::to_string(bytes / 1024) +
                                 " KiB again and again, past the L1",
                         .work = 1.0 * device.sm_count * kReads * kPieceBytes},
                        bytes, launch);
  if (device.last_level_cache_bytes <= 0)
    probe.unsupported = "the device does not report the size of its L2";
  return probe;
}

// --- Shared memory -------------------------------------------------------------------------------

constexpr int kSharedThreads = 1024, kRows = 32;  // rows of 512 bytes, one access of a warp each

__global__ void __launch_bounds__(kSharedThreads, 1)
    read_shared(const uint4* from, int rounds, std::uint32_t mask, Total* words) {
  __shared__ uint4 rows[kRows][32];
  static_assert(kRows * 32 == kSharedThreads);
  rows[threadIdx.x / 32][threadIdx.x % 32] = from[threadIdx.x];
  __syncthreads();
  const auto address =
      static_cast<std::uint32_t>(__cvta_generic_to_shared(rows[0] + threadIdx.x % 32));
  std::uint32_t sum = 0;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      uint4 x;  // volatile: else it is read once
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                   : "r"(address + row * static_cast<std::uint32_t>(sizeof rows[0])));
      sum += sum_of(x);
    }
  }
  keep_sum(sum, mask, words);
}

Probe shared_probe(const DeviceInfo& device) {
  constexpr int kRounds = 1024;
  constexpr std::int64_t kBytes = kSharedThreads * sizeof(uint4);
  const auto launch = [blocks = device.sm_count](const Memory& from, std::uint32_t mask,
                                                 const Memory& words) -> Launch {
    return [=](Stream stream) {
      read_shared<<<blocks, kSharedThreads, 0, stream>>>(reinterpret_cast<const uint4*>(from.get()),
                                                         kRounds, mask,
                                                         reinterpret_cast<Total*>(words.get()));
    };
  };
  return reading({.name = "Shared_read",
                  .what = "ld.shared.v4 without bank conflicts, all SMs",
                  .work = 1.0 * device.sm_count * kRounds * kRows * kBytes},
                 kBytes, launch);
}

// --- The bus to the host -------------------------------------------------------------------------

// Of another GPU, which the current one can then reach directly.
Memory memory_of(int target, std::int64_t bytes) {
  if (const cudaError_t status = cudaDeviceEnablePeerAccess(target, 0);
      status == cudaErrorPeerAccessAlreadyEnabled)
    (void)cudaGetLastError();
  else
    check(status);
  int current = 0;
  void* memory = nullptr;
  check(cudaGetDevice(&current));
  check(cudaSetDevice(target));
  const cudaError_t status = cudaMalloc(&memory, bytes);
  check(cudaSetDevice(current));
  check(status);
  return {static_cast<std::byte*>(memory), [](std::byte* p) { cudaFree(p); }};
}

// From or to pinned memory of the host, or to the memory of another GPU, the target.
Probe bus_probe(const DeviceInfo& device, const std::string& name, const std::string& where,
                std::int64_t free, bool to_device, std::optional<int> target = std::nullopt) {
  const std::int64_t bytes = std::min(256 * kMiB, free / 4 / kMiB * kMiB);
  const auto there = [=] {
    return target ? memory_of(*target, bytes) : Memory(pinned_memory(bytes));
  };
  const auto launch = [=](const Memory& from, const Memory& to) -> Launch {
    return [=](Stream stream) {
      check(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDefault, stream));
    };
  };
  const auto prepare = [=](Backend& backend) {
    const Memory here = shared_memory(backend, bytes), other = there();
    backend.fill(here.get(), ElementType::f32, bytes / 4, Fill::uniform, 0);
    backend.copy(other.get(), here.get(), bytes);
    return to_device ? launch(other, here) : launch(here, other);
  };
  const auto complaint = [=](Backend& backend) -> std::optional<std::string> {
    Memory from = shared_memory(backend, bytes), to = there();
    if (to_device) from.swap(to);
    std::vector<std::byte> found(bytes, std::byte{0x55});
    backend.copy(from.get(), found.data(), bytes);
    backend.poison(to.get(), bytes);
    backend.run(launch(from, to));
    backend.copy(found.data(), to.get(), bytes);
    const auto wrong =
        std::ranges::find_if(found, [](std::byte each) { return each != std::byte{0x55}; });
    if (wrong == found.end()) return std::nullopt;
    return "byte " + std::to_string(wrong - found.begin()) + " was not copied";
  };
  Probe probe{
      .name = name,
      .what = "one copy of " + std::to_string(bytes / kMiB) + " MiB " + where,
      .unit = Probe::Unit::bytes,
      .clock = Probe::Clock::none,
      .on_request = target.has_value(),
      .work = static_cast<double>(bytes),
      .prepare = prepare,
      .complaint = complaint,
  };
  if (device.integrated && !target)
    probe.unsupported = "an integrated GPU shares the memory of the host";
  if (bytes == 0) probe.unsupported = "too little free memory";
  return probe;
}

// To every other GPU that this process sees and the current one reaches directly.
std::vector<Probe> peer_probes(const DeviceInfo& device, std::int64_t free) {
  std::vector<Probe> probes;
  int current = 0, count = 0;
  check(cudaGetDevice(&current));
  check(cudaGetDeviceCount(&count));
  for (int target = 0; target < count; ++target) {
    int reaches = 0;
    char bus_id[32] = {};
    if (target == current || cudaDeviceCanAccessPeer(&reaches, current, target) != cudaSuccess ||
        reaches == 0 || cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, target) != cudaSuccess)
      continue;
    probes.push_back(bus_probe(device, "Peer_to_" + std::string(bus_id),
                               "to the memory of another GPU", free, false, target));
  }
  return probes;
}

}  // namespace

std::vector<Probe> memory_probes(const DeviceInfo& device) {
  std::size_t free_now = 0, total = 0;
  check(cudaMemGetInfo(&free_now, &total));
  const auto free = static_cast<std::int64_t>(free_now);
  const std::int64_t bytes = array_bytes(device, free);
  std::vector<Probe> probes = {
      dram_probe(device, bytes),
      l2_probe(device),
      shared_probe(device),
      bus_probe(device, "PCIe_to_device", "from pinned memory", free, true),
      bus_probe(device, "PCIe_to_host", "to pinned memory", free, false),
  };
  std::ranges::copy(peer_probes(device, free), std::back_inserter(probes));
  return probes;
}

}  // namespace gemm::bench
