// Sources of the user, and what NVRTC says of them, which needs no GPU.
#include "bench/run/user_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/libraries.hpp"
#include "kernels/user/user_kernel.hpp"

namespace gemm::bench {
namespace {

class UserKernels : public testing::Test {
 protected:
  UserKernels() { std::filesystem::create_directory(folder_); }
  ~UserKernels() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  static std::string refusal(const Options& options, Device::Kind kind = Device::Kind::gpu) {
    try {
      register_user_kernels(options, kind, "there is none");
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) /
                                  testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(UserKernels, JoinTheRegistryOncePerCombinationOfDefines) {
  const std::string source = file("swept one.cu", "x");
  ASSERT_EQ(refusal({.kernels = {source + ":other"},
                     .defines = {{"TILE", {"16", "32"}}, {"N", {"1", "2"}}}}),
            "");
  std::vector<std::string> labels;
  for (const RegisteredKernel& kernel : registry())
    if (kernel.is_users()) labels.push_back(kernel.label());
  for (const char* label : {"swept_one.other/TILE:16/N:1", "swept_one.other/TILE:32/N:2"})
    EXPECT_EQ(std::ranges::count(labels, label), 1) << label;
  EXPECT_NE(refusal({.kernels = {source + ":other"}, .defines = {{"TILE", {"16"}}, {"N", {"1"}}}})
                .find("rename the file"),
            std::string::npos);
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The example of README.md.
const std::filesystem::path kExamples = EXAMPLES;
const std::string kExample = text_of(kExamples / "naive.cu");

std::string compile_error(const UserKernel& user, Precision precision = Precision::f32) {
  try {
    compile_source(user, precision, 90);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

std::string compile_error(const std::filesystem::path& path, Precision precision = Precision::f32) {
  return compile_error(UserKernel{.file = path, .defines = {{"TILE", "16"}}}, precision);
}

TEST_F(UserKernels, HeadersComeFromFoldersAndFromTheCppLibrary) {
  const std::string source =
      file("with_headers.cu",
           "#include <cstdint>\n#include <limits>\n#include <type_traits>\n#include <parts.hpp>\n"
           "__global__ void k(float* c) { c[0] = std::numeric_limits<float>::max() + kPart; }\n"
           "static_assert(std::is_same_v<std::uint32_t, unsigned>);\n"
           "auto launch(gemm::Call p) { return gemm::launch<k>({1}, {1}, p.c); }\n");
  UserKernel user{.file = source};
  EXPECT_NE(compile_error(user).find("parts.hpp"), std::string::npos);
  EXPECT_NE(compile_error(user).find("--gemm_include=DIR"), std::string::npos);
  const auto folder = std::filesystem::path(source).parent_path() / "parts";
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "parts.hpp") << "constexpr float kPart = 1;\n";
  user.includes = {folder};
  EXPECT_EQ(compile_error(user), "");
  const std::string vector = compile_error(UserKernel{.file = file("v.cu", "#include <vector>\n")});
  EXPECT_NE(vector.find("__CUDACC_RTC__"), std::string::npos) << vector;
}

TEST_F(UserKernels, MachineCodeIsKeptForTheSameTextAndOptions) {
  UserKernel user{.file = file("kept.cu", text_of(kExamples / "naive.cu")),
                  .defines = {{"TILE", "16"}}};
  user.machine_code = user.file.parent_path() / "code";
  std::filesystem::create_directory(user.machine_code);
  const auto count = [&] {
    return std::distance(std::filesystem::directory_iterator(user.machine_code), {});
  };
  const CompiledSource first = compile_source(user, Precision::f32, 90);
  EXPECT_EQ(count(), 1);
  const CompiledSource second = compile_source(user, Precision::f32, 90);
  EXPECT_EQ(second.cubin, first.cubin);
  EXPECT_EQ(second.kernel, first.kernel);
  EXPECT_EQ(count(), 1);
  compile_source(user, Precision::f32, 80);
  user.defines = {{"TILE", "8"}};
  compile_source(user, Precision::f32, 90);
  EXPECT_EQ(count(), 3);
}

TEST_F(UserKernels, WhatIsCompiledHasItsKernelAndNvrtcIsNamed) {
  const UserKernel example{.file = kExamples / "naive.cu", .defines = {{"TILE", "16"}}};
  const CompiledSource compiled = compile_source(example, Precision::f32, 90);
  EXPECT_EQ(compiled.kernel, "_Z5naivePKfS0_Pfiii");
  for (const std::string& part : {compiled.kernel, std::string(kDescribe), std::string(kDeclared)})
    EXPECT_NE(compiled.cubin.find(part), std::string::npos) << part;
  const auto& libraries = loaded_libraries();
  const auto nvrtc = std::ranges::find(libraries, "NVRTC", &LoadedLibrary::name);
  ASSERT_NE(nvrtc, libraries.end());
  EXPECT_TRUE(std::regex_match(nvrtc->version, std::regex("[0-9]+[.][0-9]+"))) << nvrtc->version;
  EXPECT_TRUE(nvrtc->file.starts_with("libnvrtc")) << nvrtc->file;
}

// As the commands in its head say: with which entries, and in which precision.
TEST_F(UserKernels, EachExampleCompilesAsItSaysThatItIsCalled) {
  std::size_t compiled = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kExamples)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != ".cu") continue;
    const std::string text = text_of(path);
    Precision precision = Precision::f32;
    std::smatch found;
    if (std::regex_search(text, found, std::regex("--gemm_precisions=(\\w+)")))
      precision = precision_named(found[1].str()).value();
    std::set<std::string> entries;
    const std::regex named("[=,]" + path.stem().string() + "\\.cu(:(\\w+))?");
    for (std::sregex_iterator it(text.begin(), text.end(), named), end; it != end; ++it)
      entries.insert((*it)[2]);
    if (entries.empty()) entries.insert("");
    for (const std::string& name : entries)
      for (const int architecture : {80, 90}) {
        const UserKernel user{.file = path, .entry = name, .defines = {{"TILE", "16"}}};
        EXPECT_NO_THROW(compile_source(user, precision, architecture)) << path << " " << name;
        ++compiled;
      }
  }
  EXPECT_GE(compiled, 38u);
}

TEST_F(UserKernels, TheRegisterTileIsSweptAndSaysWhatItCannotBe) {
  UserKernel user{.file = kExamples / "register_tile.cu", .defines = {{"BM", "64"}, {"BK", "16"}}};
  EXPECT_NE(compile_source(user, Precision::f32, 90).kernel.find("Li64ELi128ELi16ELi8ELi8E"),
            std::string::npos);
  user.defines = {{"COLUMNS", "2"}};
  EXPECT_NE(compile_error(user).find("multiples of four"), std::string::npos);
}

TEST_F(UserKernels, ATemplateInEveryPrecisionAndWithSharedMemoryCompiles) {
  const UserKernel user{.file = file("template.cu", R"(
template <int T, typename X, typename Y>
__global__ void tiled(long long m, long long n, long long k, float alpha, const X* a, const X* b,
                      Y* c) {
  extern __shared__ float tile[];
  c[0] = Y(tile[T]);
}
auto other(gemm::Call p) {
  return gemm::launch<tiled<TILE, gemm::Input, gemm::Output>>({1}, {TILE}, p.m, p.n, p.k, 1, p.a,
                                                              p.b, p.c).with_shared(65536);
})"),
                        .entry = "other",
                        .defines = {{"TILE", "32"}}};
  for (const PrecisionTraits& traits : kPrecisions)
    EXPECT_NE(compile_source(user, traits.precision, 90).kernel.find("tiledILi32E"),
              std::string::npos)
        << traits.name;
}

TEST_F(UserKernels, AnErrorIsTheCompilersOwnWithFileAndLine) {
  EXPECT_EQ(compile_error(file("broken.cu",
                               "#include \"gemm_kernel.h\"\n\nint f() { return x; }\n" + kExample)),
            "broken.cu(3): error: identifier \"x\" is undefined");
  EXPECT_NE(
      compile_error(file("two.cu", kExample + "int f() { return x + y; }\n")).find("(and 1 more)"),
      std::string::npos);
  EXPECT_EQ(compile_error(file("include.cu", "#include \"missing.h\"\n")),
            "include.cu(1): catastrophic error: cannot open source file \"missing.h\": "
            "name its folder with --gemm_include=DIR");
  EXPECT_NE(compile_error(folder_ / "gone.cu").find("cannot be read"), std::string::npos);
}

TEST_F(UserKernels, AFileWithoutAnEntryIsToldWhatIsMissing) {
  EXPECT_EQ(compile_error(file("empty.cu", "__global__ void f() {}\n")),
            "empty.cu: calling launch(gemm::Call): the global scope has no \"launch\"");
}

TEST_F(UserKernels, AKernelOfAnotherPrecisionDoesNotCompile) {
  EXPECT_NE(compile_error(file("float.cu", kExample), Precision::bf16)
                .find("does the kernel support this precision?"),
            std::string::npos);
}

}  // namespace
}  // namespace gemm::bench
