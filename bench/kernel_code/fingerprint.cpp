#include "bench/kernel_code/fingerprint.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <stdexcept>
#include <utility>

#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

// A fat binary of nvcc: a header, then images, each with a header of its own.
struct FatHeader {
  std::uint32_t magic;
  std::uint16_t version, header_size;
  std::uint64_t size;
};
struct ImageHeader {
  std::uint16_t kind, version;
  std::uint32_t header_size;
  std::uint64_t size;
  std::uint32_t compressed_size, options;
  std::uint16_t minor, major;
  std::uint32_t architecture;
};
constexpr std::uint32_t kFatMagic = 0xba55ed50;
constexpr std::uint16_t kMachineCode = 2;  // 1 is PTX

std::string_view part_of(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset)
    throw std::runtime_error("its sections exceed the file");
  return bytes.substr(offset, size);
}

template <typename T>
T read(std::string_view bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, part_of(bytes, offset, sizeof value).data(), sizeof value);
  return value;
}

std::string_view text_at(std::string_view texts, std::uint64_t offset) {
  const std::string_view rest =
      part_of(texts, offset, texts.size() - std::min(offset, texts.size()));
  return rest.substr(0, rest.find('\0'));
}

bool is_elf(std::string_view bytes) {
  return bytes.starts_with(ELFMAG) && bytes.size() > EI_CLASS && bytes[EI_CLASS] == ELFCLASS64;
}

struct Section {
  std::string_view name;
  Elf64_Shdr header;
  std::string_view content;  // empty where the file has none
};

std::vector<Section> sections_of(std::string_view elf) {
  const auto file = read<Elf64_Ehdr>(elf, 0);
  std::vector<Section> sections(file.e_shnum);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    Section& section = sections[i];
    section.header = read<Elf64_Shdr>(elf, file.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.header.sh_type != SHT_NOBITS && section.header.sh_type != SHT_NULL)
      section.content = part_of(elf, section.header.sh_offset, section.header.sh_size);
  }
  if (sections.empty()) return sections;
  const std::string_view names = sections.at(file.e_shstrndx).content;
  for (Section& section : sections) section.name = text_at(names, section.header.sh_name);
  return sections;
}

// The machine code of one architecture.
class Image {
 public:
  explicit Image(std::string_view elf) : sections_(sections_of(elf)) {}

  // The functions, each with the number of its section.
  std::vector<std::pair<std::string, std::size_t>> functions() const {
    std::vector<std::pair<std::string, std::size_t>> found;
    for (std::size_t i = 0; i < sections_.size(); ++i)
      if (sections_[i].name.starts_with(kText))
        found.emplace_back(sections_[i].name.substr(kText.size()), i);
    return found;
  }

  std::string fingerprint(std::size_t section) const {
    std::string all;
    std::vector<std::size_t> seen;
    gather(section, all, seen);
    return hash_of(all);
  }

 private:
  static constexpr std::string_view kText = ".text.";

  // Whatever decides what the function does, in an order that no other function changes.
  void gather(std::size_t text, std::string& all, std::vector<std::size_t>& seen) const {
    seen.push_back(text);
    const Section& code = sections_[text];
    add(all, code.content);
    const std::string function = "." + std::string(code.name.substr(kText.size()));
    std::map<std::string_view, const Section*> own;  // by what is in front of the function's name
    for (const Section& section : sections_) {
      const auto name = section.name;
      const bool belongs = name.starts_with(".nv.constant") || name.starts_with(".nv.shared.");
      if (belongs && name.ends_with(function))
        own[name.substr(0, name.size() - function.size() + 1)] = &section;
    }
    for (const auto& [kind, section] : own) {
      add(all, kind);
      add(all, std::to_string(section->header.sh_size));
      add(all, section->content);
    }
    for (const Section& section : sections_)
      if (const auto type = section.header.sh_type;
          (type == SHT_REL || type == SHT_RELA) && section.header.sh_info == text)
        follow(section, text, all, seen);
  }

  void follow(const Section& relocations, std::size_t text, std::string& all,
              std::vector<std::size_t>& seen) const {
    const bool with_addend = relocations.header.sh_type == SHT_RELA;
    const std::size_t size = with_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    for (std::size_t at = 0; at + size <= relocations.content.size(); at += size) {
      Elf64_Rela one{};
      std::memcpy(&one, relocations.content.data() + at, size);
      add(all, std::to_string(one.r_offset) + " " + std::to_string(ELF64_R_TYPE(one.r_info)) + " " +
                   std::to_string(one.r_addend));
      const Section& symbols = sections_.at(relocations.header.sh_link);
      const auto symbol =
          read<Elf64_Sym>(symbols.content, ELF64_R_SYM(one.r_info) * sizeof(Elf64_Sym));
      const std::size_t in = symbol.st_shndx;
      if (in == SHN_UNDEF || in >= sections_.size()) {  // what the driver brings: by its name
        add(all, text_at(sections_.at(symbols.header.sh_link).content, symbol.st_name));
      } else if (in == text || std::ranges::find(seen, in) != seen.end()) {
        add(all, std::to_string(symbol.st_value));
      } else if (sections_[in].name.starts_with(kText)) {
        gather(in, all, seen);
      } else if (!sections_[in].content.empty()) {
        add(all, part_of(sections_[in].content, symbol.st_value, symbol.st_size));
      }
    }
  }

