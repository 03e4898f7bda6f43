#include "bench/cases/shapes.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "bench/base/text.hpp"
#include "bench/verification/fill.hpp"
#include "kernels/tokens.hpp"

namespace gemm::bench {
namespace {

constexpr std::int64_t kLargest = 0x7fffffff;  // what the libraries take

struct Set {
  std::string_view name, gpu, cpu;
};

// 1020 = 4 * 3 * 5 * 17 is an edge in every tile; 1024x1024x768 is not square.
constexpr Set kSets[] = {
    {"default", "512,1020,2048,4096", "128,256,512,1000,1024,1024x1024x768"},
    {"square", "256,512,1024,2048,3072,4096,5120,6144,8192,16384", "128,256,512,1024,2048"},
    {"quick", "512,2048", "128,256"},
    // No size is a multiple of a tile; the last two are DeepBench's (speech, sizes 5124 and 35).
    {"ragged",
     "127x129x131,255x257x513,1000,1023x1025x1021,2047x2049x2045,4092,4097,8191,"
     "5124x9124x2560,35x8457x2560",
     "127x129x131,255x257x513,1000"},
    // DeepBench's training and inference, with its m, n and k as ours, CUTLASS issue 466, and tall
    // ones.
    {"skinny",
     "1760x16x1760,1760x32x1760,1760x64x1760,1760x128x1760,4096x16x4096,35x8457x2560,"
     "512x8x500000,1024x16x500000,7680x1x2560,3072x4x1024,512x1500x2816,2097152x128x128,"
     "70000x64x64",
     "1024x16x1024,16x1024x1024,16x16x10000"},
    // Small cubes, and what attention multiplies for each head. Queries by keys, then by values, of
    // 32 heads of 128 at 2048 tokens (Llama 3.1 8B). For 64 tokens that are decoded, the two
    // products by which latent attention goes to a latent vector of 512 and back, of 128 heads of
    // 128 (DeepSeek V3).
    {"batched",
     "batched:16x512,batched:64x256,batched:8x1024,batched:32x2048x2048x128,"
     "batched:32x2048x128x2048,batched:128x64x512x128,batched:128x64x128x512",
     "batched:16x128,batched:4x256,batched:8x256x256x64,batched:8x256x64x256"},
    // Experts, gate and up together, then down: all 128 of Qwen3 235B A22B, 32 of the 256 of
    // DeepSeek V3 (a GPU of eight), all 128 of gpt-oss 120B (sizes from the models' config.json).
    // Groups have the mean of 1,024 or 8,192 tokens with 8 experts each, or with 4 of gpt-oss.
    {"moe",
     "grouped:128x64x3072x4096/zipf,grouped:128x512x4096x1536/band,"
     "grouped:32x32x4096x7168/real,grouped:32x256x7168x2048/band,"
     "grouped:128x32x5760x2880/real,grouped:128x256x2880x2880/zipf",
     "grouped:8x16x96x128/zipf,grouped:32x8x64x96/real"},
    // The weights of DeepSeek V3 by which DeepGEMM's tests multiply in FP8 with scales of blocks
    // (tests/generators.py, dense), for few tokens that are decoded and for many of a prompt.
    {"fp8block",
     "1x2112x7168,16x2112x7168,64x2112x7168,4096x2112x7168,1x576x7168,16x576x7168,"
     "64x576x7168,8192x576x7168,1x24576x1536,16x24576x1536,64x24576x1536,1024x24576x1536,"
     "1x32768x512,16x32768x512,64x32768x512,4096x32768x512,1x7168x16384,16x7168x16384,"
     "64x7168x16384,4096x7168x16384,1x4096x7168,16x4096x7168,64x4096x7168,8192x4096x7168,"
     "1x7168x2048,16x7168x2048,64x7168x2048,4096x7168x2048",
     "1x576x512,16x576x512,64x576x512"},
};

// The weights (n x k) of a layer of an open model, query, key and value together as well as gate
// and up, as vLLM runs them; and the tokens (m) that the set multiplies with them. Experts get the
// tokens that are routed to them.
struct Layer {
  std::string_view model;
  std::int64_t n, k;
  std::int64_t tokens[3];
};
constexpr Layer kLayers[] = {
    {"Qwen2.5 7B", 4608, 3584, {1, 128, 8192}},
    {"Qwen2.5 7B", 3584, 3584, {16, 512, 2048}},
    {"Qwen2.5 7B", 37888, 3584, {8, 64, 4096}},
    {"Qwen2.5 7B", 3584, 18944, {4, 256, 1024}},
    {"Llama 3.1 8B", 6144, 4096, {2, 96, 16384}},
    {"Llama 3.1 8B", 4096, 4096, {32, 256, 4096}},
    {"Llama 3.1 8B", 28672, 4096, {1, 192, 2048}},
    {"Llama 3.1 8B", 4096, 14336, {8, 384, 8192}},
    {"Llama 3.1 8B", 128256, 4096, {1, 16, 64}},
    {"Mistral Small 24B", 6144, 5120, {4, 64, 1024}},
    {"Mistral Small 24B", 65536, 5120, {16, 256, 2048}},
    {"Mistral Small 24B", 5120, 32768, {1, 128, 512}},
    {"Qwen3 32B", 10240, 5120, {32, 384, 4096}},
    {"Qwen3 32B", 5120, 8192, {8, 96, 2048}},
    {"Qwen3 32B", 51200, 5120, {2, 128, 1024}},
    {"Qwen3 32B", 5120, 25600, {64, 768, 8192}},
    {"Llama 3.3 70B", 10240, 8192, {1, 64, 512}},
    {"Llama 3.3 70B", 8192, 8192, {16, 192, 16384}},
    {"Llama 3.3 70B", 57344, 8192, {4, 32, 2048}},
    {"Llama 3.3 70B", 8192, 28672, {8, 128, 4096}},
    {"Llama 3.1 405B", 18432, 16384, {1, 32, 1024}},
    {"Llama 3.1 405B", 106496, 16384, {8, 256, 512}},
    {"Llama 3.1 405B", 16384, 53248, {2, 64, 2048}},
    {"Mixtral 8x22B, expert", 32768, 6144, {16, 128, 1024}},
    {"Mixtral 8x22B, expert", 6144, 16384, {4, 256, 4096}},
    {"gpt-oss 120B", 5120, 2880, {1, 64, 4096}},
    {"gpt-oss 120B", 2880, 4096, {8, 512, 16384}},
    {"gpt-oss 120B, expert", 5760, 2880, {32, 128, 1024}},
    {"gpt-oss 120B, expert", 2880, 2880, {16, 256, 2048}},
    {"Qwen3 235B A22B", 9216, 4096, {2, 128, 8192}},
    {"Qwen3 235B A22B, expert", 3072, 4096, {8, 64, 512}},
    {"Qwen3 235B A22B, expert", 4096, 1536, {32, 256, 1024}},
    {"GLM 4.5 355B", 14336, 5120, {1, 96, 4096}},
    {"GLM 4.5 355B", 5120, 12288, {16, 384, 2048}},
    {"GLM 4.5 355B, expert", 3072, 5120, {4, 128, 768}},
    {"DeepSeek V3 671B", 2112, 7168, {8, 128, 4096}},
    {"DeepSeek V3 671B", 24576, 1536, {1, 64, 8192}},
    {"DeepSeek V3 671B", 32768, 512, {16, 512, 2048}},
    {"DeepSeek V3 671B", 7168, 16384, {32, 256, 16384}},
    {"DeepSeek V3 671B, expert", 4096, 7168, {2, 192, 1024}},
    {"DeepSeek V3 671B, expert", 7168, 2048, {8, 128, 512}},
};

constexpr char kLayersName[] = "layers";
constexpr std::string_view kRandom = "random:", kRandomForm = "random:N:SEED",
                           kBatched = "batched:", kGrouped = "grouped:";

// SplitMix64 (Steele, Lea and Flood 2014): the same numbers with every compiler.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15;
    return mixed_bits(state_);
  }
  // From 16 to 16384, log-uniform. Square roots and products are rounded alike on all machines,
  // which logarithms are not.
  std::int64_t size() {
    double size = 16, factor = 1024;
    for (std::uint64_t left = bits(), i = 0; i < 30; left >>= 1, ++i) {
      factor = std::sqrt(factor);
      if (left & 1) size *= factor;
    }
    return static_cast<std::int64_t>(size + 0.5);
  }

