// Operands and reference of a problem: made once, shared by every kernel that computes it.
//
// Operand sets differ in the signs of A's rows and B's columns, alike in each product of a batch: a
// result of one set is wrong in another.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/device/backend.hpp"
#include "bench/device/operand_layout.hpp"

namespace gemm::bench {

// What results are compared with: the FP64 product, or, where that is too large or takes too long,
// Freivalds' check.
enum class Reference { product, rows };

class ProblemData {
 public:
  // Throws OutOfMemory.
  ProblemData(Backend& backend, const Problem& p, Fill fill, std::uint64_t seed,
              std::int64_t count_of_sets, Reference reference = Reference::product);

  static double bytes_needed(const Problem& p, std::int64_t count_of_sets, Reference reference);

  std::span<const Operands> sets() const { return sets_; }
  // NaN into every C.
  void poison();
  // The worst of the first `count` sets, or the first that is wrong, under the bound of p, which
  // may differ in precision from the problem this was made for as long as the operands are of the
  // same type.
  Verdict judge(const Problem& p, std::int64_t count) const;
  // What the wrong elements of the first C that is wrong have in common (wrong_pattern.hpp); empty
  // if there are none, for a C that is too large to be looked at, after Freivalds' check, and with
  // an epilogue.
  std::string pattern(const Problem& p, std::int64_t count) const;
  // As many sets, the same operands and the same product, whatever the arithmetic.
  bool serves(const Problem& p, std::int64_t sets = 1) const;

 private:
  void fill_sets();

  Backend& backend_;
  Problem problem_;
  Fill fill_;
  std::uint64_t seed_;
  std::vector<Buffer> memory_;
  std::vector<Operands> sets_;
  Reference compared_with_;
  Buffer reference_;  // FP64: the product, then the magnitudes; none for Freivalds' check
};

// Keeps the data of recent problems while half of the memory stays free.
class ProblemCache {
 public:
  // Without rotation each problem has one operand set.
  ProblemCache(Backend& backend, Fill fill, std::uint64_t seed, bool rotate = true)
      : backend_(backend), fill_(fill), seed_(seed), rotate_(rotate) {}

  // To verify: a kernel could be right on one by what it kept of another.
  std::int64_t sets() const { return rotate_ ? 2 : 1; }

  // With at least so many sets. Throws OutOfMemory, saying how much is needed and how much there
  // is, if it does not fit even alone.
  std::shared_ptr<ProblemData> get(const Problem& p, Reference reference, std::int64_t sets);
  // Evicts cached problems until p fits; throws like get if it does not.
  void make_room(const Problem& p, Reference reference, std::int64_t sets);
  bool holds(const Problem& p, std::int64_t sets) const;
  // After a kernel went wrong: it may have written anywhere, and the next one must not be blamed
  // for it.
  void forget(const Problem& p);
  // Frees the device's memory.
  void clear() { recent_.clear(); }

 private:
  Backend& backend_;
  Fill fill_;
  std::uint64_t seed_;
  bool rotate_;
  std::list<std::shared_ptr<ProblemData>> recent_;  // latest first
};

}  // namespace gemm::bench
