// Matrix sizes as a person writes them: "256", "1024x1024x768", "batched:16x512", lists, named
// sets, a JSON file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/gemm.hpp"

namespace gemm::bench {

struct Shape {
  std::int64_t m, n, k;
  std::int32_t batch = 1;
  bool operator==(const Shape&) const = default;
};

inline Shape shape_of(const Problem& p) { return {p.m, p.n, p.k, p.batch}; }

// "1024x1024x768" (m x n x k), of a batch of 16 "batched:16x1024x1024x768"
std::string name_of(const Shape& shape);

// "default, square, ..."
std::string names_of_sets();

// Comma-separated: a cube "256", "MxNxK", a batch of either "batched:16x256", a named set (what it
// holds depends on the kind of device), "random:N:SEED", or the path of a JSON file ending in
// .json: a list of such sizes or of [m, n, k]. Repeated shapes count once. Throws
// std::invalid_argument with one line that names the offending item.
std::vector<Shape> parse_shapes(const std::string& text, Device::Kind kind);

}  // namespace gemm::bench
