// What the machine can do at most, measured.
#pragma once

#include <cstdint>

namespace heed::bench {

/// Operations a second of multiply-adds in registers, in single precision, on all threads at once; with the
/// widest vectors that the processor has.
double fma_peak();

/// The memory that an op must touch, in bytes.
struct Pass {
  int64_t read = 0, written = 0;
  bool in_place = false;  ///< what is written is a part of what is read
};

/// Seconds of touching it once on all threads and doing nothing else.
double pass_time(const Pass& pass);

}  // namespace heed::bench
