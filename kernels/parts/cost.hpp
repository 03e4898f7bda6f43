// The model of a plan's time. It only makes the shortlist of plans that a trial times (trial.hpp),
// so it has to put a good plan among the first, not to predict a time to the per cent.
//
// time = launches + max(arithmetic, shared memory, loads of an SM, L2, DRAM)
//        + beginning tiles + storing the last ones + exchanging partial sums
//
// The peaks are those of the device at hand; the twelve numbers below belong to the machine model.
// A smooth maximum stands for the overlap of limits, which is never complete. A block sees another
// one's partial sums after a store and a load, which take kBegin each.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "kernels/gemm.hpp"

namespace gemm {

inline constexpr double kLaunch = 4e-6,  // seconds from a launch to the first loads of its blocks
    kBegin = 1e-6,                       // seconds from a tile's first load to its first product
    kSmLoads = 64,                       // bytes per cycle that an SM takes from the L2
    kSmStores = 24,                      // bytes per cycle that an SM stores, or adds
    kSharedMemory = 128,                 // bytes per cycle of an SM's shared memory
    kLinesOfL2 = 1.5,                    // rate of whole lines, relative to the L2's measured peak
    kArithmetic = 0.8,                   // share of the peak rate that a full main loop keeps
    kOverlap = 3,                        // exponent of the smooth maximum of limits
    kLanes = 128,                        // multiply-adds per cycle of an SM's CUDA cores, FP32
    kTensorBytes = 4096,  // bytes per cycle of each operand that an SM multiplies (9.0)
    kMmaSync = 0.6,       // rate of mma.sync, relative to that of wgmma
    kShiftLine = 8;       // cycles in which an SM shifts 128 bytes into their place

// Seconds of one launch.
inline double seconds(const Work& work, const Device& device) {
  const double sms = device.sm_count, hz = device.sm_hz,
               lines = work.lines > 0 ? work.lines : work.traffic.l2;
  const double limits[] = {work.busiest * work.cycles / (kArithmetic * hz),
                           work.busiest * work.traffic.shared / (sms * kSharedMemory * hz),
                           work.busiest * lines / (sms * kSmLoads * hz),
                           lines / (kLinesOfL2 * device.l2_bytes_per_second),
                           (work.traffic.dram - work.packed) / device.dram_bytes_per_second};
  double sum = 0;
  for (const double limit : limits) sum += std::pow(limit, kOverlap);
  return work.launches * kLaunch + work.packed / device.dram_bytes_per_second +
         std::pow(sum, 1 / kOverlap) + work.tiles * kBegin + work.tail / (kSmStores * hz) +
         work.exchanges * 2 * kBegin;
}

// Cycles of an SM's units for `products` multiply-adds in all: those of CUDA cores in FP32, which
// tensor cores do as fast in FP64 (9.0); or of tensor cores in narrower types, whose rate is
// inverse to the bytes of an element.
inline double fp32_cycles(double products, const Device& device) {
  return products / kLanes / device.sm_count;
}
inline double tensor_cycles(double products, double element_bytes, const Device& device) {
  return products * element_bytes / kTensorBytes / device.sm_count;
}

// "tile:128x256", for the names of plans.
inline std::string named(const char* what, std::int64_t rows, std::int64_t columns) {
  return std::string(what) + ":" + std::to_string(rows) + "x" + std::to_string(columns);
}

}  // namespace gemm
