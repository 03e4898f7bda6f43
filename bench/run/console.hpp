// The console's text: results in columns that fit a width, and the summary at the end.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/device/gpu.hpp"
#include "bench/record/record.hpp"
#include "bench/run/progress.hpp"

namespace gemm::bench {

// "1:23"
std::string clock_text(double seconds);

// "60.34 us"
std::string time_text(double seconds);

// Text of at most `width` columns, cut in its middle.
std::string shortened(const std::string& text, std::size_t width);

// "[###-------] 12/339  1:23 left  warm-up  Tiled/tile:16 f32 4096  1755 MHz  650 W"
std::string status_line(const Progress& progress, const Case& which, const GpuMonitor* monitor,
                        std::size_t width);

class Console {
 public:
  // For results of these cases. Colours: yellow is a doubt, red a failure, bold faster than the
  // library.
  Console(const Results& results, const std::vector<Case>& cases, bool colours = false);

  // Each returns whole lines, none longer than `width`; without a width, lines of any length.
  // Columns for which there is no room are left out. With a width, precision and size have columns
  // of their own.
  using Width = std::optional<std::size_t>;
  // The device and whether others make it busy, its peaks, what is unusual around it, and the heads
  // of the columns.
  std::string head(Width width, const std::optional<OthersLoad>& others = {}) const;
  // A result and its notes; `progress` ends its line where there is no status line.
  std::string result(const Row& row, const std::string& progress, Width width);
  // Of an aggregate: its name ("mean"), a time and a rate.
  std::string aggregate(const Case& which, const std::string& name, const std::string& time,
                        const std::string& rate, Width width) const;
  // The fastest kernel of each problem next to the fastest library, the versions of libraries, and
  // how many results deviate from the guideline.
  std::string summary(Width width) const;

 private:
  enum class Column {
    name,
    type,
    size,
    time,
    rate,
    interval,
    peak,
    at_clock,
    library,
    clock,
    power
  };
  struct Layout {
    std::vector<Column> columns;
    std::size_t name_width;
  };
  Layout layout(Width width) const;
  std::size_t width_of(Column column) const;
  std::string named(const Case& which, const std::string& suffix, std::size_t columns,
                    Width width) const;
  std::string cell(Column column, const Row& row) const;
  std::string painted(const std::string& lines, const char* colour) const;
  std::string winners(Width width) const;

  const Results& results_;
  std::size_t longest_name_ = 9, longest_type_ = 4, longest_size_ = 4, longest_whole_ = 20;
  bool colours_;
  std::set<std::string> explained_;  // codes of doubts
};

// "NVIDIA H200, 132 SMs, 1980 MHz"
std::string device_text(const DeviceInfo& device);

// The peaks in lines that fit, and where the table and a probe disagree.
std::string peaks_text(const std::vector<Peak>& peaks, Console::Width width);

}  // namespace gemm::bench