 private:
  std::uint64_t state_;
};

// 70 % have multiples of 16 only. Between 1e8 and 5e12 FLOP; others are drawn again.
Shape random_shape(Random& random) {
  for (;;) {
    const bool even = random.bits() % 10 < 7;
    const auto size = [&] {
      const std::int64_t any = random.size();
      return even ? (any + 8) / 16 * 16 : any;
    };
    const std::int64_t m = size(), n = size(), k = size(), flop = 2 * m * n * k;
    if (flop >= 100'000'000 && flop <= 5'000'000'000'000) return {m, n, k};
  }
}

[[noreturn]] void refuse(const std::string& item, const std::string& why) {
  throw std::invalid_argument(
      "shape '" + item + "' " + why +
      ": write 256, MxNxK with each from 1 to 2147483647, batched:16x256 "
      "or batched:16xMxNxK, grouped:8xMxNxK/zipf (or band, real; with a seed "
      "zipf:3), a set (" +
      names_of_sets() + ") or a .json file, separated by commas");
}

Shape checked(const std::string& item, std::vector<std::int64_t> sizes, std::int64_t batch = 1) {
  if (sizes.size() == 1) sizes.resize(3, sizes[0]);
  if (sizes.size() != 3) refuse(item, "needs one size or three");
  for (const std::int64_t size : {sizes[0], sizes[1], sizes[2], batch})
    if (size < 1 || size > kLargest) refuse(item, "has a size out of range");
  return {sizes[0], sizes[1], sizes[2], static_cast<std::int32_t>(batch)};
}

