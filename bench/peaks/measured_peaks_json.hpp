// Measured peaks as JSON, in the file that keeps them and in records.
#pragma once

#include "bench/base/json.hpp"
#include "bench/peaks/measured_peaks.hpp"
#include "bench/timing/timing.hpp"

namespace gemm::bench {

JSON_FIELDS(Quartiles, median, q1, q3, min)
JSON_FIELDS(MeasuredPeak, name, arithmetic, fill, what, utc, flop_per_second, bytes_per_second,
            per_clock_per_sm, of_nominal, seconds, samples, settled, sm_hz, memory_hz, power_w,
            temperature_c, throttled_share)

}  // namespace gemm::bench
