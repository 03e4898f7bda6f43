// Which CPU it is, as Linux says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace gemm::bench {

// What is not known is empty.
struct Cpu {
  std::string name = "CPU";
  std::optional<std::string> id;  // vendor, family, model and stepping; of ARM the four of MIDR_EL1
  std::optional<std::int64_t> l1_data_bytes, l2_bytes, l3_bytes;  // that one core sees
};

// Of the core with this number; the files are those below `root`.
Cpu read_cpu(int core, const std::filesystem::path& root = "/");

}  // namespace gemm::bench