// "zipf", "zipf:3"
void parse_tokens(const std::string& item, const std::string& text, Shape& shape) {
  const auto colon = text.find(':');
  const auto tokens = tokens_named(text.substr(0, colon));
  const auto seed = colon == std::string::npos ? std::optional<std::uint16_t>(0)
                                               : number_in<std::uint16_t>(text.substr(colon + 1));
  if (!tokens || !seed)
    refuse(item, "needs a distribution of rows (" + std::string(kTokensNames) +
                     "), and a seed up to 65535");
  if (shape.batch > kMostGroups || shape.m > kMostGroupedRows / shape.batch)
    refuse(item, "has more than " + std::to_string(kMostGroups) + " groups or 2147483647 rows");
  if (shape.batch == 1) return;  // one group is no group
  shape.tokens = *tokens;
  shape.tokens_seed = *seed;
}

Shape parse_one(const std::string& item) {
  const bool grouped = item.starts_with(kGrouped), batched = grouped || item.starts_with(kBatched);
  const auto end_of_sizes = grouped ? item.find('/') : std::string::npos;
  const std::string text = item.substr(0, end_of_sizes);
  std::vector<std::int64_t> sizes;
  for (const std::string& part : parts_of(text.substr(batched ? text.find(':') + 1 : 0), 'x')) {
    std::int64_t size = 0;
    const char* end = part.data() + part.size();
    const auto [stop, error] = std::from_chars(part.data(), end, size);
    if (error == std::errc::result_out_of_range) refuse(item, "has a size out of range");
    if (error != std::errc{} || stop != end) refuse(item, "is not a shape");
    sizes.push_back(size);
  }
  if (text.ends_with('x')) refuse(item, "is not a shape");
  if (!batched) return checked(item, std::move(sizes));
  if (sizes.size() < 2) refuse(item, "needs the count of a batch and a size");
  Shape shape = checked(item, {sizes.begin() + 1, sizes.end()}, sizes[0]);
  if (grouped)
    parse_tokens(item, end_of_sizes == std::string::npos ? "" : item.substr(end_of_sizes + 1),
                 shape);
  return shape;
}