  // With its length, so that nothing can move from one piece to the next.
  static void add(std::string& all, std::string_view piece) {
    all += std::to_string(piece.size()) + ":";
    all += piece;
  }

  std::vector<Section> sections_;
};

// A file in memory, of which only what is looked at is read.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& file) : size_(std::filesystem::file_size(file)) {
    const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw std::runtime_error(file.string() + " cannot be read");
    if (size_ > 0) data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (data_ == MAP_FAILED) throw std::runtime_error(file.string() + " cannot be read");
  }
  ~MappedFile() {
    if (size_ > 0) munmap(data_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  std::size_t size_;
  void* data_ = nullptr;
};

// What a program or an object file has. A function is hashed when it is asked for: all of them
// would take longer than a short run.
class MachineCode {
 public:
  explicit MachineCode(const std::filesystem::path& file) : file_(file) {
    if (!is_elf(file_.bytes())) throw std::runtime_error(file.string() + " is no 64-bit ELF file");
    for (const Section& section : sections_of(file_.bytes()))
      if (section.name == ".nv_fatbin") add_images(section.content);
  }

  std::optional<std::string> fingerprint(const std::string& function, int architecture) const {
    const auto found = functions_.find({function, architecture});
    return found == functions_.end() ? std::nullopt : fingerprint(found->second);
  }

  Fingerprints all() const {
    Fingerprints all;
    for (const auto& [function, places] : functions_) all[function] = fingerprint(places);
    return all;
  }

 private:
  struct Place {
    const Image* image;
    std::size_t section;
  };

  static std::optional<std::string> fingerprint(const std::vector<Place>& places) {
    std::optional<std::string> only;
    for (const auto& [image, section] : places) {
      std::string one = image->fingerprint(section);
      if (only && *only != one) return std::nullopt;
      only = std::move(one);
    }
    return only;
  }

  void add_images(std::string_view fat) {
    while (fat.size() >= sizeof(FatHeader)) {
      const auto header = read<FatHeader>(fat, 0);
      if (header.magic != kFatMagic) {  // padding between what the linker put together
        fat.remove_prefix(8);
        continue;
      }
      std::string_view images = part_of(fat, header.header_size, header.size);
      fat.remove_prefix(header.header_size + header.size);
      while (images.size() >= sizeof(ImageHeader)) {
        const auto image = read<ImageHeader>(images, 0);
        const std::string_view elf = part_of(images, image.header_size, image.size);
        images.remove_prefix(image.header_size + image.size);
        if (image.header_size == 0) throw std::runtime_error("its fat binary is damaged");
        if (image.kind != kMachineCode || !is_elf(elf)) continue;
        const Image& added = images_.emplace_back(elf);
        for (const auto& [function, section] : added.functions())
          functions_[{function, static_cast<int>(image.architecture)}].push_back({&added, section});
      }
    }
  }

  MappedFile file_;
  std::deque<Image> images_;
  std::map<std::pair<std::string, int>, std::vector<Place>> functions_;
};

// The program, or its library where Python has loaded that.
const char* own_file() {
  Dl_info own{};
  const bool found = dladdr(reinterpret_cast<const void*>(&own_fingerprint), &own) != 0;
  const bool is_library = found && std::string_view(own.dli_fname).ends_with(".so");
  return is_library ? own.dli_fname : "/proc/self/exe";
}

}  // namespace

std::string hash_of(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  return formatted("%016" PRIx64, hash);
}

Fingerprints fingerprints_in(const std::filesystem::path& file) { return MachineCode(file).all(); }

std::optional<std::string> own_fingerprint(const std::string& function, int architecture) {
  // Then the driver does not run what the program has, but compiles its PTX.
  const char* forced = std::getenv("CUDA_FORCE_PTX_JIT");
  if (forced != nullptr && std::string_view(forced) != "0") return std::nullopt;
  try {
    static const MachineCode own_code(own_file());
    return own_code.fingerprint(function, architecture);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<std::string> combined(const std::vector<std::optional<std::string>>& fingerprints) {
  std::string all;
  for (const auto& one : fingerprints) {
    if (!one) return std::nullopt;
    all += *one;
  }
  if (all.empty()) return std::nullopt;
  return fingerprints.size() == 1 ? fingerprints[0] : hash_of(all);
}

}  // namespace gemm::bench
