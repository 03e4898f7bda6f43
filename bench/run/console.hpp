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

// "12/339  1:23 left  Tiled/tile:16/f32/4096x4096x4096  1755 MHz  650 W"
std::string status_line(const Progress& progress, const std::string& name,
                        const GpuMonitor* monitor, std::size_t width);

class Console {
 public:
  // For names of up to so many columns.
  Console(const Results& results, std::size_t longest_name)
      : results_(results), longest_name_(longest_name) {}

  // Each returns whole lines, none longer than `width`; without a width, lines of any length.
  // Columns for which there is no room are left out.
  using Width = std::optional<std::size_t>;
  // The device, its peaks, what is unusual around it, and the heads of the columns.
  std::string head(Width width) const;
  // A result and its notes; `progress` ends its line where there is no status line.
  std::string result(const std::string& name, const Row& row, const std::string& progress,
                     Width width);
  // Of an aggregate: its name, a time and a rate.
  std::string aggregate(const std::string& name, const std::string& time, const std::string& rate,
                        Width width) const;
  // The fastest kernel of each precision next to the fastest library, and how all was measured.
  std::string summary(Width width) const;

 private:
  enum class Column { name, time, rate, peak, at_clock, library, clock, power, samples };
  struct Layout {
    std::vector<Column> columns;
    std::size_t name_width;
  };
  Layout layout(Width width) const;
  std::string cell(Column column, const Row& row) const;

  const Results& results_;
  std::size_t longest_name_;
  std::set<std::string> explained_;  // codes of deviations, and above_peak
};

// "NVIDIA H200, 132 SMs, 1980 MHz"
std::string device_text(const DeviceInfo& device);

// The peaks in lines that fit, and where the table and a probe disagree.
std::string peaks_text(const std::vector<Peak>& peaks, Console::Width width);

}  // namespace gemm::bench
