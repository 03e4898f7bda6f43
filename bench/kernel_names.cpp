#include "bench/kernel_names.hpp"

#include <cuda.h>
#include <cuda_runtime.h>
#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <type_traits>

namespace gemm::bench {
namespace {

constexpr std::size_t kLongest = 200;

// A function of the driver, in the form it had in that version of CUDA; null if the driver, or the
// toolkit of this build, is older. libcuda itself is not linked, so that the program starts without
// a driver.
template <typename Function>
Function* driver_function(const char* name, unsigned version) {
  void* found = nullptr;
#if CUDART_VERSION >= 12050
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault);
#else
  if (version > CUDART_VERSION) return nullptr;
  const cudaError_t status = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault);
#endif
  return status == cudaSuccess ? reinterpret_cast<Function*>(found) : nullptr;
}

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

// Null if it cannot be captured.
Graph capture(const Launch& launch, Stream stream) {
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) != cudaSuccess) return nullptr;
  bool launched = true;
  try {
    launch(stream);
  } catch (...) {
    launched = false;
  }
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  Graph owned(graph);
  return launched && ended == cudaSuccess ? std::move(owned) : nullptr;
}

// Null if the driver does not tell.
const char* symbol_of(cudaGraphNode_t node) {
  using GetParams = CUresult(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2*);
  const auto params_of = driver_function<GetParams>("cuGraphKernelNodeGetParams", 12000);
  CUDA_KERNEL_NODE_PARAMS_v2 params{};
  if (params_of == nullptr || params_of(node, &params) != CUDA_SUCCESS) return nullptr;
  const auto ask = [](const char* function, auto kernel) -> const char* {
    using GetName = CUresult(const char**, decltype(kernel));
    const auto name_of = driver_function<GetName>(function, 12030);
    const char* name = nullptr;
    if (name_of == nullptr || name_of(&name, kernel) != CUDA_SUCCESS) return nullptr;
    return name;
  };
  if (params.func != nullptr) return ask("cuFuncGetName", params.func);
  if (params.kern != nullptr) return ask("cuKernelGetName", params.kern);
  return nullptr;
}

std::vector<std::string> names_in(cudaGraph_t graph) {
  std::size_t count = 0;
  if (cudaGraphGetNodes(graph, nullptr, &count) != cudaSuccess) return {};
  std::vector<cudaGraphNode_t> nodes(count);
  if (cudaGraphGetNodes(graph, nodes.data(), &count) != cudaSuccess) return {};
  std::vector<std::string> names;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    if (cudaGraphNodeGetType(node, &type) != cudaSuccess) return {};
    if (type == cudaGraphNodeTypeMemcpy) names.emplace_back("memcpy");
    if (type == cudaGraphNodeTypeMemset) names.emplace_back("memset");
    if (type != cudaGraphNodeTypeKernel) continue;
    const char* symbol = symbol_of(node);
    if (symbol == nullptr) return {};  // half of the names would mislead
    names.push_back(readable_kernel_name(symbol));
  }
  return names;
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

std::vector<std::string> kernel_names(const Launch& launch, Stream stream) {
  std::vector<std::string> names;
  try {
    if (const Graph graph = capture(launch, stream)) names = names_in(graph.get());
  } catch (const std::exception&) {  // out of memory
    names.clear();
  }
  cudaGetLastError();  // whatever was refused is not the next caller's
  return names;
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
