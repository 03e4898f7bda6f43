// End to end on a GPU: one stream in sequence, or panels on a stream for the copies to the device,
// some for the kernels and one for the copies back.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/base/cuda.hpp"
#include "bench/base/device_errors.hpp"
#include "bench/device/problem_data.hpp"

namespace gemm::bench {
namespace {

// So many kernels of panels side by side: one alone may leave multiprocessors idle at its end.
constexpr std::size_t kKernelsAtOnce = 2;

OwnedEvent untimed_event() { return make_event(cudaEventDisableTiming); }

void wait(cudaStream_t stream, cudaEvent_t event) { check(cudaStreamWaitEvent(stream, event, 0)); }

class CudaEndToEnd : public EndToEnd {
 public:
  CudaEndToEnd(Backend& backend, const Transferred& what, std::span<const Operands> sets)
      : backend_(backend), what_(what), layout_(what.problem) {
    const std::unique_ptr<Backend> host = make_host_backend();
    require(host->free_bytes(), sets.size());
    const bool pageable = what.transfer == Transfer::pageable;
    for (const Operands& given : sets) {
      Set& set = sets_.emplace_back(given);
      set.host = pageable ? host->allocate(layout_.total) : Buffer(pinned_memory(layout_.total));
      set.device = backend.allocate(layout_.total);
      backend.copy(set.host.get() + layout_.a, given.a, layout_.a_bytes);
      backend.copy(set.host.get() + layout_.b, given.b, layout_.b_bytes);
    }
    poison();
    for (Set& set : sets_) set.kernel = prepare(set, {0, what.problem.m});
    if (what.transfer == Transfer::overlapped) prepare_panels();
  }

  std::vector<Launch> launches(Part part) override {
    const bool overlapped = what_.transfer == Transfer::overlapped;
    std::vector<Launch> all;
    for (const Set& set : sets_)
      all.emplace_back([this, &set, part, overlapped](Stream stream) {
        if (part == Part::whole && overlapped) return overlap(set, stream);
        if (part == Part::whole || part == Part::to_device) {
          to_device(set, layout_.a, layout_.a_bytes, stream);
          to_device(set, layout_.b, layout_.b_bytes, stream);
        }
        if (part == Part::whole || part == Part::kernel) set.kernel(stream);
        if (part == Part::whole || part == Part::from_device)
          from_device(set, layout_.c, layout_.c_bytes, stream);
      });
    return all;
  }

  // All of the device's memory, so that a missing copy is found.
  void poison() override {
    for (const Set& set : sets_) {
      backend_.poison(set.device.get(), layout_.total);
      std::memset(set.host.get() + layout_.c, 0xff, layout_.c_bytes);
    }
  }

  void deliver(std::int64_t count) override {
    const std::int64_t end = layout_.c + layout_.c_bytes;
    for (std::int64_t i = 0; i < count; ++i) {
      const Set& set = sets_[i];
      const auto copy = [&](const Buffer& from, std::int64_t offset, std::int64_t bytes) {
        backend_.copy(static_cast<std::byte*>(set.given.c) + (offset - layout_.c),
                      from.get() + offset, bytes);
      };
      copy(set.device, layout_.c - kGuardBytes, kGuardBytes);
      copy(set.host, layout_.c, layout_.c_bytes);
      copy(set.device, end, layout_.total - end);
    }
  }

 private:
  struct Set {
    explicit Set(const Operands& operands) : given(operands) {}
    Operands given;
    Buffer host, device;  // of one layout
    Launch kernel;
    std::vector<Launch> panels;
  };

  // What the panels of all sets share: launches follow each other on the stream that is timed.
  struct Pipeline {
    std::vector<OwnedStream> kernels;
    std::vector<OwnedEvent> arrived, computed;  // of each panel
    OwnedStream in = make_stream(), out = make_stream();
    OwnedEvent begun = untimed_event(), done = untimed_event();
  };

