// Names of records in a folder; record_file_test.py holds what a file has.
#include "bench/record/record_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace gemm::bench {
namespace {

TEST(RecordFile, InAFolderTakesAFreeName) {
  const auto folder = std::filesystem::path(testing::TempDir()) / std::to_string(getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "0.json") << "old";
  int given = 0, given_too = 0;
  const auto count = [](int& number) { return [&] { return std::to_string(number++) + ".json"; }; };
  RecordFile one(folder, count(given));
  const RecordFile other(folder, count(given_too));
  EXPECT_EQ(one.path(), folder / "1.json");
  EXPECT_EQ(other.path(), folder / "2.json");
  one.keep("a row");
  given_too = 0;
  EXPECT_EQ(RecordFile(folder, count(given_too)).path(), folder / "3.json");
  std::filesystem::remove_all(folder);
}

TEST(RecordFile, ThatCouldNotBeWrittenForAWhileIsWholeInTheEnd) {
  const auto folder = std::filesystem::path(testing::TempDir()) / std::to_string(getpid());
  const auto moved = folder.string() + ".moved";
  RecordFile file(folder / "record.json");
  file.keep("one row");
  std::filesystem::rename(folder, moved);
  std::ofstream(folder) << "no folder";
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) file.keep("two rows");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("The run goes on"), said.rfind("The run goes on")) << "said once";
  EXPECT_NE(said.find("The run goes on"), std::string::npos) << said;
  std::filesystem::remove(folder);
  std::filesystem::rename(moved, folder);
  const auto content = [&] {
    std::ifstream in(folder / "record.json");
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(content(), "one row");
  file.keep("three rows");
  EXPECT_EQ(content(), "three rows");
  file.finish("all rows");
  EXPECT_EQ(content(), "all rows");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gemm::bench
