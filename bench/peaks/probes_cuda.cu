// The probes of a GPU, by family, and what the families share.
#include <cstring>
#include <type_traits>

#include "bench/base/cuda.hpp"
#include "bench/device/element_types.cuh"
#include "bench/peaks/probes_cuda.hpp"

namespace gemm::bench {
namespace {

// The host pass of the compiler does not see the macros of the device passes.
__global__ void say_code([[maybe_unused]] int* code) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  *code = __CUDA_ARCH__ + 1;
#elif defined(__CUDA_ARCH__)
  *code = __CUDA_ARCH__;
#endif
}

DeviceCode query_code() {
  int* memory = nullptr;
  check(cudaMalloc(&memory, sizeof *memory));
  const Owned<int*, cudaFree> owner(memory);
  say_code<<<1, 1>>>(memory);
  const cudaError_t status = cudaGetLastError();
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorUnsupportedPtxVersion)
    return {};
  check(status);
  int code = 0;
  check(cudaMemcpy(&code, memory, sizeof code, cudaMemcpyDefault));
  return {.capability = code / 10, .sm_90a = code % 10 == 1};
}

}  // namespace

std::vector<std::byte> operand_bytes(std::string_view arithmetic, Values values,
                                     std::int64_t bytes) {
  constexpr std::uint64_t kSeed = 17;
  std::vector<std::byte> to(bytes);
  with_type(traits_of(precision_named(arithmetic).value()).input, [&]<typename T>(T value) {
    for (std::size_t i = 0; i < bytes / sizeof value; ++i) {
      value = static_cast<T>(values == Values::ones ? 1.0F : fill_value(Fill::uniform, kSeed, i));
      if constexpr (std::is_same_v<T, std::int8_t>)
        if (values == Values::random) value = static_cast<T>(random_bits(kSeed, i) >> 56);
      std::memcpy(to.data() + i * sizeof value, &value, sizeof value);
    }
  });
  return to;
}

std::shared_ptr<std::byte> shared_memory(Backend& backend, std::int64_t bytes) {
  return backend.allocate(bytes);
}

std::shared_ptr<std::byte> shared_memory(Backend& backend, std::span<const std::byte> contents) {
  std::shared_ptr<std::byte> memory = backend.allocate(contents.size());
  backend.copy(memory.get(), contents.data(), contents.size());
  return memory;
}

std::vector<Probe> cuda_probes(const DeviceInfo& device) {
  const DeviceCode code = query_code();
  std::vector<Probe> all;
  for (const std::vector<Probe>& family : {fma_probes(device), mma_probes(device, code),
                                           wgmma_probes(device, code), memory_probes(device)})
    all.insert(all.end(), family.begin(), family.end());
  if (code.capability == 0)
    for (Probe& probe : all)
      probe.unsupported = "this build has no code for compute capability " +
                          capability_text(device.compute_capability);
  return all;
}

}  // namespace gemm::bench
