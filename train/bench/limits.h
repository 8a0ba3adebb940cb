// What the machine can do at most, measured.
#pragma once

#include <cstdint>

#include "core/rounding.h"

namespace heed::bench {

/// Operations a second of multiply-adds in registers, in single precision, on all threads at once; with the
/// widest vectors that the processor has.
double fma_peak();

/// The memory that an op must touch, in bytes.
struct MemoryPass {
  int64_t read = 0, written = 0;
  bool in_place = false;  ///< what is written is a part of what is read
};

/// Seconds of touching it once on all threads and doing nothing else; on a device, of copying as many bytes.
double pass_time(const MemoryPass& pass);

/// Bytes a second, read and written, of copying what no cache holds. These four are of the default device.
double copy_rate();
/// Operations a second of a large product whose factors lie rounded already; measured once for each rounding.
double product_rate(Rounding rounding);
/// Seconds that each of many small kernels takes when nothing waits for them.
double launch_time();
/// Seconds of one small kernel and of waiting for it.
double answer_time();

/// x / `by` where the default device is acted by the CPU, which is that much slower; x elsewhere.
int64_t unless_acted(int64_t x, int64_t by);

}  // namespace heed::bench