void add(std::vector<Shape>& shapes, const Shape& shape) {
  if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
}

// "random:60:1"
std::vector<Shape> parse_random(const std::string& item) {
  constexpr std::uint64_t kMost = 10'000;
  const std::vector<std::string> parts = parts_of(item, ':');
  std::optional<std::uint64_t> count, seed;
  if (parts.size() == 3 && !item.ends_with(':')) {
    count = number_in<std::uint64_t>(parts[1]);
    seed = number_in<std::uint64_t>(parts[2]);
  }
  if (!count || !seed) refuse(item, "is not " + std::string(kRandomForm));
  if (*count < 1 || *count > kMost) refuse(item, "needs N from 1 to " + std::to_string(kMost));
  Random random(*seed);
  std::vector<Shape> shapes;
  while (shapes.size() < *count) add(shapes, random_shape(random));
  return shapes;
}

std::vector<Shape> layer_shapes() {
  std::vector<Shape> shapes;
  for (const Layer& layer : kLayers)
    for (const std::int64_t m : layer.tokens) add(shapes, {m, layer.n, layer.k});
  return shapes;
}

std::vector<Shape> parse_file(const std::string& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path))
    throw std::invalid_argument("shape file '" + path +
                                "' cannot be read: give the path of a JSON file");
  const nlohmann::json list = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  const std::invalid_argument malformed(
      "shape file '" + path +
      "' is not a list of shapes: write [\"256\", \"64x128x32\", [64, 128, 32]]");
  if (!list.is_array() || list.empty()) throw malformed;
  std::vector<Shape> shapes;
  for (const nlohmann::json& item : list) {
    if (item.is_string()) {
      add(shapes, parse_one(item.get<std::string>()));
    } else if (item.is_array() && std::ranges::all_of(item, [](const auto& size) {
                 return size.is_number_integer();
               })) {
      add(shapes, checked(item.dump(), item.get<std::vector<std::int64_t>>()));
    } else {
      throw malformed;
    }
  }
  return shapes;
}

}  // namespace

std::string names_of_sets() {
  std::string names;
  for (const Set& set : kSets) names += std::string(set.name) + ", ";
  return names + kLayersName + ", " + std::string(kRandomForm);
}

std::string name_of(const Shape& shape, bool shortened) {
  const Problem p = problem_of(shape);
  std::string name;
  if (p.batch > 1)
    name = std::string(is_grouped(p) ? kGrouped : kBatched) + std::to_string(p.batch) + "x";
  name += std::to_string(p.m);
  if (!shortened || p.m != p.n || p.n != p.k)
    name += "x" + std::to_string(p.n) + "x" + std::to_string(p.k);
  return is_grouped(p) ? name + "/" + name_of_tokens(p) : name;
}

std::vector<Shape> parse_shapes(const std::string& text, Device::Kind kind) {
  const auto members_of = [&](const std::string& item) -> std::vector<Shape> {
    if (const auto* set = std::ranges::find(kSets, std::string_view(item), &Set::name);
        set != std::end(kSets))
      return parse_shapes(std::string(kind == Device::Kind::gpu ? set->gpu : set->cpu), kind);
    if (item == kLayersName) return layer_shapes();
    if (item.starts_with(kRandom)) return parse_random(item);
    if (item.ends_with(".json")) return parse_file(item);
    return {parse_one(item)};
  };
  std::vector<Shape> shapes;
  for (const std::string& item : parts_of(text))
    for (const Shape& shape : members_of(item)) add(shapes, shape);
  if (shapes.empty()) refuse(text, "is empty");
  return shapes;
}

}  // namespace gemm::bench
