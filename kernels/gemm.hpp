// The interface between a kernel and its caller: C = A * B.
//
// A is m x k, B is k x n, C is m x n, all dense and row-major, except that A or B may be stored
// transposed (Layout). m, n, k >= 1. Offsets need 64 bits: matrices may have more than 2^31
// elements. A batch is so many products of one size: all A are one after another without a gap, so
// are all B and all C. Groups are a batch whose products differ in their rows of A and C (Tokens).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/precision.hpp"

struct CUstream_st;

namespace gemm {

// The same type as cudaStream_t, declared here so that CPU-only builds need no CUDA header.
using Stream = CUstream_st*;

// How A and B are stored, A's letter first: n as they are, t transposed. A of layout tn is k x m
// and row-major, its columns contiguous.
enum class Layout : std::int16_t { nn, nt, tn, tt };

constexpr bool transposes_a(Layout layout) { return layout == Layout::tn || layout == Layout::tt; }
constexpr bool transposes_b(Layout layout) { return layout == Layout::nt || layout == Layout::tt; }

// How the rows of all A and C, m on average, are shared out to the products of a batch, as a router
// shares out tokens to experts: all alike, which is a plain batch; uniformly within 0.7 to 1.3 of
// the average; as Zipf's law has it; or as it once was with 32 experts of a model.
enum class Tokens : std::int8_t { equal, band, zipf, real };

// What happens to an element of the product before it is stored: nothing; the bias of its column is
// added; then GELU in its tanh form is applied; or the element of another matrix like C is added.
enum class Activation : std::int8_t { none, bias, bias_gelu, residual };

struct Problem {
  std::int64_t m, n, k;
  Precision precision;
  Layout layout = Layout::nn;
  std::int32_t batch = 1;  // products, at least 1
  Tokens tokens = Tokens::equal;
  Activation activation = Activation::none;
  std::uint16_t tokens_seed = 0;  // of `tokens`
  bool operator==(const Problem&) const = default;
};
// Kernels take it by value: with another size their machine code would change.
static_assert(sizeof(Problem) == 40);

// Elements of all A, all B and all C of a batch.
constexpr std::int64_t elements_of_a(const Problem& p) { return p.batch * p.m * p.k; }
constexpr std::int64_t elements_of_b(const Problem& p) { return p.batch * p.k * p.n; }
constexpr std::int64_t elements_of_c(const Problem& p) { return p.batch * p.m * p.n; }

// A product of a batch, alone.
constexpr Problem one_of(Problem p) {
  p.batch = 1;
  return p;
}

// Operations of the problem itself, without the padding of tiles; integer operations count alike.
constexpr double flop(const Problem& p) { return 2.0 * p.batch * p.m * p.n * p.k; }

// The number of parts that cover the whole.
constexpr std::int64_t ceil_div(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}

// Elements of the bias, and of the matrix that is added to C.
constexpr std::int64_t elements_of_bias(const Problem& p) {
  return p.activation == Activation::bias || p.activation == Activation::bias_gelu ? p.n : 0;
}
constexpr std::int64_t elements_of_residual(const Problem& p) {
  return p.activation == Activation::residual ? p.m * p.n : 0;
}

// Each input read once, the output written once.
constexpr double bytes_minimum(const Problem& p) {
  const PrecisionTraits& traits = traits_of(p.precision);
  const double added = p.activation == Activation::none       ? 0
                       : p.activation == Activation::residual ? 1.0 * p.m * p.n
                                                              : 1.0 * p.n;
  return p.batch * (traits.input_bytes * (1.0 * p.m * p.k + 1.0 * p.k * p.n) +
                    traits.output_bytes * (1.0 * p.m * p.n + added));
}

// The device properties that kernels use.
struct Device {
  enum class Kind { cpu, gpu };
  Kind kind = Kind::cpu;
  std::string name;
  int compute_capability = 0;  // 90 for 9.0; 0 on a CPU
  int sm_count = 0;            // 0 on a CPU
  int cores = 0;               // hardware threads that a CPU kernel may use; 0 on a GPU
  std::int64_t last_level_cache_bytes = 0;
  // For the model of a plan's time: what was measured on the device, or what an H200 has.
  double dram_bytes_per_second = 4.63e12, l2_bytes_per_second = 9.83e12;
  double sm_hz = 1.98e9;  // highest clock of the SMs
  // By size: clusters of so many blocks that fit at once, one block per SM. 0: unknown, or none.
  static constexpr int kPortableCluster = 8;  // larger ones need a GPU that has room for them
  std::array<int, 17> fitting_clusters{};

