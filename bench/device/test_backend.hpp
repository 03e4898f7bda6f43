// Backends for tests: the GPU that is there, and one that forwards to another, to change a little.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/device/backend.hpp"

namespace gemm::bench {

// Null without a GPU.
inline Backend* cuda() {
  static std::string reason;
  static const std::unique_ptr<Backend> backend = make_cuda_backend(0, reason);
  return backend.get();
}

#define SKIP_WITHOUT_GPU() \
  if (cuda() == nullptr) GTEST_SKIP() << "no GPU"

inline Buffer upload(Backend& backend, const void* from, std::int64_t bytes) {
  Buffer memory = backend.allocate(bytes);
  backend.copy(memory.get(), from, bytes);
  return memory;
}

class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(Backend& real) : real_(real) {}
  const DeviceInfo& device() const override { return real_.device(); }
  std::string_view timer() const override { return real_.timer(); }
  std::optional<Overheads> overheads() override { return real_.overheads(); }
  double free_bytes() const override { return real_.free_bytes(); }
  Buffer allocate(std::int64_t bytes) override { return real_.allocate(bytes); }
  void fill(void* to, ElementType type, std::int64_t count, Fill fill,
            std::uint64_t seed) override {
    real_.fill(to, type, count, fill, seed);
  }
  void fill_scales(const float* to, std::int64_t count, Fill fill, std::uint64_t seed) override {
    real_.fill_scales(to, count, fill, seed);
  }
  void renew(const RingMemory& ring, std::uint64_t seed) override { real_.renew(ring, seed); }
  std::unique_ptr<PendingVerdict> check_renewed(const RingMemory& ring, std::uint64_t seed,
                                                std::span<const std::int64_t> places,
                                                std::uint64_t secret) override {
    return real_.check_renewed(ring, seed, places, secret);
  }
  void copy(void* to, const void* from, std::int64_t bytes) override {
    real_.copy(to, from, bytes);
  }
  void poison(void* to, std::int64_t bytes) override { real_.poison(to, bytes); }
  void reference(const Problem& p, const Operands& operands, double* expected,
                 double* magnitude) override {
    real_.reference(p, operands, expected, magnitude);
  }
  void flip(void* matrices, ElementType type, std::int64_t count, std::int64_t rows,
            std::int64_t columns, const Signs& signs) override {
    real_.flip(matrices, type, count, rows, columns, signs);
  }
  void finish_all() override { real_.finish_all(); }
  Verdict judge(const Problem& p, const Operands& set, const double* expected,
                const double* magnitude, const Bound& bound, const Signs& signs) override {
    return real_.judge(p, set, expected, magnitude, bound, signs);
  }
  Verdict judge_rows(const Problem& p, const Operands& operands, std::uint64_t secret) override {
    return real_.judge_rows(p, operands, secret);
  }
  void run(const Launch& launch) override { real_.run(launch); }
  LaunchedKernels kernels_of(const Launch& launch) override { return real_.kernels_of(launch); }
  std::unique_ptr<Sequence> sequence(std::vector<const Launch*> launches, bool graph) override {
    return real_.sequence(std::move(launches), graph);
  }
  std::unique_ptr<Mark> mark() override { return real_.mark(); }
  Elapsed between(const Mark& from, const Mark& to) override { return real_.between(from, to); }

 private:
  Backend& real_;
};

}  // namespace gemm::bench
