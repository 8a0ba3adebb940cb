// The thread pool, and parallel loops, whose pieces do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "heed/core/ceil_div.h"

namespace heed {

/// The number of threads, the caller included. It begins as HEED_THREADS, or the number of cores that this
/// process may use.
int threads();
/// Sets the number of threads. No parallel_for may be running. Results are bit-identical for any number.
void set_threads(int count);

/// The name of the kernel family that OpenBLAS uses, such as "Haswell"; "unknown" with another BLAS.
std::string blas_core();

namespace detail {
void run_pieces(int64_t pieces, void (*piece)(void*, int64_t), void* context);
}

/// Calls f(piece) once for each 0 <= piece < pieces, on all threads, in no fixed order; returns when all are
/// done. f writes only what belongs to its piece, so the result is the same for any number of threads. Inside
/// another parallel_for it runs in the calling thread. The first exception is rethrown.
template <class F>
void parallel_for(int64_t pieces, F&& f) {
  detail::run_pieces(
      pieces,
      [](void* context, int64_t piece) { (*static_cast<std::remove_reference_t<F>*>(context))(piece); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

/// Splits [0, count) into runs of `grain` and calls f(begin, end) for each in parallel.
template <class F>
void parallel_rows(int64_t count, int64_t grain, F&& f) {
  if (grain < 1) grain = 1;
  const int64_t pieces = ceil_div(count, grain);
  parallel_for(pieces, [&](int64_t piece) {
    const int64_t begin = piece * grain;
    f(begin, begin + grain < count ? begin + grain : count);
  });
}

/// Number of light operations, such as those of one element of an elementwise loop, that make a piece worth
/// giving to a thread.
inline constexpr int64_t light_grain = int64_t{1} << 14;

}  // namespace heed