  // Clusters of so many blocks that fit at once. Estimated where unknown: the blocks of a cluster
  // are in one of the groups of some 16 SMs, of which half a cluster stays idle on average.
  int clusters(int size) const {
    if (fitting_clusters.at(size) > 0 || size > kPortableCluster) return fitting_clusters[size];
    return static_cast<int>((1 - (size - 1) / 32.0) * sm_count / size);
  }
};

// Bytes that one launch moves at each level of memory: a model from tile sizes, which performance
// counters can check.
struct Traffic {
  double dram;  // every matrix once, plus what the kernel stores and loads again
  double l2;    // 32-byte sectors that its warps load and store in global memory, L1 hits included
  double shared;  // 128 bytes per wavefront, so that bank conflicts count
};

// Device pointers. c may hold anything before a launch, NaN included. The others are null where the
// problem has none.
struct Operands {
  const void* a;
  const void* b;
  void* c;
  // Factors of blocks of A and B (Precision::e4m3block).
  const float* a_scales = nullptr;
  const float* b_scales = nullptr;
  const void* bias = nullptr;      // n elements of the type of C (Activation)
  const void* residual = nullptr;  // m x n, as C
};

// Those of product `which` of a batch, from 0.
inline Operands operands_of_product(const Problem& p, const Operands& all, std::int64_t which) {
  const PrecisionTraits& traits = traits_of(p.precision);
  return {static_cast<const std::byte*>(all.a) + which * p.m * p.k * traits.input_bytes,
          static_cast<const std::byte*>(all.b) + which * p.k * p.n * traits.input_bytes,
          static_cast<std::byte*>(all.c) + which * p.m * p.n * traits.output_bytes};
}

// The timed step. It only enqueues on the stream (on a CPU: computes). It may run any number of
// times, one launch after another: launches may share a workspace.
using Launch = std::function<void(Stream)>;

// What one launch of a plan asks of a device, from which parts/cost.hpp predicts its time.
struct Work {
  Traffic traffic;
  double cycles;         // of an SM's arithmetic units at their peak rate, on average of all SMs
  double busiest = 1;    // share of the SM with most work, relative to that average
  double lines = 0;      // bytes of the cache lines that all SMs load; 0: the traffic of the L2
  double packed = 0;     // of the traffic: bytes that a launch before it moves
  double launches = 1;   // one after another
  double tiles = 1;      // that an SM begins with nothing to compute meanwhile
  double tail = 0;       // bytes that it stores and adds meanwhile: elements of C and partial sums
  double exchanges = 0;  // of partial sums for which it waits, one after another
};

// One way of computing a problem on a device, such as a tile shape with its schedule.
struct Candidate {
  std::string plan;  // its name, unique among the candidates of a kernel for a problem
  Work work;
  std::function<Launch(const Operands&)> prepare;  // as Kernel::prepare
};

// The plan that a kernel runs, and where it comes from: "tried" now, "cached" from an earlier
// trial, "nearest" from a trial with another m, or "model".
struct PlanChoice {
  std::string name, source;
  bool operator==(const PlanChoice&) const = default;
};

struct Parameter {
  std::string name, value;
};

// Whether a kernel computes a batch: never, as well as one product, or nothing else.
enum class Batches { none, also, only };

struct Kernel {
  std::string name;                   // "Tiled", as in --benchmark_filter and in figures
  std::vector<Parameter> parameters;  // "tile:16": distinguishes variants of a kernel
  std::string_view idea;              // what this rung adds, in one sentence
  std::string_view source;            // where the idea comes from
  int rung = 0;                       // position on the ladder, simplest first; 0 for a library
  bool variant = false;               // a point of a tuning space, run only on request
  bool rearranges = false;  // prepare copies A or B into another layout, again for new values
  std::vector<Precision> precisions;           // those that it supports
  std::vector<Layout> layouts = {Layout::nn};  // those that it supports
  // Registration completes `unsupported` by these two.
  Batches batches = Batches::none;
  std::vector<Activation> activations = {Activation::none};  // those that it supports

  // The reason why it cannot run this problem on this device, or nothing. Null: it runs everywhere.
  std::function<std::optional<std::string>(const Problem&, const Device&)> unsupported;

  // Null if there is no model.
  std::function<Traffic(const Problem&, const Device&)> traffic;

  // What a launch asks of the device; null if there is no model of it. Best considers only kernels
  // that have it. Called, as `traffic` is, only where `unsupported` has no reason; must not throw.
  std::function<Work(const Problem&, const Device&)> work;

  // The plans among which a kernel chooses, at least one; null if it has only one. Registration
  // derives `traffic`, `work` and `prepare` from it: the kernel runs the plan of which the model
  // (parts/cost.hpp) predicts the shortest time. Called as `work` is.
  std::function<std::vector<Candidate>(const Problem&, const Device&)> candidates;

  // The plan of a problem that was prepared; null if the kernel has only one. Registration derives
  // it, too.
  std::function<std::optional<PlanChoice>(const Problem&, const Device&)> chosen;

  // Untimed, once per operand set: makes plans, handles, tensor maps and workspaces, which live as
  // long as the Launch. Throws std::exception on failure.
  std::function<Launch(const Problem&, const Device&, const Operands&)> prepare;
};

}  // namespace gemm
