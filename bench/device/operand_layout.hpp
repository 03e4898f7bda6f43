// Where the matrices of operand sets lie. Each set is: guard, A, guard, B, guard, C, guard; between
// B and C the scales of A and of B, the bias and the residual, each with a guard, where the problem
// has any. The guards are NaN (-1 in integers): reads beyond a matrix make the result wrong, and
// writes there are found. The last one has room for a tile that is not cut at the end of C.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "bench/verification/fill.hpp"
#include "kernels/gemm.hpp"

namespace gemm::bench {

constexpr std::int64_t kGuardBytes = 16 << 10;

// Offsets of the matrices of a set in its memory, and the bytes of each and of the whole.
struct OperandLayout {
  std::int64_t a_bytes, b_bytes, a_scales_bytes, b_scales_bytes, bias_bytes, residual_bytes,
      c_bytes;
  std::int64_t a, b, a_scales, b_scales, bias, residual, c, total;
  explicit OperandLayout(const Problem& p);
  // At least the whole, of shapes too whose bytes overflow an integer.
  static double most_bytes(const Problem& p);

  // From and to, in bytes.
  std::array<std::pair<std::int64_t, std::int64_t>, 7> guards_before_c() const {
    return {{{0, a},
             {a + a_bytes, b},
             {b + b_bytes, a_scales},
             {a_scales + a_scales_bytes, b_scales},
             {b_scales + b_scales_bytes, bias},
             {bias + bias_bytes, residual},
             {residual + residual_bytes, c}}};
  }
  Operands at(std::byte* base) const {
    const auto found = [&](std::int64_t offset, std::int64_t bytes) {
      return bytes == 0 ? nullptr : base + offset;
    };
    return {base + a,
            base + b,
            base + c,
            reinterpret_cast<const float*>(found(a_scales, a_scales_bytes)),
            reinterpret_cast<const float*>(found(b_scales, b_scales_bytes)),
            found(bias, bias_bytes),
            found(residual, residual_bytes)};
  }

  // Where the guards of a set are no longer as they were written, from C's end on or before C
  // (Verdict::outside_bytes); 0 if they are. `read(from, to)` gives these bytes of the set.
  template <typename Read>
  std::int64_t outside_bytes(Read&& read) const {
    const auto changed = [](std::byte one) { return one != std::byte{0xff}; };
    const auto behind = read(c + c_bytes, total);
    if (const auto first = std::ranges::find_if(behind, changed); first != behind.end())
      return first - behind.begin() + 1;
    std::int64_t before = 0;
    for (const auto& [from, to] : guards_before_c()) {
      const auto guard = read(from, to);
      const auto last = std::find_if(guard.rbegin(), guard.rend(), changed);
      if (last != guard.rend()) before = guard.rend() - last - 1 + from - c;
    }
    return before;
  }
};

// Operand sets of a problem, one behind the other, whose values are renewed together.
struct RingMemory {
  Problem problem;
  Fill fill;
  std::byte* base;
  std::int64_t sets;

  OperandLayout layout() const { return OperandLayout(problem); }
  Operands operands(std::int64_t set) const {
    const OperandLayout where = layout();
    return where.at(base + set * where.total);
  }
};

}  // namespace gemm::bench
