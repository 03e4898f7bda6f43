// The contract between a kernel and whoever runs it: C = A * B.
//
// A is m x k, B is k x n, C is m x n, all dense and row-major, but for an A or B that lies
// transposed in memory (Layout). m, n, k >= 1 and every offset needs 64 bits: matrices beyond 2^31
// elements are ordinary.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/precision.hpp"

struct CUstream_st;

namespace gemm {

// The same type as cudaStream_t, named here so that CPU-only builds need no CUDA header.
using Stream = CUstream_st*;

// How A and B lie in memory, A's letter first: n as they are, t transposed, so that A of layout tn
// is k x m and row-major, its columns contiguous.
enum class Layout { nn, nt, tn, tt };

constexpr bool transposes_a(Layout layout) { return layout == Layout::tn || layout == Layout::tt; }
constexpr bool transposes_b(Layout layout) { return layout == Layout::nt || layout == Layout::tt; }

struct Problem {
  std::int64_t m, n, k;
  Precision precision;
  Layout layout = Layout::nn;
  bool operator==(const Problem&) const = default;
};

// The mathematics, never the padding of a tile; integer operations count alike.
constexpr double flop(const Problem& p) { return 2.0 * p.m * p.n * p.k; }

// Each input read once, the output written once.
constexpr double bytes_minimum(const Problem& p) {
  const PrecisionTraits& traits = traits_of(p.precision);
  return traits.input_bytes * (1.0 * p.m * p.k + 1.0 * p.k * p.n) +
         traits.output_bytes * (1.0 * p.m * p.n);
}

// What a kernel may ask of the device it runs on.
struct Device {
  enum class Kind { cpu, gpu };
  Kind kind = Kind::cpu;
  std::string name;
  int compute_capability = 0;  // 90 for 9.0; 0 on a CPU
  int sm_count = 0;            // 0 on a CPU
  int cores = 0;               // hardware threads that a CPU kernel may use; 0 on a GPU
  std::int64_t last_level_cache_bytes = 0;
};

// Bytes that one launch asks of each level of memory, by its tile sizes: a model, that counters can
// contradict.
struct Traffic {
  double dram;  // every matrix once, and what the kernel stores and loads again beside them
  double l2;    // what its warps load and store in global memory, in sectors of 32 bytes; what the
                // L1 may still catch is not taken off
  double shared;  // 128 for each wavefront, so that bank conflicts count
};

// Pointers into the memory of the device. c holds anything before a launch, NaN included.
struct Operands {
  const void* a;
  const void* b;
  void* c;
};

// The timed step: only enqueues on the stream (on a CPU: computes), any number of times, one after
// another: launches may share a workspace.
using Launch = std::function<void(Stream)>;

struct Parameter {
  std::string name, value;
};

struct Kernel {
  std::string_view name;              // "Tiled": in --benchmark_filter and in every figure
  std::vector<Parameter> parameters;  // "tile:16": tells apart the variants of one kernel
  std::string_view idea;              // what this rung adds, in one sentence
  std::string_view source;            // where the idea comes from
  int rung = 0;                       // place on the ladder, simplest first; 0 for a library
  bool variant = false;               // a point of a tuning space, run only when asked for
  bool rearranges = false;            // prepare makes another copy of A or B: never end to end
  std::vector<Precision> precisions;  // those it can compute at all
  std::vector<Layout> layouts = {Layout::nn};  // those it can read at all

  // Why it cannot run this problem on this device, or nothing; may be null: runs everywhere.
  std::function<std::optional<std::string>(const Problem&, const Device&)> unsupported;

  // May be null: no model.
  std::function<Traffic(const Problem&, const Device&)> traffic;

  // Seconds of one launch by a model of the kernel, whose constants are measured; null: nothing to
  // choose it by. Kernels that choose among others (Best) ask it. As `traffic`, asked only where
  // `unsupported` has no reason; throws nothing.
  std::function<double(const Problem&, const Device&)> estimate;

  // Untimed, once for each operand set: plans, handles, tensor maps and workspaces are made here
  // and live as long as the Launch does. Throws std::exception if that fails.
  std::function<Launch(const Problem&, const Device&, const Operands&)> prepare;
};

}  // namespace gemm
