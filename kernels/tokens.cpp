#include "kernels/tokens.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <random>
#include <stdexcept>

namespace gemm {
namespace {

// Tokens of 32 experts in a layer of a model whose loads are not balanced (DeepGEMM, issue 211,
// 2025). Seven have none, and the largest has a fifth of all.
constexpr std::array kLoads = {4,  1026, 1799, 166, 694, 753, 0,  16,  0,   240, 1119,
                               19, 6,    0,    46,  659, 10,  0,  112, 808, 181, 0,
                               28, 22,   90,   0,   176, 0,   37, 5,   10,  22};

constexpr std::string_view kNames[] = {"", "band", "zipf", "real"};  // of Tokens

// The engine's numbers are the standard's, those of its distributions are not.
void shuffle(std::vector<double>& all, std::mt19937_64& random) {
  for (std::size_t left = all.size(); left > 1; --left)
    std::swap(all[left - 1], all[random() % left]);
}

std::vector<double> weights_of(const Problem& p) {
  std::mt19937_64 random(p.tokens_seed);
  std::vector<double> weights;
  for (std::int64_t which = 0; which < p.batch; ++which) {
    // Of a band in integers: compilers may round a sum of a product once or twice.
    constexpr std::uint64_t kOne = std::uint64_t{1} << 32;
    weights.push_back(p.tokens == Tokens::band
                          ? static_cast<double>(7 * kOne + 6 * (random() % kOne))
                      : p.tokens == Tokens::zipf ? 1 / static_cast<double>(which + 1)
                                                 : kLoads[which % kLoads.size()]);
  }
  // The published order is seed 0's.
  if (p.tokens == Tokens::zipf || (p.tokens == Tokens::real && p.tokens_seed != 0))
    shuffle(weights, random);
  return weights;
}

}  // namespace

std::optional<Tokens> tokens_named(std::string_view name) {
  const auto found = std::find(std::begin(kNames) + 1, std::end(kNames), name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Tokens>(found - std::begin(kNames));
}

std::string name_of_tokens(const Problem& p) {
  return std::string(kNames[static_cast<int>(p.tokens)]) +
         (p.tokens_seed == 0 ? "" : ":" + std::to_string(p.tokens_seed));
}

// Shares are rounded down; what is left goes to the largest remainders, of equal ones to the first.
std::vector<std::int64_t> row_starts(const Problem& p) {
  std::vector<std::int64_t> starts(p.batch + 1);
  if (!is_grouped(p)) {
    for (std::int64_t which = 0; which <= p.batch; ++which) starts[which] = which * p.m;
    return starts;
  }
  if (p.batch > kMostGroups || p.m > kMostGroupedRows / p.batch)
    throw std::invalid_argument("groups are at most " + std::to_string(kMostGroups) + " with " +
                                std::to_string(kMostGroupedRows) + " rows in all");
  const std::vector<double> weights = weights_of(p);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const std::int64_t all = p.batch * p.m;
  std::int64_t left = all;
  std::vector<std::pair<double, std::int64_t>> remainders;
  for (std::int64_t which = 0; which < p.batch; ++which) {
    const double share = weights[which] / sum * static_cast<double>(all);
    const auto rows = static_cast<std::int64_t>(share);
    starts[which + 1] = rows;
    left -= rows;
    remainders.emplace_back(static_cast<double>(rows) - share, which);
  }
  std::ranges::sort(remainders);
  for (std::int64_t i = 0; i < left; ++i) ++starts[remainders[i % p.batch].second + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  return starts;
}

double compulsory_bytes(const Problem& p) {
  if (!is_grouped(p)) return bytes_minimum(p) + bytes_of_scales(p);
  const Products products(p);
  std::int64_t empty = 0;
  for (std::int64_t which = 0; which < p.batch; ++which) empty += products.rows(which) == 0 ? 1 : 0;
  const double of_b = 1.0 * traits_of(p.precision).input_bytes * static_cast<double>(p.k) *
                          static_cast<double>(p.n) +
                      sizeof(float) * static_cast<double>(scales_of_each_b(p));
  return bytes_minimum(p) + bytes_of_scales(p) - static_cast<double>(empty) * of_b;
}

Products::Products(const Problem& p) : Problem(p) {
  if (!is_grouped(p)) return;
  const std::vector<std::int64_t> starts = row_starts(p);
  std::ranges::transform(starts, starts_,
                         [](std::int64_t row) { return static_cast<std::int32_t>(row); });
}

}  // namespace gemm
