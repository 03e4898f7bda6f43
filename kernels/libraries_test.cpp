#include "kernels/libraries.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace gemm {
namespace {

// libm and libc are in every process.
constexpr char kC[] = "libc.so.6";

TEST(Libraries, TheFirstThatTheLoaderFindsIsOpened) {
  const OpenedLibrary c("C", {"libnone.so.1", kC});
  long (*const labs_there)(long) = c.function("labs");
  EXPECT_EQ(labs_there(-3), 3);
  EXPECT_TRUE(is_loaded(kC));
  EXPECT_FALSE(is_loaded("libnone.so.1"));
}

TEST(Libraries, WhatIsMissingIsNamed) {
  const auto message = [](const auto& use) {
    try {
      use();
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string file = message([] { OpenedLibrary("Blas", {"/nowhere/libnone.so.1"}); });
  EXPECT_NE(file.find("Blas"), std::string::npos) << file;
  EXPECT_NE(file.find("libnone.so.1"), std::string::npos) << file;
  EXPECT_EQ(file.find("/nowhere"), std::string::npos) << "records have no folders: " << file;
  const OpenedLibrary c("C", {kC});
  const std::string function = message([&] { c.function("no_such_function"); });
  EXPECT_NE(function.find("no_such_function"), std::string::npos) << function;
  void (*const none)() = c.function_if_any("no_such_function");
  EXPECT_EQ(none, nullptr);
}

TEST(Libraries, AFileIsNamedWithoutItsFolder) {
  const OpenedLibrary c("C", {kC});
  long (*const function)(long) = c.function("labs");
  const std::string file = file_of(function);
  EXPECT_TRUE(file.starts_with("libc")) << file;
  EXPECT_EQ(file.find('/'), std::string::npos) << file;
}

TEST(Libraries, ReleasesOfOneLibraryAreKeptApart) {
  const std::size_t before = loaded_libraries().size();
  for (const char* version : {"1.2", "1.3", "1.2"}) note_loaded({"Blas", version, "libblas.so.1"});
  EXPECT_EQ(loaded_libraries().size(), before + 2);
}

}  // namespace
}  // namespace gemm
