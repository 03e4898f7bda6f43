// Shapes and --gemm_* options, right and wrong.
#include "bench/cases/options.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cases/shapes.hpp"

namespace gemm::bench {
namespace {

std::vector<Shape> shapes(const std::string& text) { return parse_shapes(text, Device::Kind::gpu); }

// The message of what is thrown; empty if nothing is.
template <typename F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Shapes, ReadsCubesBoxesAndLists) {
  EXPECT_EQ(shapes("256"), (std::vector<Shape>{{256, 256, 256}}));
  EXPECT_EQ(shapes("1024x512x768"), (std::vector<Shape>{{1024, 512, 768}}));
  EXPECT_EQ(shapes("1,2x3x4,1x1x1"), (std::vector<Shape>{{1, 1, 1}, {2, 3, 4}}));
  EXPECT_EQ(name_of(shapes("2x3x4")[0]), "2x3x4");
}

TEST(Shapes, ReadsBatches) {
  EXPECT_EQ(shapes("batched:16x512,512,batched:2x3x4x5"),
            (std::vector<Shape>{{512, 512, 512, 16}, {512, 512, 512}, {3, 4, 5, 2}}));
  EXPECT_EQ(shapes("batched:1x8"), shapes("8")) << "one product is no batch";
  EXPECT_EQ(name_of(shapes("batched:2x3x4x5")[0]), "batched:2x3x4x5");
  for (const Shape& shape : shapes("batched")) {
    EXPECT_GT(shape.batch, 1);
    EXPECT_EQ(shapes(name_of(shape)), std::vector{shape});
  }
}

TEST(Shapes, ReadsGroups) {
  EXPECT_EQ(shapes("grouped:8x512/zipf,grouped:2x3x4x5/band:7"),
            (std::vector<Shape>{{512, 512, 512, 8, Tokens::zipf}, {3, 4, 5, 2, Tokens::band, 7}}));
  EXPECT_EQ(shapes("grouped:8x512/zipf:0"), shapes("grouped:8x512/zipf"));
  EXPECT_EQ(shapes("grouped:1x8/real"), shapes("8")) << "one group is no group";
  for (const char* name : {"grouped:2x3x4x5/band:7", "grouped:8x512x4096x7168/real"})
    EXPECT_EQ(name_of(shapes(name)[0]), name);
  EXPECT_EQ(name_of(shapes("grouped:8x512/zipf:3")[0], true), "grouped:8x512/zipf:3");
}

TEST(Shapes, KnowsTheNamedSets) {
  for (const char* set :
       {"default", "square", "quick", "ragged", "skinny", "batched", "moe", "fp8block", "layers"}) {
    EXPECT_FALSE(parse_shapes(set, Device::Kind::gpu).empty());
    EXPECT_FALSE(parse_shapes(set, Device::Kind::cpu).empty());
  }
  EXPECT_EQ(shapes("quick,quick").size(), shapes("quick").size());
}

// The same on every machine: shapes of a seed are named in reports.
TEST(Shapes, DrawsTheSameShapesFromASeed) {
  EXPECT_EQ(shapes("random:3:1"), shapes("random:3:1"));
  EXPECT_NE(shapes("random:3:1"), shapes("random:3:2"));
  const auto more = shapes("random:60:1");
  EXPECT_EQ(std::vector<Shape>(more.begin(), more.begin() + 3), shapes("random:3:1"));
  EXPECT_EQ(shapes("random:3:1"),
            (std::vector<Shape>{{8144, 448, 4544}, {288, 624, 512}, {10464, 1712, 5248}}));
}

TEST(Shapes, DrawsThemLogUniformWithinTheirLimits) {
  const auto drawn = shapes("random:10000:7");
  double octaves = 0, sixteens = 0;
  std::int64_t least = 1 << 20, most = 0;
  for (const auto& [m, n, k, batch, tokens, seed] : drawn) {
    EXPECT_EQ(batch, 1);
    const double flop =
        2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    EXPECT_TRUE(flop >= 1e8 && flop <= 5e12) << m << "x" << n << "x" << k;
    sixteens += m % 16 == 0 && n % 16 == 0 && k % 16 == 0;
    for (const std::int64_t size : {m, n, k}) octaves += std::log2(static_cast<double>(size));
    least = std::min({least, m, n, k});
    most = std::max({most, m, n, k});
  }
  EXPECT_EQ(least, 16);
  EXPECT_EQ(most, 16384);
  EXPECT_NEAR(sixteens / 10000, 0.7, 0.01);
  EXPECT_NEAR(octaves / 30000, 10.09, 0.05);  // 9 without the limits of FLOP
}

TEST(Shapes, ReadsAJsonFile) {
  const auto path = std::filesystem::temp_directory_path() / "gemm_bench_shapes_test.json";
  const auto with = [&](const char* text) {
    std::ofstream(path) << text;
    return path.string();
  };
  EXPECT_EQ(shapes(with(R"(["batched:3x8"])")), (std::vector<Shape>{{8, 8, 8, 3}}));
  EXPECT_EQ(shapes(with(R"(["7", "2x3x4", [5, 6, 7]])")),
            (std::vector<Shape>{{7, 7, 7}, {2, 3, 4}, {5, 6, 7}}));
  for (const char* bad :
       {"", "[", "{}", "[]", "[1.5]", "[[1, 2]]", "[[0, 4, 4]]", "[true]", "[\"4x4\"]"})
    EXPECT_FALSE(refusal([&] { shapes(with(bad)); }).empty()) << bad;
  std::filesystem::remove(path);
  EXPECT_NE(refusal([&] { shapes(path.string()); }).find("cannot be read"), std::string::npos);
}

TEST(Shapes, RefusesWhatIsNoneInOneLineThatNamesIt) {
  for (const char* bad : {"0x4x4",
                          "4x4",
                          "abc",
                          "",
                          ",",
                          "4x",
                          "x4x4",
                          "4x4x4x4",
                          "-1",
                          "4.5",
                          "1e3",
                          "2147483648",
                          "99999999999999999999",
                          "4 x4x4",
                          "1024,abc",
                          "random:",
                          "random:5",
                          "random:5:",
                          "random:0:1",
                          "random:5:1:2",
                          "random:5:-1",
                          "random:5:1x",
                          "batched:",
                          "batched:16",
                          "batched:16x",
                          "batched:x512",
                          "batched:0x512",
                          "batched:16x0",
                          "batched:16x512x512",
                          "batched:16x8x8x8x8",
                          "batched:2147483648x8",
                          "batched:99999999999999999999x8",
                          "batched:a8x8",
                          "batched 16x512",
                          "grouped:16x512",
                          "grouped:16x512/",
                          "grouped:16x512/zip",
                          "grouped:16x512/equal",
                          "grouped:16x512/zipf:",
                          "grouped:16x512/zipf:65536",
                          "grouped:16x512/zipf:-1",
                          "grouped:16x512/zipf/band",
                          "grouped:16/zipf",
                          "grouped:513x8/zipf",
                          "grouped:2x1073741824x1x1/zipf",
                          "batched:16x512/zipf"}) {
    const std::string message = refusal([&] { shapes(bad); });
    EXPECT_FALSE(message.empty()) << bad;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_NE(refusal([] { shapes("256,abc"); }).find("'abc'"), std::string::npos);
}

Options parse(std::vector<std::string> arguments, std::vector<std::string>* left = nullptr) {
  arguments.insert(arguments.begin(), "gemm_bench");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(arguments.size());
  const Options options = parse_options(argc, argv.data());
  if (left != nullptr) left->assign(argv.begin(), argv.begin() + argc);
  return options;
}

TEST(Options, TakesOursAndLeavesGooglesAlone) {
  std::vector<std::string> left;
  const Options options = parse(
      {"--benchmark_filter=Tiled", "--gemm_seed=7", "--gemm_precisions=f32,bf16", "--gemm_device=1",
       "--gemm_fill=integers", "--gemm_row_budget=2.5", "--gemm_peak_bandwidth=4.8e12",
       "--gemm_layouts=tn,nn", "--gemm_epilogues=bias,none", "--benchmark_min_time=1"},
      &left);
  EXPECT_EQ(left, (std::vector<std::string>{"gemm_bench", "--benchmark_filter=Tiled",
                                            "--benchmark_min_time=1"}));
  EXPECT_EQ(options.seed, 7U);
  EXPECT_EQ(options.precisions, (std::vector{Precision::f32, Precision::bf16}));
  EXPECT_EQ(options.layouts, (std::vector{Layout::tn, Layout::nn}));
  EXPECT_EQ(options.epilogues, (std::vector{Activation::bias, Activation::none}));
  EXPECT_TRUE(parse({}).layouts.empty()) << "nn, and the default suite";
  EXPECT_EQ(options.device, "1");
  EXPECT_EQ(options.cublas, std::nullopt);
  EXPECT_EQ(parse({"--gemm_cublas=/a/libcublas.so"}).cublas, "/a/libcublas.so");
  EXPECT_EQ(options.fill, Fill::integers);
  EXPECT_EQ(options.timing.budget_seconds, 2.5);
  EXPECT_EQ(options.peaks.bytes_per_second, 4.8e12);
}

TEST(Options, OfTheTimingPlan) {
  EXPECT_EQ(parse({}).timing.state, State::settled);
  EXPECT_EQ(parse({}).timing.cooldown_seconds, 0);
  const Options burst = parse({"--gemm_state=burst", "--gemm_burst=4", "--gemm_cache=hot",
                               "--gemm_target=1%", "--gemm_flat=0.05", "--gemm_fill=normal",
                               "--gemm_monitor=0", "--gemm_versus=cuBLAS", "--gemm_peaks=nominal"});
  EXPECT_EQ(burst.timing.state, State::burst);
  EXPECT_EQ(burst.timing.cooldown_seconds, 1);
  EXPECT_EQ(burst.timing.burst_launches, 4);
  EXPECT_FALSE(burst.rotate);
  EXPECT_DOUBLE_EQ(burst.timing.target, 0.01);
  EXPECT_DOUBLE_EQ(burst.timing.flat, 0.05);
  EXPECT_EQ(burst.fill, Fill::normal);
  EXPECT_EQ(burst.monitor_seconds, 0);
  EXPECT_EQ(burst.versus, "cuBLAS");
  EXPECT_EQ(burst.peaks_from, PeaksFrom::nominal);
  EXPECT_EQ(parse({"--gemm_cooldown=0", "--gemm_state=burst"}).timing.cooldown_seconds, 0);
}

TEST(Options, BlocksAtThePowerLimitHaveTheTimeThatTheyNeed) {
  const Options usual = parse({"--gemm_state=limit"});
  EXPECT_EQ(usual.timing.state, State::limit);
  EXPECT_EQ(usual.timing.budget_seconds, 10 + 5 * 4 + 8 * 2.5);
  EXPECT_EQ(usual.monitor_seconds, 0.005);
  const Options brief = parse({"--gemm_rounds=1", "--gemm_block=1", "--gemm_warmup=2",
                               "--gemm_state=limit", "--gemm_monitor=0.1"});
  EXPECT_EQ(brief.timing.budget_seconds, 10 + 3 * 2 + 4 * 1);
  EXPECT_EQ(brief.monitor_seconds, 0.1);
  EXPECT_EQ(parse({"--gemm_state=limit", "--gemm_row_budget=7"}).timing.budget_seconds, 7);
}

TEST(Options, EveryWrongOneIsNamedInOneLine) {
  for (const char* bad :
       {"--gemm_bogus",          "--gemm_bogus=1",         "--gemm_precisions=f33",
        "--gemm_precisions=",    "--gemm_precisions",      "--gemm_fill=ones",
        "--gemm_seed=-1",        "--gemm_seed=1.5",        "--gemm_seed=",
        "--gemm_seed",           "--gemm_device=gpu",      "--gemm_device=-1",
        "--gemm_device=",        "--gemm_row_budget=0",    "--gemm_row_budget=-3",
        "--gemm_row_budget=nan", "--gemm_run_budget=inf",  "--gemm_warmup=soon",
        "--gemm_sample=0",       "--gemm_peak_flops=fast", "--gemm_peak_bandwidth=-1",
        "--gemm_state=warm",     "--gemm_cache=cold",      "--gemm_target=0",
        "--gemm_target=150%",    "--gemm_flat=nan",        "--gemm_burst=0",
        "--gemm_burst=1001",     "--gemm_cooldown=-1",     "--gemm_monitor=often",
        "--gemm_patience=0",     "--gemm_peaks=guess",     "--gemm_versus",
        "--gemm_shapes",         "--gemm_allow_debug=1",   "--gemm_name_record=1",
        "--gemm_layouts=nn,xt",  "--gemm_layouts=",        "--gemm_layouts",
        "--gemm_list_kernels=1", "--gemm_peaks=queried",   "--gemm_rounds=0",
        "--gemm_rounds=9",       "--gemm_block=0"}) {
    const std::string message = refusal([&] { parse({bad}); });
    const std::string name = std::string(bad).substr(0, std::string(bad).find('='));
    EXPECT_NE(message.find(name), std::string::npos) << bad << " gave '" << message << "'";
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_NE(refusal([] { parse({"--gemm_precisions=f33"}); }).find("f32, tf32"), std::string::npos);
  EXPECT_EQ(refusal([] { parse({"--gemm_layouts=nn,NT"}); }),
            "--gemm_layouts: 'NT' is not a layout (nn, nt, tn, tt)");
  EXPECT_EQ(refusal([] { parse({"--gemm_epilogues=gelu"}); }),
            "--gemm_epilogues: 'gelu' is not an epilogue (none, bias, bias-gelu, residual)");
}

TEST(Options, HelpHasShortLines) {
  std::istringstream lines(options_help());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  EXPECT_TRUE(parse({"--help"}).help);
}

TEST(Options, KernelsAndDefinesAddUp) {
  const Options options = parse({"--gemm_kernel=a.cu,b.so:f", "--gemm_kernel=c.cu:g<16>",
                                 "--gemm_define=TILE:16,32", "--gemm_define=X:-1.5"});
  EXPECT_EQ(options.kernels, (std::vector<std::string>{"a.cu", "b.so:f", "c.cu:g<16>"}));
  ASSERT_EQ(options.defines.size(), 2U);
  EXPECT_EQ(options.defines[0].name, "TILE");
  EXPECT_EQ(options.defines[0].values, (std::vector<std::string>{"16", "32"}));
  EXPECT_EQ(options.defines[1].values, (std::vector<std::string>{"-1.5"}));
  EXPECT_EQ(options.arguments.size(), 5U);
  EXPECT_FALSE(options.is_child);
  for (const char* bad :
       {"--gemm_define=TILE", "--gemm_define=:1", "--gemm_define=A:", "--gemm_define=A:1,,2",
        "--gemm_define=A:x/y", "--gemm_define=A:a b", "--gemm_define=1A:3", "--gemm_define=A-B:1",
        "--gemm_define=A:1,1", "--gemm_kernel=", "--gemm_kernel", "--gemm_kernel_limit=0"})
    EXPECT_NE(refusal([&] { parse({bad}); }).find("--gemm_"), std::string::npos) << bad;
}

TEST(Options, HaveTheDefaultsThatHelpNames) {
  const Options parsed = parse({});
  const TimingPlan& timing = parsed.timing;
  const std::string help =
      std::regex_replace(options_help(), std::regex("\n {9,}"), " ");  // an option, a line
  const auto named = [&](const std::string& option) {
    constexpr std::string_view kDefault = "(default: ";
    return help.substr(help.find(kDefault, help.find("--gemm_" + option + "=")) + kDefault.size());
  };
  EXPECT_EQ(std::stod(named("warmup")), timing.warmup_seconds);
  EXPECT_EQ(std::stod(named("flat")), 100 * timing.flat);
  EXPECT_EQ(std::stod(named("sample")), timing.sample_seconds);
  EXPECT_EQ(std::stod(named("target")), 100 * timing.target);
  EXPECT_EQ(std::stod(named("sampling")), timing.longest_sampling_seconds);
  EXPECT_EQ(std::stod(named("burst")), static_cast<double>(timing.burst_launches));
  EXPECT_EQ(std::stod(named("rounds")), static_cast<double>(timing.rounds));
  EXPECT_EQ(std::stod(named("block")), timing.block_seconds);
  EXPECT_EQ(std::stod(named("row_budget")), timing.budget_seconds);
  EXPECT_EQ(std::stod(named("patience")), parsed.patience_seconds);
  EXPECT_EQ(std::stod(named("monitor")), parsed.monitor_seconds);
  EXPECT_EQ(std::stod(named("seed")), static_cast<double>(parsed.seed));
}

TEST(Options, AUsersKernelMayTakeItsRowsBudget) {
  EXPECT_EQ(parse({}).kernel_limit_seconds(), 30);
  EXPECT_EQ(parse({"--gemm_row_budget=100"}).kernel_limit_seconds(), 120);
  EXPECT_EQ(parse({"--gemm_row_budget=100", "--gemm_kernel_limit=5"}).kernel_limit_seconds(), 5);
}

}  // namespace
}  // namespace gemm::bench
