#include "bench/cases/shapes.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

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
    // What five tutorial documents multiply: a blog's T4, a course report's 4092, a lecture's 4096,
    // the 5x23 times 23x7 of the Numba manual, and the powers of two between them.
    {"seeds", "1024x1024x768,4092,4096,1024,5x7x23,128,256,512,2048,8192",
     "1024x1024x768,1024,5x7x23,128,256,512"},
    // No size is a multiple of a tile; the last two are DeepBench's (speech, sizes 5124 and 35).
    {"ragged",
     "127x129x131,255x257x513,1000,1023x1025x1021,2047x2049x2045,4092,4097,8191,"
     "5124x9124x2560,35x8457x2560",
     "127x129x131,255x257x513,1000"},
    // m tokens through the weights (n x k) of Llama 3 8B and 70B (QKV, output, gate and up, down;
    // vLLM's weight_shapes.py), of DeepSeek V3 (DeepGEMM's list) and the vocabulary of Llama 3.
    {"llm",
     "4096x6144x4096,4096x4096x4096,4096x28672x4096,4096x4096x14336,"
     "4096x10240x8192,4096x8192x8192,4096x57344x8192,4096x8192x28672,"
     "4096x2112x7168,4096x7168x16384,4096x24576x1536,4096x32768x512,4096x128256x4096,"
     "1x6144x4096,8x6144x4096,16x6144x4096,32x6144x4096,64x6144x4096,"
     "1x4096x14336,8x4096x14336,16x4096x14336,32x4096x14336,64x4096x14336,"
     "64x2112x7168,128x2112x7168,64x7168x16384,128x7168x16384",
     "16x1024x1024,64x1024x1024"},
    // DeepBench's training and inference, with its m, n and k as ours, CUTLASS issue 466, and tall
    // ones.
    {"skinny",
     "1760x16x1760,1760x32x1760,1760x64x1760,1760x128x1760,4096x16x4096,35x8457x2560,"
     "512x8x500000,1024x16x500000,7680x1x2560,3072x4x1024,512x1500x2816,2097152x128x128,"
     "70000x64x64",
     "1024x16x1024,16x1024x1024,16x16x10000"},
};

[[noreturn]] void refuse(const std::string& item, const std::string& why) {
  throw std::invalid_argument("shape '" + item + "' " + why +
                              ": write 256, MxNxK with each from 1 to 2147483647, a set (" +
                              names_of_sets() + ") or a .json file, separated by commas");
}

Shape checked(const std::string& item, std::vector<std::int64_t> sizes) {
  if (sizes.size() == 1) sizes.resize(3, sizes[0]);
  if (sizes.size() != 3) refuse(item, "needs one size or three");
  for (const std::int64_t size : sizes)
    if (size < 1 || size > kLargest) refuse(item, "has a size out of range");
  return {sizes[0], sizes[1], sizes[2]};
}

Shape parse_one(const std::string& item) {
  std::vector<std::int64_t> sizes;
  std::istringstream parts(item);
  for (std::string part; std::getline(parts, part, 'x');) {
    std::int64_t size = 0;
    const char* end = part.data() + part.size();
    const auto [stop, error] = std::from_chars(part.data(), end, size);
    if (error == std::errc::result_out_of_range) refuse(item, "has a size out of range");
    if (error != std::errc{} || stop != end) refuse(item, "is not a shape");
    sizes.push_back(size);
  }
  if (item.ends_with('x')) refuse(item, "is not a shape");
  return checked(item, std::move(sizes));
}

void add(std::vector<Shape>& shapes, const Shape& shape) {
  if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
}

std::vector<Shape> parse_file(const std::string& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path))
    throw std::invalid_argument("shape file '" + path +
                                "' cannot be read: give the path of a JSON file");
  const nlohmann::json list = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  const auto malformed = [&]() -> std::invalid_argument {
    return std::invalid_argument(
        "shape file '" + path +
        "' is not a list of shapes: write [\"256\", \"64x128x32\", [64, 128, 32]]");
  };
  if (!list.is_array() || list.empty()) throw malformed();
  std::vector<Shape> shapes;
  for (const nlohmann::json& item : list) {
    if (item.is_string()) {
      add(shapes, parse_one(item.get<std::string>()));
    } else if (item.is_array() && std::ranges::all_of(item, [](const auto& size) {
                 return size.is_number_integer();
               })) {
      add(shapes, checked(item.dump(), item.get<std::vector<std::int64_t>>()));
    } else {
      throw malformed();
    }
  }
  return shapes;
}

}  // namespace

std::string names_of_sets() {
  std::string names;
  for (const Set& set : kSets) names += (names.empty() ? "" : ", ") + std::string(set.name);
  return names;
}

std::string name_of(const Shape& shape) {
  return std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k);
}

std::vector<Shape> parse_shapes(const std::string& text, Device::Kind kind) {
  std::vector<Shape> shapes;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    if (const auto* set = std::ranges::find(kSets, std::string_view(item), &Set::name);
        set != std::end(kSets)) {
      const std::string_view members = kind == Device::Kind::gpu ? set->gpu : set->cpu;
      for (const Shape& shape : parse_shapes(std::string(members), kind)) add(shapes, shape);
    } else if (item.ends_with(".json")) {
      for (const Shape& shape : parse_file(item)) add(shapes, shape);
    } else {
      add(shapes, parse_one(item));
    }
  }
  if (shapes.empty()) refuse(text, "is empty");
  return shapes;
}

}  // namespace gemm::bench
