// Measures the peak rates of the machine: multiply-adds, matrix products, memory, launches.
#pragma once

#include <cstdint>

#include "heed/core/matmul_precision.h"

namespace heed::bench {

/// Peak f32 multiply-add rate in FLOP/s: in registers, on all threads, with the widest vectors of the
/// processor.
double fma_peak();

/// The bytes of memory that an op must read and write.
struct MemoryPass {
  int64_t read = 0, written = 0;
  bool in_place = false;  ///< whether the written bytes are among those read
};

/// Seconds to read and write these bytes once on all threads; on a GPU, to copy as many.
double pass_time(const MemoryPass& pass);

/// Bytes per second, read plus written, of a copy larger than all caches, on the default device.
double copy_rate();
/// FLOP/s of a large matrix product with rounded factors on the default device; measured once per rounding.
double product_rate(Rounding rounding);
/// Seconds per kernel on the default device, of many small kernels launched without waiting for results.
double launch_time();
/// Seconds of one small kernel on the default device and of waiting for it.
double answer_time();

/// x / `by` (at least 1) if the default device is emulated on the CPU, which is slower; else x.
int64_t unless_emulated(int64_t x, int64_t by);

}  // namespace heed::bench
