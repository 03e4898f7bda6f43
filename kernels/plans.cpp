#include "kernels/plans.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "kernels/epilogue.hpp"
#include "kernels/layout.hpp"
#include "kernels/tokens.hpp"

namespace gemm {
namespace {

using nlohmann::json;

// The linker's hash of the program, or the library, that has this function: of all its machine
// code.
std::string build_id() {
  std::string id;
  const auto find = [](dl_phdr_info* object, std::size_t, void* to) {
    bool mine = false;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& one = object->dlpi_phdr[i];
      const auto begin = object->dlpi_addr + one.p_vaddr,
                 here = reinterpret_cast<ElfW(Addr)>(&build_id);
      mine = mine || (one.p_type == PT_LOAD && here >= begin && here < begin + one.p_memsz);
    }
    for (int i = 0; mine && i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& one = object->dlpi_phdr[i];
      if (one.p_type != PT_NOTE) continue;
      const auto* at = reinterpret_cast<const std::byte*>(object->dlpi_addr + one.p_vaddr);
      for (const std::byte* end = at + one.p_memsz; at < end;) {
        const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
        const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
        const std::byte* text = at + sizeof *note + padded(note->n_namesz);
        if (note->n_type == NT_GNU_BUILD_ID)
          for (std::size_t byte = 0; byte < note->n_descsz; ++byte) {
            char digits[3];
            std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(text[byte]));
            *static_cast<std::string*>(to) += digits;
          }
        at = text + padded(note->n_descsz);
      }
    }
    return mine ? 1 : 0;
  };
  dl_iterate_phdr(find, &id);
  return id;
}

std::filesystem::path default_file() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  std::filesystem::path folder = variable("XDG_CACHE_HOME");
  if (!folder.is_absolute()) {
    if (variable("HOME").empty()) return {};
    folder = variable("HOME") / ".cache";
  }
  return folder / "gemm_bench" / "plans.json";
}

std::filesystem::path& file() {
  static std::filesystem::path one = default_file();
  return one;
}

json read() {
  std::ifstream in(file());
  json plans = json::parse(in, nullptr, false);
  return plans.is_object() ? plans : json::object();
}

// Holds a lock on a file beside the plans until the end.
class Lock {
 public:
  explicit Lock(const std::filesystem::path& path)
      : file_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (file_ >= 0) flock(file_, LOCK_EX);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    if (file_ >= 0) close(file_);
  }
  bool held() const { return file_ >= 0; }

 private:
  int file_;
};

// A key without m.
std::pair<std::string, std::string> around_m(const Problem& p, const Device& device, int driver) {
  static const std::string code = build_id();
  std::string after = "x" + std::to_string(p.n) + "x" + std::to_string(p.k);
  if (p.batch > 1) after += " batch:" + std::to_string(p.batch);
  if (is_grouped(p)) after += " " + name_of_tokens(p);
  if (p.activation != Activation::none) after += " " + std::string(name_of(p.activation));
  return {device.name + " " + std::to_string(driver) + " " + code + " " +
              std::string(traits_of(p.precision).name) + " " + std::string(name_of(p.layout)) + " ",
          after};
}

// Whether the file has `changes` now.
bool write(const json& changes) {
  const std::filesystem::path& path = file();
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  const Lock lock(path.string() + ".lock");
  if (!lock.held()) return false;
  json plans = read();
  plans.update(changes);
  const std::filesystem::path part = path.string() + ".part";
  std::ofstream out(part);
  out << plans.dump(1) << '\n';
  out.close();
  if (!out) return false;
  std::filesystem::rename(part, path, error);
  return !error;
}

}  // namespace

std::vector<Candidate> plans_of(const Kernel& kernel, const Problem& p, const Device& device) {
  if (kernel.candidates) return kernel.candidates(p, device);
  const auto prepare = [prepare = kernel.prepare, p, device](const Operands& o) {
    return prepare(p, device, o);
  };
  return {{"", kernel.work ? kernel.work(p, device) : Work{}, prepare}};
}

std::string plan_key(const Problem& p, const Device& device, int driver) {
  const auto [before, after] = around_m(p, device, driver);
  return before + std::to_string(p.m) + after;
}

void keep_plans_in(const std::filesystem::path& path) {
  file() = std::filesystem::absolute(path);
  if (!write(json::object()))
    throw std::runtime_error(path.string() + ": cannot be written: name another file for plans");
}

std::optional<std::string> kept_plan(const std::string& key) {
  if (file().empty()) return std::nullopt;
  const json plans = read();
  const auto found = plans.find(key);
  if (found == plans.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<std::string> plan_of_nearest_m(const Problem& p, const Device& device, int driver) {
  if (file().empty()) return std::nullopt;
  const auto [before, after] = around_m(p, device, driver);
  std::optional<std::string> nearest;
  double least = std::numeric_limits<double>::infinity();
  const json plans = read();
  for (const auto& [key, plan] : plans.items()) {
    if (!plan.is_string() || !key.starts_with(before) || !key.ends_with(after)) continue;
    const double m = std::atof(key.c_str() + before.size());
    const double apart = std::abs(std::log(m / static_cast<double>(p.m)));
    if (!(m >= 1) || apart > least) continue;
    if (apart == least && m > static_cast<double>(p.m)) continue;
    least = apart;
    nearest = plan.get<std::string>();
  }
  return nearest;
}

void keep_plan(const std::string& key, const std::string& plan) {
  if (!file().empty()) write({{key, plan}});
}

}  // namespace gemm