  // Checked beforehand: a system promises more memory than it has.
  void require(double free, std::size_t count) const {
    const double needed = static_cast<double>(layout_.total) * static_cast<double>(count);
    if (needed <= free) return;
    const auto text = [](double bytes) { return std::to_string(std::llround(bytes * 1e-6)); };
    throw OutOfMemory("needs " + text(needed) + " MB of memory of the host, " + text(free) +
                      " are free");
  }

  Launch prepare(const Set& set, const Panel& panel) const {
    std::byte* device = set.device.get();
    return what_.prepare(
        panel_problem(what_.problem, panel),
        {device + layout_.a + of_rows(panel.first, layout_.a_bytes), device + layout_.b,
         device + layout_.c + of_rows(panel.first, layout_.c_bytes)});
  }

  // Panel by panel: what libraries share among equal problems lives while they follow each other.
  void prepare_panels() {
    panels_ = row_panels(what_.problem.m);
    for (const Panel& panel : panels_)
      for (Set& set : sets_) set.panels.push_back(prepare(set, panel));
    const std::size_t kernels = what_.one_at_a_time ? 1 : kKernelsAtOnce;
    pipeline_ = std::make_unique<Pipeline>();
    for (std::size_t i = 0; i < kernels; ++i) pipeline_->kernels.push_back(make_stream());
    for (std::size_t i = 0; i < panels_.size(); ++i) {
      pipeline_->arrived.push_back(untimed_event());
      pipeline_->computed.push_back(untimed_event());
    }
  }

  // Copies to the device are in order: B, then the panels of A. Once a panel is there, so is B.
  void overlap(const Set& set, Stream stream) {
    const Pipeline& on = *pipeline_;
    check(cudaEventRecord(on.begun.get(), stream));
    wait(on.in.get(), on.begun.get());
    to_device(set, layout_.b, layout_.b_bytes, on.in.get());
    for (std::size_t i = 0; i < panels_.size(); ++i) {
      const Panel& panel = panels_[i];
      const cudaStream_t kernels = on.kernels[i % on.kernels.size()].get();
      to_device(set, layout_.a + of_rows(panel.first, layout_.a_bytes),
                of_rows(panel.rows, layout_.a_bytes), on.in.get());
      check(cudaEventRecord(on.arrived[i].get(), on.in.get()));
      wait(kernels, on.arrived[i].get());
      set.panels[i](kernels);
      check(cudaEventRecord(on.computed[i].get(), kernels));
      wait(on.out.get(), on.computed[i].get());
      from_device(set, layout_.c + of_rows(panel.first, layout_.c_bytes),
                  of_rows(panel.rows, layout_.c_bytes), on.out.get());
    }
    check(cudaEventRecord(on.done.get(), on.out.get()));
    wait(stream, on.done.get());
  }

  // Of a matrix with m rows and so many bytes.
  std::int64_t of_rows(std::int64_t rows, std::int64_t bytes) const {
    return rows * (bytes / what_.problem.m);
  }

  static void to_device(const Set& set, std::int64_t offset, std::int64_t bytes, Stream stream) {
    check(cudaMemcpyAsync(set.device.get() + offset, set.host.get() + offset, bytes,
                          cudaMemcpyHostToDevice, stream));
  }
  static void from_device(const Set& set, std::int64_t offset, std::int64_t bytes, Stream stream) {
    check(cudaMemcpyAsync(set.host.get() + offset, set.device.get() + offset, bytes,
                          cudaMemcpyDeviceToHost, stream));
  }

  Backend& backend_;
  Transferred what_;
  OperandLayout layout_;
  std::vector<Set> sets_;
  std::vector<Panel> panels_;
  std::unique_ptr<Pipeline> pipeline_;  // if overlapped
};

}  // namespace

std::unique_ptr<EndToEnd> make_cuda_end_to_end(Backend& backend, const Transferred& what,
                                               std::span<const Operands> sets) {
  return std::make_unique<CudaEndToEnd>(backend, what, sets);
}

}  // namespace gemm::bench
