// Measured peaks as JSON, in the file that keeps them and in records.
#pragma once

#include "bench/base/json.hpp"
#include "bench/peaks/measured_peaks.hpp"
#include "bench/timing/timing.hpp"

namespace gemm::bench {

template <typename Io>
void fields(Io& io, Like<Quartiles> auto& seconds) {
  io("median", seconds.median);
  io("q1", seconds.q1);
  io("q3", seconds.q3);
  io("min", seconds.min);
}

template <typename Io>
void fields(Io& io, Like<MeasuredPeak> auto& one) {
  io("name", one.name);
  io("arithmetic", one.arithmetic);
  io("fill", one.fill);
  io("what", one.what);
  io("utc", one.utc);
  io("flop_per_second", one.flop_per_second);
  io("bytes_per_second", one.bytes_per_second);
  io("per_clock_per_sm", one.per_clock_per_sm);
  io("of_nominal", one.of_nominal);
  io("seconds", one.seconds);
  io("samples", one.samples);
  io("settled", one.settled);
  io("sm_hz", one.sm_hz);
  io("memory_hz", one.memory_hz);
  io("power_w", one.power_w);
  io("temperature_c", one.temperature_c);
  io("throttled_share", one.throttled_share);
}

}  // namespace gemm::bench
