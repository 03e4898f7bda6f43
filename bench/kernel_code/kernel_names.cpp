#include <cuda.h>
#include <cuda_runtime.h>
#include <cxxabi.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/base/cuda.hpp"
#include "bench/kernel_code/fingerprint.hpp"
#include "bench/kernel_code/kernel_code.hpp"
#include "kernels/driver_function.hpp"

namespace gemm::bench {
namespace {

constexpr std::size_t kLongest = 200;

// Has the function of the driver write its answer; nothing if it is missing or refuses.
template <typename Answer, typename... Arguments>
std::optional<Answer> ask(const char* function, unsigned version, Arguments... arguments) {
  using Function = CUresult(Answer*, Arguments...);
  const auto found = driver_function<Function>(function, version);
  Answer answer{};
  if (found == nullptr || found(&answer, arguments...) != CUDA_SUCCESS) return std::nullopt;
  return answer;
}

std::optional<CUDA_KERNEL_NODE_PARAMS_v2> parameters_of(cudaGraphNode_t node) {
  using GetParams = CUresult(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2*);
  const auto params_of = driver_function<GetParams>("cuGraphKernelNodeGetParams", 12000);
  CUDA_KERNEL_NODE_PARAMS_v2 params{};
  if (params_of == nullptr || params_of(node, &params) != CUDA_SUCCESS) return std::nullopt;
  return params;
}

// What a kernel is called by the linker; nothing if the driver does not report it.
std::optional<const char*> symbol_of(const CUDA_KERNEL_NODE_PARAMS_v2& params) {
  if (params.func != nullptr) return ask<const char*>("cuFuncGetName", 12030, params.func);
  if (params.kern != nullptr) return ask<const char*>("cuKernelGetName", 12030, params.kern);
  return std::nullopt;
}

// Warps of so many blocks, over those that a multiprocessor has room for.
double occupancy_of(std::int64_t blocks, int threads) {
  constexpr int kWarp = 32;
  int device = 0, room = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&room, cudaDevAttrMaxThreadsPerMultiProcessor, device));
  const int warps_of_block = (threads + kWarp - 1) / kWarp;
  return static_cast<double>(blocks * warps_of_block) / (room / kWarp);
}

KernelCode code_of(const CUDA_KERNEL_NODE_PARAMS_v2& params, const std::string& symbol) {
  KernelCode code{.name = readable_kernel_name(symbol.c_str())};
  const unsigned threads = params.blockDimX * params.blockDimY * params.blockDimZ;
  code.threads = threads;
  code.blocks = std::int64_t{params.gridDimX} * params.gridDimY * params.gridDimZ;
  CUfunction function = params.func;
  if (function == nullptr)
    function = ask<CUfunction>("cuKernelGetFunction", 12000, params.kern).value_or(nullptr);
  if (function == nullptr) return code;
  const auto attribute = [&](CUfunction_attribute which) {
    return ask<int>("cuFuncGetAttribute", 2020, which, function);
  };
  code.registers = attribute(CU_FUNC_ATTRIBUTE_NUM_REGS);
  code.local_bytes = attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  if (const auto fixed = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES))
    code.shared_bytes = *fixed + std::int64_t{params.sharedMemBytes};
  // Of code that the driver compiled from PTX: the GPU's own, for which the program has none.
  if (const auto architecture = attribute(CU_FUNC_ATTRIBUTE_BINARY_VERSION))
    code.fingerprint = own_fingerprint(symbol, *architecture);
  code.blocks_per_sm = ask<int>("cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, function,
                                static_cast<int>(threads), std::size_t{params.sharedMemBytes});
  if (code.blocks_per_sm)
    code.occupancy = occupancy_of(*code.blocks_per_sm, static_cast<int>(threads));
  return code;
}

LaunchedKernels kernels_in(cudaGraph_t graph) {
  std::size_t count = 0;
  check(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  check(cudaGraphGetNodes(graph, nodes.data(), &count));
  LaunchedKernels launched;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    check(cudaGraphNodeGetType(node, &type));
    if (type == cudaGraphNodeTypeMemcpy) launched.names.emplace_back("memcpy");
    if (type == cudaGraphNodeTypeMemset) launched.names.emplace_back("memset");
    if (type != cudaGraphNodeTypeKernel) continue;
    const auto params = parameters_of(node);
    const auto symbol = params ? symbol_of(*params) : std::nullopt;
    if (!symbol) return {};  // half of the names would mislead
    launched.code.push_back(code_of(*params, *symbol));
    launched.names.push_back(launched.code.back().name);
  }
  return launched;
}

// "void f<int>(float*)" -> "f<int>". What stands in brackets, as in "(anonymous namespace)::f", is
// no end of a name.
std::string without_signature(const std::string& name) {
  std::size_t begin = 0, end = name.size();
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char ch = name[i];
    if (ch == '(' && depth == 0 && name.compare(i, 11, "(anonymous ") != 0) {
      end = i;
      break;
    }
    if (ch == '<' || ch == '(') ++depth;
    if (ch == '>' || ch == ')') --depth;
    if (ch == ' ' && depth == 0) begin = i + 1;
  }
  return name.substr(begin, end - begin);
}

// "f<int>::g<1>" -> "f<...>::g<...>"
std::string without_template_arguments(const std::string& name) {
  std::string shorter;
  int depth = 0;
  for (const char ch : name) {
    if (ch == '<' && depth++ == 0) shorter += "<...";
    if (ch == '>') --depth;
    if (depth == 0) shorter += ch;
  }
  return shorter;
}

}  // namespace

LaunchedKernels kernels_of(const Launch& launch, Stream stream) {
  LaunchedKernels launched;
  try {
    launched = kernels_in(captured(stream, [&] { launch(stream); }).get());
  } catch (...) {  // it cannot be captured, or the runtime does not tell
    launched = {};
  }
  cudaGetLastError();  // whatever was refused is not the next caller's
  return launched;
}

std::string readable_kernel_name(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  std::string name = status == 0 ? demangled.get() : symbol;
  if (name.size() > kLongest) name = without_signature(name);
  if (name.size() > kLongest) name = without_template_arguments(name);
  if (name.size() > kLongest) name = name.substr(0, kLongest - 3) + "...";
  return name;
}

}  // namespace gemm::bench
