#include "bench/device/problem_data.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "bench/base/device_errors.hpp"
#include "bench/base/text.hpp"
#include "bench/verification/scales.hpp"
#include "bench/verification/wrong_pattern.hpp"
#include "kernels/layout.hpp"

namespace gemm::bench {
namespace {

constexpr double kReserveBytes = 256 << 20;  // left to handles, workspaces and graphs

std::string gigabytes(double bytes) { return formatted("%.3g GB", bytes * 1e-9); }

template <typename T>
T read_as(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                                                       : std::numeric_limits<double>::infinity())
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

// An element of an output.
double stored_value(const unsigned char* from, ElementType type) {
  if (type == ElementType::f32) return read_as<float>(from);
  if (type == ElementType::f64) return read_as<double>(from);
  if (type == ElementType::s32) return read_as<std::int32_t>(from);
  if (type == ElementType::bf16)
    return std::bit_cast<float>(std::uint32_t{read_as<std::uint16_t>(from)} << 16);
  if (type == ElementType::f16) return half_value(read_as<std::uint16_t>(from));
  throw std::logic_error("no output is of this type");
}

// Of each set but the first.
Signs signs_of(std::int64_t set) {
  const auto seed = 2 * static_cast<std::uint64_t>(set);
  return set == 0 ? Signs{} : Signs{1000 + seed, 1001 + seed};
}

}  // namespace

double ProblemData::bytes_needed(const Problem& p, std::int64_t count_of_sets,
                                 Reference reference) {
  const double each = OperandLayout::most_bytes(p);
  const double checks =
      p.batch * (reference == Reference::product ? 2.0 * sizeof(double) * p.m * p.n
                                                 : sizeof(RowCheck) * (1.0 * p.m + p.k));
  return each * static_cast<double>(count_of_sets) + checks;
}

ProblemData::ProblemData(Backend& backend, const Problem& p, Fill fill, std::uint64_t seed,
                         std::int64_t count_of_sets, Reference reference)
    : backend_(backend), problem_(p), fill_(fill), seed_(seed), compared_with_(reference) {
  const OperandLayout layout(p);
  for (std::int64_t set = 0; set < count_of_sets; ++set) {
    memory_.push_back(backend.allocate(layout.total));
    std::byte* base = memory_.back().get();
    backend.poison(base, layout.total);
    sets_.push_back(layout.at(base));
  }
  fill_sets();
  if (reference == Reference::rows) return;
  const std::int64_t count = elements_of_c(p);
  reference_ = backend.allocate(2 * sizeof(double) * count);
  auto* expected = reinterpret_cast<double*>(reference_.get());
  backend.reference(p, sets_[0], expected, expected + count);
}

// The same values and scales in each set but for the values' signs: one product serves all. What an
// epilogue adds differs.
void ProblemData::fill_sets() {
  const Problem& p = problem_;
  const Products products(p);
  const ElementType input = traits_of(p.precision).input, output = traits_of(p.precision).output;
  for (std::int64_t set = 0; set < std::ssize(sets_); ++set) {
    const Operands& to = sets_[set];
    backend_.fill(const_cast<void*>(to.a), input, elements_of_a(p), fill_, 2 * seed_);
    backend_.fill(const_cast<void*>(to.b), input, elements_of_b(p), fill_, 2 * seed_ + 1);
    backend_.fill_scales(to.a_scales, scales_of_a(p), fill_, mixed_bits(2 * seed_));
    backend_.fill_scales(to.b_scales, scales_of_b(p), fill_, mixed_bits(2 * seed_ + 1));
    const std::uint64_t added = random_bits(seed_, static_cast<std::uint64_t>(set));
    backend_.fill(const_cast<void*>(to.bias), output, elements_of_bias(p), fill_, added);
    backend_.fill(const_cast<void*>(to.residual), output, elements_of_residual(p), fill_, added);
    const Signs signs = signs_of(set);
    if (signs.of_rows == 0) continue;
    const auto flip = [&](const void* matrices, bool transposed, std::int64_t count,
                          std::int64_t rows, std::int64_t columns, const Signs& by) {
      backend_.flip(const_cast<void*>(matrices), input, count, transposed ? columns : rows,
                    transposed ? rows : columns,
                    transposed ? Signs{by.of_columns, by.of_rows} : by);
    };
    if (!is_grouped(p)) flip(to.a, transposes_a(p.layout), p.batch, p.m, p.k, {signs.of_rows, 0});
    for (std::int64_t which = 0; is_grouped(p) && which < p.batch; ++which)
      if (const std::int64_t rows = products.rows(which); rows > 0)
        flip(products.operands(to, which).a, transposes_a(p.layout), 1, rows, p.k,
             {signs.of_rows, 0});
    flip(to.b, transposes_b(p.layout), p.batch, p.k, p.n, {0, signs.of_columns});
  }
}

void ProblemData::poison() {
  for (const Operands& set : sets_) backend_.poison(set.c, OperandLayout(problem_).c_bytes);
}

Verdict ProblemData::judge(const Problem& p, std::int64_t count) const {
  const OperandLayout layout(p);
  const auto* expected = reinterpret_cast<const double*>(reference_.get());
  const Bound bound = bound_for(p);
  Verdict verdict;
  for (std::int64_t set = 0; set < count; ++set) {
    verdict.merge(compared_with_ == Reference::product
                      ? backend_.judge(p, sets_[set], expected, expected + elements_of_c(p), bound,
                                       signs_of(set))
                      : backend_.judge_rows(p, sets_[set], secret_bits()));
    const std::byte* const base = memory_[set].get();
    verdict.merge({.outside_bytes = layout.outside_bytes([&](std::int64_t from, std::int64_t to) {
      std::vector<std::byte> guard(to - from);
      backend_.copy(guard.data(), base + from, to - from);
      return guard;
    })});
    if (!verdict.passed()) break;  // the message is about one C
  }
  return verdict;
}

std::string ProblemData::pattern(const Problem& p, std::int64_t count) const {
  constexpr std::int64_t kMostElements = 1 << 25;
  if (compared_with_ == Reference::rows || p.activation != Activation::none) return "";
  const auto* expected = reinterpret_cast<const double*>(reference_.get());
  const Bound bound = bound_for(p);
  std::int64_t set = 0;
  Verdict verdict;
  while (set < count && verdict.wrong == 0) {
    verdict =
        backend_.judge(p, sets_[set], expected, expected + elements_of_c(p), bound, signs_of(set));
    if (verdict.wrong == 0) ++set;
  }
  if (set == count) return "";  // only the memory around C is wrong

  // Of a batch the first product that is wrong.
  const Products products(p);
  const std::int64_t which = place_in_c(products, verdict.first_wrong).which;
  const std::int64_t elements = products.rows(which) * p.n;
  if (elements > kMostElements) return "";
  const std::int64_t bytes = elements * traits_of(p.precision).output_bytes;
  std::vector<unsigned char> c(bytes);
  backend_.copy(c.data(), products.operands(sets_[set], which).c, bytes);
  Compared compared{
      .m = products.rows(which), .n = p.n, .c = {}, .expected = {}, .bound = {}, .unwritten = {}};
  const auto fetch = [&](const double* from, std::vector<double>& to) {
    to.resize(elements);
    backend_.copy(to.data(), from + products.before_c(which), to.size() * sizeof(double));
  };
  fetch(expected, compared.expected);
  fetch(expected + elements_of_c(p), compared.bound);
  const std::size_t width = bytes / elements;
  for (std::size_t i = 0; i < c.size() / width; ++i) {
    const unsigned char* element = c.data() + i * width;
    compared.c.push_back(stored_value(element, traits_of(p.precision).output));
    compared.unwritten.push_back(
        std::all_of(element, element + width, [](unsigned char byte) { return byte == 0xff; }));
    compared.expected[i] *=
        signs_of(set).at(static_cast<std::int64_t>(i) / p.n, static_cast<std::int64_t>(i) % p.n);
    compared.bound[i] = bound(compared.expected[i], compared.bound[i]);
  }
  const std::string found = wrong_pattern(compared);
  return found.empty() || p.batch == 1 ? found
                                       : "in product " + std::to_string(which) + " " + found;
}

bool ProblemData::serves(const Problem& p, std::int64_t sets) const {
  const PrecisionTraits &mine = traits_of(problem_.precision), &theirs = traits_of(p.precision);
  return std::ssize(sets_) >= sets && problem_.m == p.m && problem_.n == p.n && problem_.k == p.k &&
         problem_.batch == p.batch && problem_.tokens == p.tokens &&
         problem_.tokens_seed == p.tokens_seed && problem_.activation == p.activation &&
         problem_.layout == p.layout && mine.input == theirs.input &&
         mine.output == theirs.output && has_scales(mine.precision) == has_scales(theirs.precision);
}

std::shared_ptr<ProblemData> ProblemCache::get(const Problem& p, Reference reference,
                                               std::int64_t sets) {
  const auto found =
      std::ranges::find_if(recent_, [&](const auto& data) { return data->serves(p, sets); });
  if (found != recent_.end()) {
    recent_.splice(recent_.begin(), recent_, found);
    return recent_.front();
  }
  make_room(p, reference, sets);
  recent_.push_front(std::make_shared<ProblemData>(backend_, p, fill_, seed_, sets, reference));
  return recent_.front();
}

void ProblemCache::make_room(const Problem& p, Reference reference, std::int64_t sets) {
  if (holds(p, sets)) return;
  const double needed = ProblemData::bytes_needed(p, sets, reference) + kReserveBytes;
  const double half = 0.5 * static_cast<double>(backend_.device().memory_bytes.value_or(0));
  while (!recent_.empty() && needed + half > backend_.free_bytes()) recent_.pop_back();
  if (const double free = backend_.free_bytes(); needed > free)
    throw OutOfMemory("needs " + gigabytes(needed) + " of memory, " + gigabytes(free) +
                      " are free");
}

bool ProblemCache::holds(const Problem& p, std::int64_t sets) const {
  return std::ranges::any_of(recent_, [&](const auto& data) { return data->serves(p, sets); });
}

void ProblemCache::forget(const Problem& p) {
  recent_.remove_if([&](const auto& data) { return data->serves(p); });
}

}  // namespace gemm::bench
