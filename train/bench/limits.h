// What the machine can do at most, measured.
#pragma once

#include <cstdint>

namespace heed::bench {

/// Operations a second of multiply-adds in registers, in single precision, on all threads at once; with the
/// widest vectors that the processor has.
double fma_peak();

/// Seconds of one pass over `read` + `written` bytes of memory on all threads: reading the one, writing the
/// other. What an op that does nothing else would take.
double pass_time(int64_t read, int64_t written);

}  // namespace heed::bench
