// Matrix sizes as a person writes them: "256", "1024x1024x768", "batched:16x512",
// "grouped:8x512/zipf", lists, named sets, a JSON file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/gemm.hpp"

namespace gemm::bench {

struct Shape {
  std::int64_t m, n, k;
  std::int32_t batch = 1;
  Tokens tokens = Tokens::equal;
  std::uint16_t tokens_seed = 0;
  bool operator==(const Shape&) const = default;
};

inline Shape shape_of(const Problem& p) {
  return {p.m, p.n, p.k, p.batch, p.tokens, p.tokens_seed};
}
inline Problem problem_of(const Shape& shape, Precision precision = {}, Layout layout = {}) {
  return {.m = shape.m,
          .n = shape.n,
          .k = shape.k,
          .precision = precision,
          .layout = layout,
          .batch = shape.batch,
          .tokens = shape.tokens,
          .tokens_seed = shape.tokens_seed};
}

// "1024x1024x768" (m x n x k), of a batch of 16 "batched:16x1024x1024x768", of 8 groups with 512
// rows on average "grouped:8x512x4096x7168/zipf", with a seed other than 0 "/zipf:3". `short`: one
// size where m, n and k are equal.
std::string name_of(const Shape& shape, bool shortened = false);

// "default, square, ..."
std::string names_of_sets();

// Comma-separated: a cube "256", "MxNxK", a batch of either "batched:16x256",
// groups "grouped:8x256/zipf" (kernels/tokens.hpp), a named set (what it
// holds depends on the kind of device), "random:N:SEED", or the path of a JSON file ending in
// .json: a list of such sizes or of [m, n, k]. Repeated shapes count once. Throws
// std::invalid_argument with one line that names the offending item.
std::vector<Shape> parse_shapes(const std::string& text, Device::Kind kind);

}  // namespace gemm::bench
