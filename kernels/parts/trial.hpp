// Times several ways of doing the same work on the GPU, to run the fastest.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/gemm.hpp"
#include "kernels/parts/device_array.cuh"
#include "kernels/parts/successive_halving.hpp"
#include "kernels/precision.hpp"

namespace gemm {

[[noreturn]] inline void fail(const char* text, std::source_location where) {
  throw std::runtime_error(std::filesystem::path(where.file_name()).filename().string() + ":" +
                           std::to_string(where.line()) + ": " + text);
}

inline void check(cudaError_t status,
                  std::source_location where = std::source_location::current()) {
  if (status != cudaSuccess) fail(cudaGetErrorString(status), where);
}

template <auto kDestroy>
struct Destroy {
  template <typename Handle>
  void operator()(Handle* handle) const {
    kDestroy(handle);
  }
};
template <typename Handle, auto kDestroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<kDestroy>>;

// The operands and copies of A and B, with a C for each: at most kMost sets. If all sets exceed the
// L2, launches that rotate through them read from DRAM, as in a program that does other work
// between two launches.
class OperandSets {
 public:
  OperandSets(const Problem& p, const Device& device, const Operands& o) : sets_{o} {
    const PrecisionTraits& traits = traits_of(p.precision);
    const auto bytes = [](std::int64_t elements, int element_bytes) {
      return static_cast<std::size_t>(elements) * static_cast<std::size_t>(element_bytes);
    };
    const std::size_t a = bytes(elements_of_a(p), traits.input_bytes),
                      b = bytes(elements_of_b(p), traits.input_bytes),
                      c = bytes(elements_of_c(p), traits.output_bytes);
    const double wanted = 1.5 * static_cast<double>(device.last_level_cache_bytes);
    while (sets_.size() < kMost && static_cast<double>(sets_.size() * (a + b + c)) < wanted) {
      try {
        Operands set = o;
        set.a = place(o.a, a), set.b = place(o.b, b), set.c = place(o.c, c);
        sets_.push_back(set);
      } catch (const std::runtime_error&) {
        memory_.resize(3 * (sets_.size() - 1));
        break;  // no memory for a whole set
      }
      check(cudaMemcpy(const_cast<void*>(sets_.back().a), o.a, a, cudaMemcpyDeviceToDevice));
      check(cudaMemcpy(const_cast<void*>(sets_.back().b), o.b, b, cudaMemcpyDeviceToDevice));
    }
    check(cudaStreamSynchronize(nullptr));  // other streams do not wait for the copies
  }

  std::size_t size() const { return sets_.size(); }
  // Of the launch with this number, from 0.
  const Operands& of_launch(std::size_t number) const { return sets_[number % sets_.size()]; }

 private:
  static constexpr std::size_t kMost = 8, kAlignment = 256;

  // Memory as far from an aligned address as the original: kernels choose by that.
  void* place(const void* original, std::size_t bytes) {
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(original) % kAlignment;
    memory_.emplace_back(offset + bytes);
    return static_cast<std::byte*>(memory_.back().get()) + offset;
  }

  std::vector<simt::DeviceMemory> memory_;
  std::vector<Operands> sets_;
};

class Trial {
 public:
  // Enqueues the work; false if it cannot.
  using Work = std::function<bool(Stream)>;

  // Index of the fastest (successive_halving.hpp). Those that fail are skipped, and those after the
  // first third of the budget was spent on first launches. Throws std::runtime_error if none runs.
  std::size_t fastest(const std::vector<Work>& all, const std::vector<std::string>& kinds = {}) {
    std::map<std::size_t, Batch> batches;
    std::vector<std::size_t> entrants;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!batches.empty() && spent_ > SuccessiveHalving::kMilliseconds / 3) break;
      auto batch = batch_of(all[i]);
      if (!batch) continue;
      batches.emplace(i, std::move(*batch));
      entrants.push_back(i);
    }
    if (batches.empty()) throw std::runtime_error("nothing that was tried runs");
    const auto time_one = [&](std::size_t one, float wanted) {
      return time(batches.at(one), wanted);
    };
    const auto rest = [] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };
    return SuccessiveHalving(time_one, rest, spent_, kinds).fastest(entrants);
  }

 private:
  using OwnedStream = Owned<cudaStream_t, cudaStreamDestroy>;
  using Event = Owned<cudaEvent_t, cudaEventDestroy>;
  using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
  using GraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

  template <typename Owner, typename Create, typename... Arguments>
  static Owner make(Create create, Arguments... arguments) {
    typename Owner::pointer handle = nullptr;
    check(create(&handle, arguments...));
    return Owner(handle);
  }

  // Batches are CUDA graphs, as for short kernels in the suite, because the host's launch rate
  // would hide the difference.
  struct Batch {
    GraphExec graph;
    int launches;
    float once;  // milliseconds of the graph, as far as is known
  };

  std::optional<Batch> batch_of(const Work& work) {
    if (!enqueue(work)) return std::nullopt;  // loads its code first
    const float once = time([&] { enqueue(work); });
    const float wanted = SuccessiveHalving::kBatchMilliseconds / std::max(once, 1e-3F);
    const int launches = std::clamp(static_cast<int>(wanted), 1, 1000);
    check(cudaStreamBeginCapture(on(), cudaStreamCaptureModeRelaxed));
    bool captured = true;
    for (int i = 0; i < launches && captured; ++i) captured = enqueue(work);
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(on(), &graph);
    const Graph owned(graph);
    if (!captured || ended != cudaSuccess) {
      cudaGetLastError();
      return std::nullopt;
    }
    return Batch{make<GraphExec>(cudaGraphInstantiateWithFlags, graph, 0), launches,
                 once * static_cast<float>(launches)};
  }

  // About so many milliseconds of the batch.
  SuccessiveHalving::Timing time(Batch& batch, float wanted) {
    const int times = std::max(1, static_cast<int>(wanted / batch.once + 0.5F));
    const float whole = time([&] {
      for (int i = 0; i < times; ++i) check(cudaGraphLaunch(batch.graph.get(), on()));
    });
    batch.once = whole / static_cast<float>(times);
    return {batch.once / static_cast<float>(batch.launches), whole};
  }

  bool enqueue(const Work& work) {
    if (work(on())) return true;
    cudaGetLastError();
    return false;
  }

  template <typename Enqueue>
  float time(Enqueue enqueue) {
    check(cudaEventRecord(start_.get(), on()));
    enqueue();
    check(cudaEventRecord(stop_.get(), on()));
    check(cudaEventSynchronize(stop_.get()));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start_.get(), stop_.get()));
    spent_ += milliseconds;
    return milliseconds;
  }

  Stream on() const { return stream_.get(); }

  float spent_ = 0;  // milliseconds
  OwnedStream stream_ = make<OwnedStream>(cudaStreamCreateWithFlags, cudaStreamNonBlocking);
  Event start_ = make<Event>(cudaEventCreateWithFlags, cudaEventDefault),
        stop_ = make<Event>(cudaEventCreateWithFlags, cudaEventDefault);
};

}  // namespace gemm
