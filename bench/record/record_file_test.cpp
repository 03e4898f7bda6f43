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

class RecordFileTest : public InAFolder {
 protected:
  void SetUp() override {
    InAFolder::SetUp();
    path_ = folder_ / "record.json";
  }
  fs::path path_;
};

TEST_F(RecordFileTest, IsThereAfterEachRow) {
  RecordFile file(path_);
  for (const char* rows : {"one row", "two rows"}) {
    file.keep(rows);
    EXPECT_EQ(content(path_), rows);
    EXPECT_EQ(names(), Names{"record.json"});
  }
  file.finish("the record");
  EXPECT_EQ(content(path_), "the record");
}

TEST_F(RecordFileTest, IsNotTouchedBeforeTheFirstRow) {
  std::ofstream(path_) << "old";
  { const RecordFile without_a_row(path_); }
  EXPECT_EQ(content(path_), "old");
  EXPECT_EQ(names(), Names{"record.json"});
}

TEST_F(RecordFileTest, ThatCannotBeWrittenIsSaidBeforeAnythingIsMeasured) {
  std::ofstream(folder_ / "file") << "text";
  EXPECT_THROW(RecordFile{folder_ / "file" / "record.json"}, std::runtime_error);
}

TEST_F(RecordFileTest, InAFolderTakesAFreeName) {
  std::ofstream(folder_ / "0.json") << "old";
  int given = 0, given_too = 0;
  const auto count = [](int& number) { return [&] { return std::to_string(number++) + ".json"; }; };
  RecordFile one(folder_, count(given));
  const RecordFile other(folder_, count(given_too));
  EXPECT_EQ(one.path(), folder_ / "1.json");
  EXPECT_EQ(other.path(), folder_ / "2.json");
  one.keep("a row");
  given_too = 0;
  EXPECT_EQ(RecordFile(folder_, count(given_too)).path(), folder_ / "3.json");
}

}  // namespace
}  // namespace gemm::bench
