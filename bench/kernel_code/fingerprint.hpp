// Hashes of the machine code of GPU kernels, taken from what this program carries for the driver:
// no build step that could be outdated, and only code that runs is hashed.
//
// A fingerprint covers a function's instructions, the constants that the compiler made for it, the
// size of its static shared memory, and the code and data that it refers to through relocations,
// each by content. It does not cover names, line numbers, other kernels of the file, arguments, the
// values of __constant__ variables, or what the launch adds, such as its grid.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gemm::bench {

// 64 bits of FNV-1a, in 16 digits.
std::string hash_of(std::string_view bytes);

// By the linker's name of the function and architecture: 90 for sm_90 and for sm_90a. Nothing where
// two codes have one name, so that it is unknown which one runs.
using Fingerprints = std::map<std::pair<std::string, int>, std::optional<std::string>>;

// Of all GPU code in an object file or a program; none of what there is as PTX only, or compressed.
// Throws std::runtime_error for a file that is not 64-bit ELF.
Fingerprints fingerprints_in(const std::filesystem::path& file);

// Of this program; nothing for code that it does not have, such as a library's.
std::optional<std::string> own_fingerprint(const std::string& function, int architecture);

// Of several kernels in their order, that of one being its own; nothing where one has none.
std::optional<std::string> combined(const std::vector<std::optional<std::string>>& fingerprints);

}  // namespace gemm::bench
