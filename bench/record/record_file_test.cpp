#include "bench/record/record_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace gemm::bench {
namespace {

namespace fs = std::filesystem;

// A folder of its own for each test.
class InAFolder : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) /
              (std::string("gemm_bench_") + test->name() + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string content(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  fs::path folder_;
};
using Durable = InAFolder;
using Names = std::vector<std::string>;

TEST_F(Durable, AFileIsReplacedInOneStepAndItsFoldersAreMade) {
  const auto path = folder_ / "device" / "record.json";
  write_atomically(path, "first");
  write_atomically(path, "second");
  EXPECT_EQ(content(path), "second");
  EXPECT_EQ(std::distance(fs::directory_iterator(path.parent_path()), {}), 1);
  EXPECT_THROW(write_atomically(path / "below-a-file.json", "x"), std::runtime_error);
}

TEST_F(Durable, AStreamIsWrittenToAndStays) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const File reader(open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  write_atomically(pipe, "text");
  char text[8] = {};
  EXPECT_EQ(read(reader.descriptor(), text, sizeof text), 4);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(names(), Names{"pipe"});
}

TEST_F(Durable, WhatLiesWhereThePartGoesIsNeitherFollowedNorKept) {
  const auto path = folder_ / "record.json", elsewhere = folder_ / "elsewhere";
  fs::create_symlink(elsewhere, path.string() + ".part" + std::to_string(getpid()));
  write_atomically(path, "text");
  EXPECT_EQ(content(path), "text");
  EXPECT_EQ(names(), Names{"record.json"});
}

class RecordFileTest : public InAFolder {
 protected:
  static Names lock_and(Names others, const std::string& record) {
    others.push_back(record + ".gemm_bench_lock");
    std::ranges::sort(others);
    return others;
  }
  fs::path path_ = "record.json";
  void SetUp() override {
    InAFolder::SetUp();
    path_ = folder_ / "record.json";
  }
};

TEST_F(RecordFileTest, IsThereAfterEachRow) {
  {
    RecordFile file(path_);
    EXPECT_EQ(names(), lock_and({}, "record.json"));
    for (const char* rows : {"one row", "two rows"}) {
      file.keep(rows);
      EXPECT_EQ(content(path_), rows);
    }
    file.finish("the record");
    EXPECT_EQ(names(), Names{"record.json"});
  }
  EXPECT_EQ(content(path_), "the record");
}

TEST_F(RecordFileTest, StaysIfTheRunDoesNotEndAndIsNotTouchedBeforeTheFirstRow) {
  std::ofstream(path_) << "old";
  { const RecordFile without_a_row(path_); }
  EXPECT_EQ(content(path_), "old");
  { RecordFile(path_).keep("a row"); }
  EXPECT_EQ(content(path_), "a row");
  EXPECT_EQ(names(), Names{"record.json"});
}

TEST_F(RecordFileTest, IsNotLockedThroughALink) {
  const auto elsewhere = folder_ / "elsewhere";
  fs::create_symlink(elsewhere, folder_ / "record.json.gemm_bench_lock");
  EXPECT_THROW(RecordFile{path_}, std::runtime_error);
  EXPECT_FALSE(fs::exists(elsewhere));
}

TEST_F(RecordFileTest, HasOneWriter) {
  const RecordFile file(path_);
  EXPECT_THROW(RecordFile{path_}, std::runtime_error);
  const RecordFile other(folder_ / "other.json");
  EXPECT_EQ(names(), lock_and({"other.json.gemm_bench_lock"}, "record.json"));
}

TEST_F(RecordFileTest, OfAKilledRunTheLockAndTheHalfWrittenGoAndNothingElse) {
  for (const char* name : {"dead.json.gemm_bench_lock", "dead.json.part12", "dead.json.part",
                           "dead.json.part2-of-mine", "foreign.json.part3", "dead.json"})
    std::ofstream(folder_ / name) << "text";
  { const RecordFile file(path_); }
  EXPECT_EQ(names(), (Names{"dead.json", "dead.json.part", "dead.json.part2-of-mine",
                            "foreign.json.part3"}));
}

TEST_F(RecordFileTest, InAFolderTakesAFreeName) {
  std::ofstream(folder_ / "0.json") << "old";
  const RecordFile one(folder_ / "1.json");
  int names_given = 0;
  const RecordFile other(folder_, [&] { return std::to_string(names_given++) + ".json"; });
  EXPECT_EQ(other.path(), folder_ / "2.json");
  EXPECT_EQ(names(), lock_and(lock_and({"0.json"}, "1.json"), "2.json"));
}

}  // namespace
}  // namespace gemm::bench
