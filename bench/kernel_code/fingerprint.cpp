#include "bench/kernel_code/fingerprint.hpp"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <ios>
#include <iterator>
#include <stdexcept>

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

  std::vector<std::pair<std::string, std::string>> functions() const {
    std::vector<std::pair<std::string, std::string>> found;
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (!sections_[i].name.starts_with(kText)) continue;
      std::string all;
      std::vector<std::size_t> seen;
      gather(i, all, seen);
      found.emplace_back(sections_[i].name.substr(kText.size()), hash_of(all));
    }
    return found;
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

void add_images(std::string_view fat, Fingerprints& all) {
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
      for (auto& [function, hash] : Image(elf).functions()) {
        const auto [known, is_new] =
            all.try_emplace({function, static_cast<int>(image.architecture)}, hash);
        if (!is_new && known->second != hash) known->second.reset();
      }
    }
  }
}

}  // namespace

std::string hash_of(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  return formatted("%016" PRIx64, hash);
}

Fingerprints fingerprints_in(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  if (!is_elf(bytes)) throw std::runtime_error(file.string() + " is not a 64-bit ELF file");
  Fingerprints all;
  for (const Section& section : sections_of(bytes))
    if (section.name == ".nv_fatbin") add_images(section.content, all);
  return all;
}

std::optional<std::string> own_fingerprint(const std::string& function, int architecture) {
  static const Fingerprints all = [] {
    try {
      // The program, or its library where Python has loaded that.
      Dl_info own{};
      const bool found = dladdr(reinterpret_cast<const void*>(&own_fingerprint), &own) != 0;
      const bool is_library = found && std::string_view(own.dli_fname).ends_with(".so");
      return fingerprints_in(is_library ? own.dli_fname : "/proc/self/exe");
    } catch (const std::exception&) {
      return Fingerprints();
    }
  }();
  // Then the driver does not run what the program has, but compiles its PTX.
  const char* forced = std::getenv("CUDA_FORCE_PTX_JIT");
  if (forced != nullptr && std::string_view(forced) != "0") return std::nullopt;
  const auto found = all.find({function, architecture});
  return found == all.end() ? std::nullopt : found->second;
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
