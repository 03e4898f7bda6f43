// A batch of launches that is timed again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "bench/device/backend.hpp"

namespace gemm::bench {

class Batch {
 public:
  // `count` launches that rotate through `launches` and continue where the last time ended; as CUDA
  // graphs if `graph`. The launches and the backend must outlive it.
  Batch(Backend& backend, std::span<const Launch> launches, std::int64_t count, bool graph);

  // Of the whole batch, which has finished.
  Elapsed time();
  void rewind() { turn_ = 0; }  // the next time begins with the first launch again
  std::int64_t size() const { return count_; }
  std::string_view launch() const { return rounds_[0]->launch(); }

 private:
  Backend& backend_;
  std::int64_t count_;
  std::vector<std::unique_ptr<Sequence>> rounds_;  // until one begins with the first launch again
  std::size_t turn_ = 0;
  std::unique_ptr<Mark> start_, stop_;
  double head_start_;
};

}  // namespace gemm::bench
