// End to end on a GPU: copies to the device, the kernel and the copy back, in one stream.
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

class CudaEndToEnd : public EndToEnd {
 public:
  CudaEndToEnd(Backend& backend, const Transferred& what, std::span<const Operands> sets)
      : backend_(backend), layout_(what.problem) {
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
    for (Set& set : sets_) {
      std::byte* device = set.device.get();
      set.kernel = what.prepare({device + layout_.a, device + layout_.b, device + layout_.c});
    }
  }

  std::vector<Launch> launches(Part part) override {
    std::vector<Launch> all;
    for (const Set& set : sets_)
      all.emplace_back([this, &set, part](Stream stream) {
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
  };

  // Checked beforehand: a system promises more memory than it has.
  void require(double free, std::size_t count) const {
    const double needed = static_cast<double>(layout_.total) * static_cast<double>(count);
    if (needed <= free) return;
    const auto text = [](double bytes) { return std::to_string(std::llround(bytes * 1e-6)); };
    throw OutOfMemory("needs " + text(needed) + " MB of memory of the host, " + text(free) +
                      " are free");
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
  OperandLayout layout_;
  std::vector<Set> sets_;
};

}  // namespace

std::unique_ptr<EndToEnd> make_cuda_end_to_end(Backend& backend, const Transferred& what,
                                               std::span<const Operands> sets) {
  return std::make_unique<CudaEndToEnd>(backend, what, sets);
}

}  // namespace gemm::bench
