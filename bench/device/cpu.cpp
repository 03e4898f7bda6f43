#include "bench/device/cpu.hpp"

#include <fstream>
#include <map>

namespace gemm::bench {
namespace {

// The first block of /proc/cpuinfo.
std::map<std::string, std::string> first_processor(const std::filesystem::path& root) {
  std::map<std::string, std::string> values;
  std::ifstream info(root / "proc/cpuinfo");
  for (std::string line; std::getline(info, line) && !(line.empty() && !values.empty());) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto key_end = line.find_last_not_of(" \t", colon - 1);
    const auto value = line.find_first_not_of(' ', colon + 1);
    values[line.substr(0, key_end + 1)] = value == std::string::npos ? "" : line.substr(value);
  }
  return values;
}

// "32K" or "1M".
std::int64_t bytes_in(const std::filesystem::path& size) {
  std::ifstream file(size);
  std::int64_t number = 0;
  char unit = 'K';
  file >> number >> unit;
  return unit == 'M' ? number << 20 : number << 10;
}

}  // namespace

Cpu read_cpu(int core, const std::filesystem::path& root) {
  Cpu cpu;
  auto values = first_processor(root);
  if (values.contains("vendor_id") && values.contains("model"))
    cpu.id = values["vendor_id"] + " " + values["cpu family"] + "." + values["model"] + "." +
             values["stepping"];
  else if (values.contains("CPU part"))
    cpu.id = "ARM " + values["CPU implementer"] + "." + values["CPU part"] + "." +
             values["CPU variant"] + "." + values["CPU revision"];
  if (!values["model name"].empty())
    cpu.name = values["model name"];
  else if (cpu.id)
    cpu.name += " " + *cpu.id;

  const auto caches = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(core)) / "cache";
  for (int index = 0; index < 8; ++index) {
    const auto cache = caches / ("index" + std::to_string(index));
    int level = 0;
    std::string type;
    std::ifstream(cache / "level") >> level;
    std::ifstream(cache / "type") >> type;
    const std::int64_t bytes = bytes_in(cache / "size");
    if (bytes <= 0 || type == "Instruction") continue;
    if (level == 1) cpu.l1_data_bytes = bytes;
    if (level == 2) cpu.l2_bytes = bytes;
    if (level == 3) cpu.l3_bytes = bytes;
  }
  return cpu;
}

}  // namespace gemm::bench
