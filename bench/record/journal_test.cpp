#include "bench/record/journal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gemm::bench {
namespace {

using json = nlohmann::ordered_json;
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
using JournalTest = InAFolder;
using Names = std::vector<std::string>;

json context(int seconds) {
  return {{"date", "today"}, {"gemm", {{"time", {{"wall", seconds}, {"kernel", 1}}}}}};
}

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

TEST_F(Durable, ANewFileNeverReplacesOne) {
  const auto path = folder_ / "record.json";
  EXPECT_EQ(write_beside(path, false, "1"), path);
  EXPECT_EQ(write_beside(path, false, "2"), folder_ / "record-recovered.json");
  EXPECT_EQ(write_beside(path, true, "3"), folder_ / "record-recovered-2.json");
  EXPECT_EQ(content(path), "1");
  EXPECT_EQ(content(folder_ / "record-recovered.json"), "2");
  EXPECT_EQ(names(), (Names{"record-recovered-2.json", "record-recovered.json", "record.json"}));
}

TEST_F(JournalTest, MakesTheRecordThatTheRunWouldHaveWritten) {
  const auto record = folder_ / "record.json";
  json expected;
  std::stringstream lines;
  {
    Journal journal(record);
    journal.add(context(1), {});
    journal.add(context(2), {{{"name", "a"}}, {{"name", "b"}}});
    journal.add(context(3), {{{"name", "c"}}});
    lines << content(folder_ / "record.json.journal");
    expected = {{"context", context(3)},
                {"benchmarks", {{{"name", "a"}}, {{"name", "b"}}, {{"name", "c"}}}}};
    // In whatever order the keys are.
    EXPECT_EQ(nlohmann::json(*record_from(lines).document), nlohmann::json(expected))
        << lines.str();
    journal.finish("the record");
  }
  EXPECT_EQ(names(), Names{"record.json"});
  EXPECT_EQ(content(record), "the record");
}

TEST_F(JournalTest, OfALineThatIsTornNothingIsTaken) {
  std::string lines = R"({"context": {"gemm": {}}, "benchmarks": []})"
                      "\n";
  std::istringstream none(lines);
  EXPECT_EQ(record_from(none).document, std::nullopt);
  lines += R"({"context": {}, "benchmarks": [{"name": "a"}]})"
           "\n";
  const std::string torn = R"({"context": {}, "benchmarks": [{"name": "b"}]})";  // no end of line
  for (std::size_t kept = 0; kept <= torn.size(); ++kept) {
    std::istringstream journal(lines + torn.substr(0, kept));
    EXPECT_EQ((*record_from(journal).document)["benchmarks"].dump(), R"([{"name":"a"}])") << kept;
  }
  std::istringstream spoilt(lines + std::string(40, '\0') + "\n" + torn + "\n");
  const Recovered recovered = record_from(spoilt);
  EXPECT_EQ((*recovered.document)["benchmarks"].size(), 2U);
  EXPECT_EQ(recovered.damaged_lines, 1);
}

TEST_F(JournalTest, ARowWithAFlippedBitIsLeftOutAndTheOthersStay) {
  const auto path = folder_ / "record.json.journal";
  std::string whole;
  {
    Journal journal(folder_ / "record.json");
    journal.add(context(1), {{{"name", "a"}}, {{"name", "b"}}, {{"name", "c"}}});
    whole = content(path);
  }
  const std::size_t first = whole.find('\n') + 1;
  for (std::size_t bit = 8 * first; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    std::istringstream lines(flipped);
    const auto rows = (*record_from(lines).document)["benchmarks"];
    ASSERT_GE(rows.size(), 1U) << bit;
    for (const json& row : rows)
      EXPECT_TRUE(row.dump() == R"({"name":"a"})" || row.dump() == R"({"name":"b"})" ||
                  row.dump() == R"({"name":"c"})")
          << bit << ": " << row;
  }
}

TEST_F(JournalTest, IsNotWrittenThroughALink) {
  const auto elsewhere = folder_ / "elsewhere";
  fs::create_symlink(elsewhere, folder_ / "record.json.journal");
  EXPECT_THROW(Journal(folder_ / "record.json"), std::runtime_error);
  EXPECT_FALSE(fs::exists(elsewhere));
}

TEST_F(Durable, WhatLiesWhereThePartGoesIsNeitherFollowedNorKept) {
  const auto path = folder_ / "record.json", elsewhere = folder_ / "elsewhere";
  fs::create_symlink(elsewhere, path.string() + ".part" + std::to_string(getpid()));
  write_atomically(path, "text");
  EXPECT_EQ(content(path), "text");
  EXPECT_EQ(names(), Names{"record.json"});
}

TEST_F(JournalTest, ThatWasJustBegunHasNoRow) {
  std::string first;
  {
    const Journal journal(folder_ / "record.json");
    first = content(folder_ / "record.json.journal");
  }
  for (std::size_t kept = 0; kept <= first.size(); ++kept) {
    std::istringstream journal(first.substr(0, kept));
    EXPECT_EQ(record_from(journal).document, std::nullopt) << kept;
  }
}

TEST_F(JournalTest, WhatIsNoneIsRefused) {
  for (const char* text : {"\n", "x", "[]\n", "{}\n",
                           R"({"context": {}, "benchmarks": []})"
                           "\n",
                           R"({"context": {"gemm": {}}})"
                           "\n"}) {
    std::istringstream journal(text);
    EXPECT_THROW(record_from(journal), std::runtime_error) << text;
  }
}

TEST_F(JournalTest, IsLockedWhileItsOwnerLives) {
  const auto record = folder_ / "record.json";
  Journal journal(record);
  journal.add(context(1), {{{"name", "a"}}});
  EXPECT_THROW(Journal{record}, std::runtime_error);
  std::ostringstream log;
  recover_journals(folder_, log);
  EXPECT_EQ(log.str(), "");
  EXPECT_EQ(names(), Names{"record.json.journal"});
}

TEST_F(JournalTest, OfADeadRunBecomesARecordBesideTheOthers) {
  const auto record = folder_ / "record.json";
  { Journal(record).add(context(1), {{{"name", "a"}}}); }
  { Journal empty(folder_ / "empty.json"); }
  std::ofstream(folder_ / "foreign.journal") << "somebody else's\n";
  std::ofstream(record) << "old";
  std::ostringstream log;
  recover_journals(folder_, log);
  EXPECT_NE(log.str().find("record-recovered.json"), std::string::npos) << log.str();
  EXPECT_EQ(names(), (Names{"foreign.journal", "record-recovered.json", "record.json"}));
  EXPECT_EQ(content(record), "old");
  EXPECT_EQ(json::parse(content(folder_ / "record-recovered.json"))["benchmarks"][0]["name"], "a");
}

TEST_F(JournalTest, OfARunThatWroteItsRecordNothingIsLeft) {
  const auto record = folder_ / "record.json";
  const json row = {{"name", "a"}, {"real_time", 1.25}};
  const json written = {{"context", context(2)}, {"benchmarks", {row, row}}};
  for (const auto& [count, left] : {std::pair(2, Names{"record.json"}),
                                    std::pair(3, Names{"record-recovered.json", "record.json"})}) {
    { Journal(record).add(context(1), std::vector(static_cast<std::size_t>(count), row)); }
    std::ofstream(record) << written;
    std::ostringstream log;
    recover_journals(folder_, log);
    EXPECT_EQ(names(), left) << log.str();
  }
}

TEST_F(JournalTest, OfAHalfWrittenRecordNothingIsLeftAndNothingElseIsTouched) {
  { Journal(folder_ / "record.json").add(context(1), {{{"name", "a"}}}); }
  for (const char* name : {"record.json.part12", "record.json.part", "record.json.part2-of-mine"})
    std::ofstream(folder_ / name) << "text";
  std::ostringstream log;
  recover_journals(folder_, log);
  EXPECT_EQ(names(), (Names{"record.json", "record.json.part", "record.json.part2-of-mine"}));
}

TEST_F(JournalTest, ItsNameIsNotWrittenOverByTheNextRun) {
  const auto record = folder_ / "record.json";
  { Journal(record).add(context(1), {{{"name", "a"}}}); }
  Journal next(record);
  next.add(context(1), {{{"name", "b"}}});
  next.finish("next");
  EXPECT_EQ(names(), (Names{"record-recovered.json", "record.json"}));
  std::ofstream(folder_ / "record.json.journal") << "somebody else's\n";
  EXPECT_THROW(Journal{record}, std::runtime_error);
  EXPECT_EQ(content(folder_ / "record.json.journal"), "somebody else's\n");
}

TEST_F(JournalTest, InAFolderTakesAFreeName) {
  std::ofstream(folder_ / "0.json") << "old";
  Journal one(folder_ / "1.json");
  int names_given = 0;
  Journal other(folder_, [&] { return std::to_string(names_given++) + ".json"; });
  EXPECT_EQ(other.record(), folder_ / "2.json");
  EXPECT_EQ(names(), (Names{"0.json", "1.json.journal", "2.json.journal"}));
}

}  // namespace
}  // namespace gemm::bench
