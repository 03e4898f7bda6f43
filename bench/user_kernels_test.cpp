// Files of the user: what is refused before anything is run, and what NVRTC says, which needs no
// GPU.
#include "bench/user_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

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

TEST_F(UserKernels, AreRefusedInOneLineThatNamesThem) {
  const std::string source = file("refused.cu", "");
  for (const auto& [item, why] : std::initializer_list<std::pair<std::string, std::string>>{
           {"kernel.c", "is no FILE.cu"},
           {"", "is no FILE.cu"},
           {source + ":", "nothing behind the colon"},
           {"/nowhere/kernel.cu", "cannot be read"},
           {folder_.string() + "/folder.cu", "cannot be read"}}) {
    std::filesystem::create_directory(folder_ / "folder.cu");
    const std::string message = refusal({.kernels = {item}});
    EXPECT_NE(message.find("--gemm_kernel=" + item + ": "), std::string::npos) << message;
    EXPECT_NE(message.find(why), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  EXPECT_NE(refusal({.kernels = {source}}, Device::Kind::cpu).find("needs a GPU: there is none"),
            std::string::npos);
  EXPECT_NE(refusal({.defines = {{"TILE", {"16"}}}}).find("--gemm_define"), std::string::npos);
}

#ifdef GEMM_KERNEL_WITH_CUDA

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

// The example of README.md.
constexpr char kExample[] = R"(#include "gemm_kernel.h"

__global__ void naive(const float* a, const float* b, float* c, int m, int n, int k) {
  const int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m || j >= n) return;
  float sum = 0;
  for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
  c[i * n + j] = sum;
}

auto launch(gemm::Call p) {
  return gemm::launch<naive>({gemm::blocks(p.n, TILE), gemm::blocks(p.m, TILE)}, {TILE, TILE},
                             p.a, p.b, p.c, p.m, p.n, p.k);
}
)";

std::string compile_error(const std::filesystem::path& path, Precision precision = Precision::f32) {
  try {
    compile_source({.file = path, .defines = {{"TILE", "16"}}}, precision, 90);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST_F(UserKernels, TheExampleCompilesForEveryArchitecture) {
  const UserKernel example{.file = file("example.cu", kExample), .defines = {{"TILE", "16"}}};
  for (const int architecture : {75, 80, 86, 89, 90}) {
    const CompiledSource compiled = compile_source(example, Precision::f32, architecture);
    EXPECT_EQ(compiled.kernel, "_Z5naivePKfS0_Pfiii");
    EXPECT_NE(compiled.cubin.find(compiled.kernel), std::string::npos);
    EXPECT_NE(compiled.cubin.find(kDescribe), std::string::npos);
  }
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
  EXPECT_EQ(
      compile_error(file("broken.cu", "#include \"gemm_kernel.h\"\n\nint f() { return x; }\n" +
                                          std::string(kExample))),
      "broken.cu(3): error: identifier \"x\" is undefined");
  EXPECT_NE(compile_error(file("two.cu", std::string(kExample) + "int f() { return x + y; }\n"))
                .find("(and 1 more)"),
            std::string::npos);
  EXPECT_EQ(compile_error(file("include.cu", "#include \"missing.h\"\n")),
            "include.cu(1): catastrophic error: cannot open source file \"missing.h\"");
  EXPECT_NE(compile_error(folder_ / "gone.cu").find("cannot be read"), std::string::npos);
}

TEST_F(UserKernels, AFileWithoutAnEntryIsToldWhatIsMissing) {
  const std::string message = compile_error(file("empty.cu", "__global__ void f() {}\n"));
  EXPECT_NE(message.find("has no \"launch\""), std::string::npos) << message;
  EXPECT_NE(message.find("behind empty.cu"), std::string::npos) << message;
}

TEST_F(UserKernels, AKernelOfAnotherPrecisionDoesNotCompile) {
  EXPECT_NE(compile_error(file("float.cu", kExample), Precision::bf16)
                .find("is the kernel of this precision?"),
            std::string::npos);
}

#endif

}  // namespace
}  // namespace gemm::bench
