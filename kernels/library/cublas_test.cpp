// Which cuBLAS is opened, without a GPU: releases are made by fake_cublas_test.cpp.
#include "kernels/library/cublas.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "kernels/libraries.hpp"
#include "kernels/registry.hpp"

namespace gemm {
namespace {

// Each has libcublas.so of its version and libcublasLt.so of the same. The version of cuBLAS is
// told by the cuBLASLt that the loader bound it to.
const std::filesystem::path kOld = FAKE_CUBLAS_12_4_5, kNew = FAKE_CUBLAS_13_7_2,
                            kNewer = FAKE_CUBLAS_13_9_0;

std::string why_not(const std::filesystem::path& file) {
  try {
    cublas::open(file);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Cublas, TakesCublasLtFromTheSameFolder) {
  const cublas::Api old = cublas::open(kOld), recent = cublas::open(kNew);
  EXPECT_EQ(old.version(), "12.4.5");
  EXPECT_EQ(recent.version(), "13.7.2");
}

TEST(CublasDeathTest, TakesCublasLtFromTheSameFolderWhateverTheLoaderPrefers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, whose loader reads the path
  setenv("LD_LIBRARY_PATH", kNewer.parent_path().c_str(), 1);
  EXPECT_EXIT(std::exit(cublas::open(kNew).version() == "13.7.2" ? 0 : 1),
              testing::ExitedWithCode(0), "");
  unsetenv("LD_LIBRARY_PATH");
}

TEST(Cublas, EmulationIsThereWhereTheLibraryHasIt) {
  EXPECT_FALSE(cublas::open(kOld).emulates_f64());
  EXPECT_TRUE(cublas::open(kNew).emulates_f64());
}

// The loader would bind it to the cuBLASLt of the other release.
TEST(Cublas, IsRefusedWhereAnotherReleaseOfItsMajorVersionIsLoaded) {
  ASSERT_EQ(why_not(kNew), "");
  const std::string why = why_not(kNewer);
  EXPECT_NE(why.find("13.7.2"), std::string::npos) << why;
}

TEST(Cublas, AFileThatIsNoneIsRefusedInOneLine) {
  const std::filesystem::path folder = testing::TempDir(), text = folder / "libcublas.so.99";
  std::ofstream(text) << "no library";
  const auto lt = kNew.parent_path() / "libcublasLt.so";
  for (const auto& file : {folder, text, folder / "nowhere.so", lt}) {
    const std::string why = why_not(file);
    EXPECT_NE(why.find(file.filename().string()), std::string::npos) << file << ": " << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  }
  EXPECT_NE(why_not(lt).find("cublas"), std::string::npos);
  std::filesystem::remove(text);
}

// In a process of its own, since cuBLAS is opened once.
TEST(CublasDeathTest, TheGivenFileGoesBeforeTheLoadersAndIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto use = [] {
    set_cublas_file(kOld);
    const Device hopper{.kind = Device::Kind::gpu, .compute_capability = 90};
    for (const RegisteredKernel& kernel : registry())
      if (kernel.name == "cuBLAS") {
        const Precision precision = kernel.precisions.front();
        std::fprintf(stderr, "%s: %s\n", kernel.label().c_str(),
                     kernel.unsupported({64, 64, 64, precision}, hopper).value_or("runs").c_str());
      }
    for (const LoadedLibrary& library : loaded_libraries())
      std::fprintf(stderr, "%s %s %s\n", library.name.c_str(), library.version.c_str(),
                   library.file.c_str());
    std::exit(0);
  };
  EXPECT_EXIT(use(), testing::ExitedWithCode(0),
              "math:default: runs\n(.*\n)*.*math:emulated: .*12[.]4[.]5\n(.*\n)*"
              "cuBLAS 12[.]4[.]5 libcublas.so.*\ncuBLASLt 12[.]4[.]5 libcublasLt.so");
}

TEST(CublasDeathTest, WithoutOneItsKernelsSayWhy) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto use = [] {
    for (const std::string& name : library_names("libcublas", CUBLAS_VER_MAJOR))
      if (is_loaded(name)) std::exit(3);  // the program is linked with none
    set_cublas_file("/nowhere/libcublas.so.13");
    const Device hopper{.kind = Device::Kind::gpu, .compute_capability = 90};
    for (const RegisteredKernel& kernel : registry())
      if (kernel.name.starts_with("cuBLAS") &&
          !kernel.unsupported({64, 64, 64, kernel.precisions.front()}, hopper))
        std::exit(1);
    std::exit(loaded_libraries().empty() ? 0 : 2);
  };
  EXPECT_EXIT(use(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gemm
