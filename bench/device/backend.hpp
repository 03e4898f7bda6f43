// Memory of the operands, timing of batches of launches, and verification: the CPU or one GPU
// behind one interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/base/device_errors.hpp"
#include "bench/device/device.hpp"
#include "bench/device/operand_layout.hpp"
#include "bench/kernel_code/kernel_code.hpp"
#include "bench/verification/fill.hpp"
#include "bench/verification/freivalds.hpp"
#include "bench/verification/renewal.hpp"
#include "bench/verification/verdict.hpp"
#include "kernels/gemm.hpp"

namespace gemm::bench {

using Buffer = std::unique_ptr<std::byte, std::function<void(std::byte*)>>;

// Launches in order, ready to be handed to the device again and again.
class Sequence {
 public:
  virtual ~Sequence() = default;
  // Returns when the first of them, or the graph, was handed over (now_seconds()).
  virtual double enqueue() = 0;
  virtual std::string_view launch() const = 0;  // "stream", "graph" or "call": how they get there
};

// A moment in the device's stream. It may be set again once the device has come so far.
class Mark {
 public:
  virtual ~Mark() = default;
  // With the SM's clock read just before or after the moment, so that it is outside of what begins
  // or ends there. Before it, the device waits for so long, in which the host enqueues what
  // follows.
  enum class Clock { unread, before, after };
  virtual void set(Clock clock = Clock::unread, double head_start_seconds = 0) = 0;
};

// From one mark to another.
struct Elapsed {
  double seconds;
  std::optional<double> sm_hz;  // mean SM clock, by the timers on the GPU where both marks read it
};

// What the method itself costs, in seconds.
struct Overheads {
  double event_pair;  // between two events with nothing between them
  double graph_node;  // an empty kernel in a graph, from one to the next
  double launch;      // the same launched by the host
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const DeviceInfo& device() const = 0;
  // Measured rates of the memories, in bytes per second, for device(); of a GPU only.
  virtual void set_rates(double /*dram*/, double /*l2*/) {}
  virtual std::string_view timer() const = 0;
  virtual std::optional<Overheads> overheads() = 0;  // measured by each call; none on a CPU
  virtual double free_bytes() const = 0;

  virtual Buffer allocate(std::int64_t bytes) = 0;  // 256-byte aligned; throws OutOfMemory
  virtual void fill(void* to, ElementType type, std::int64_t count, Fill fill,
                    std::uint64_t seed) = 0;
  // Scales of A or of B.
  virtual void fill_scales(const float* to, std::int64_t count, Fill fill, std::uint64_t seed) = 0;
  // The element at (i, j) of each of `count` matrices changes its sign where exactly one of row i
  // and column j is flipped (Signs::flips).
  virtual void flip(void* matrices, ElementType type, std::int64_t count, std::int64_t rows,
                    std::int64_t columns, const Signs& signs) = 0;
  // Enqueues new values for all that is read of each set, which depend on the seed, the set and the
  // place alone (verification/renewal.hpp), and NaN for C.
  virtual void renew(const RingMemory& ring, std::uint64_t seed) = 0;
  // Enqueues the check of the sets at these places, at most kMostPlaces, whose values are by that
  // seed: C holds their product (some elements exactly, all rows by Freivalds' check), A, B and the
  // guards are as they were written, and C does not change meanwhile. `secret` was drawn after
  // their launches.
  static constexpr std::int64_t kMostPlaces = 128;
  virtual std::unique_ptr<PendingVerdict> check_renewed(const RingMemory& ring, std::uint64_t seed,
                                                        std::span<const std::int64_t> places,
                                                        std::uint64_t secret) = 0;
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
  // Waits for all that runs on the device, on whatever stream.
  virtual void finish_all() = 0;
  // Every byte 0xff: NaN in each floating-point type, and -1 in the integers.
  virtual void poison(void* to, std::int64_t bytes) = 0;

  // expected = A*B and magnitude = |A|*|B|, each as many elements as C, in FP64 from the operands,
  // which are stored in the problem's layout, with their scales.
  virtual void reference(const Problem& p, const Operands& operands, double* expected,
                         double* magnitude) = 0;
  // C of the set; the product, without the epilogue, is that of operands without signs.
  virtual Verdict judge(const Problem& p, const Operands& set, const double* expected,
                        const double* magnitude, const Bound& bound, const Signs& signs = {}) = 0;

  // Freivalds' check, where the FP64 product is too large or takes too long
  // (verification/freivalds.hpp). Throws OutOfMemory.
  virtual Verdict judge_rows(const Problem& p, const Operands& operands, std::uint64_t secret) = 0;

  // Runs one launch to its end. Throws std::runtime_error if it fails, DeviceLost if for good.
  virtual void run(const Launch& launch) = 0;
  // The GPU kernels that a launch runs, as far as that can be known
  // (bench/kernel_code/kernel_code.hpp).
  virtual LaunchedKernels kernels_of(const Launch& launch) = 0;
  // As one CUDA graph if `graph`. The launches must outlive it.
  virtual std::unique_ptr<Sequence> sequence(std::vector<const Launch*> launches, bool graph) = 0;
  virtual std::unique_ptr<Mark> mark() = 0;
  // Waits until the device has come to the later one. Both are this backend's.
  virtual Elapsed between(const Mark& from, const Mark& to) = 0;
};

std::unique_ptr<Backend> make_host_backend();

// Null where there is no GPU or the build has no CUDA, with why in `reason`. Throws
// std::runtime_error if there are GPUs but not this one, or the driver is older than the runtime.
// A GPU that does not finish within `patience_seconds` counts as lost; its memory can then not be
// freed, since freeing waits for the GPU.
std::unique_ptr<Backend> make_cuda_backend(int index, std::string& reason,
                                           double patience_seconds = 60);

}  // namespace gemm::bench
