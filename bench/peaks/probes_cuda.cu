// The probes of a GPU, by family, and what the families share.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstring>
#include <stdexcept>

#include "bench/device/cuda_check.hpp"
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
  const std::unique_ptr<int, cudaError_t (*)(int*)> owner(memory,
                                                          [](int* p) { return cudaFree(p); });
  say_code<<<1, 1>>>(memory);
  const cudaError_t status = cudaGetLastError();
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorUnsupportedPtxVersion)
    return {};
  check(status);
  int code = 0;
  check(cudaMemcpy(&code, memory, sizeof code, cudaMemcpyDefault));
  return {.capability = code / 10, .sm_90a = code % 10 == 1};
}

template <typename T, typename Make>
void put(std::vector<std::byte>& to, Make make) {
  for (std::size_t i = 0; i < to.size() / sizeof(T); ++i) {
    const T value = make(i);
    std::memcpy(to.data() + i * sizeof(T), &value, sizeof value);
  }
}

}  // namespace

std::vector<std::byte> operand_bytes(std::string_view arithmetic, Values values,
                                     std::size_t bytes) {
  constexpr std::uint64_t kSeed = 17;
  const auto real = [values](std::size_t i) {
    return values == Values::ones
               ? 1.0F
               : fill_value(values == Values::zeros ? Fill::zeros : Fill::uniform, kSeed, i);
  };
  std::vector<std::byte> to(bytes);
  if (arithmetic == "f64")
    put<double>(to, real);
  else if (arithmetic == "tf32")
    put<float>(to, real);
  else if (arithmetic == "bf16")
    put<__nv_bfloat16>(to, [&](std::size_t i) { return __float2bfloat16(real(i)); });
  else if (arithmetic == "f16")
    put<__half>(to, [&](std::size_t i) { return __float2half(real(i)); });
  else if (arithmetic == "e4m3")
    put<__nv_fp8_e4m3>(to, [&](std::size_t i) { return __nv_fp8_e4m3(real(i)); });
  else if (arithmetic == "s8")
    put<std::int8_t>(to, [&](std::size_t i) {
      return values == Values::random ? static_cast<std::int8_t>(random_bits(kSeed, i) >> 56)
                                      : static_cast<std::int8_t>(real(i));
    });
  else
    throw std::logic_error("no operands of type " + std::string(arithmetic));
  return to;
}

std::shared_ptr<std::byte> shared_memory(Backend& backend, std::size_t bytes) {
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
