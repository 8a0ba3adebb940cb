// Progress of long computations, with a way to cancel them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "heed/core/parallel/thread_pool.h"

namespace heed {

/// Called now and then, in the calling thread, with the number of finished examples; an exception cancels the
/// work.
using ProgressCallback = std::function<void(int64_t done)>;

/// Calls compute_rows(begin, end) for all rows in parallel, in chunks, and on_progress after each chunk; in
/// one chunk where on_progress is empty. A chunk has `grains_per_thread` times `grain` rows per thread, which
/// callers choose so that it takes a fraction of a second. Results do not depend on chunks, since
/// `compute_rows` writes only the rows from begin to end.
template <class F>
void parallel_rows_with_progress(int64_t count, int64_t grain, const ProgressCallback& on_progress,
                                 F&& compute_rows, int64_t grains_per_thread = 16) {
  const int64_t chunk = on_progress ? grains_per_thread * grain * threads() : std::max<int64_t>(count, 1);
  for (int64_t done = 0; done < count; done += chunk) {
    const int64_t rows = std::min(chunk, count - done);
    parallel_rows(rows, grain, [&](int64_t begin, int64_t end) { compute_rows(done + begin, done + end); });
    if (on_progress) on_progress(done + rows);
  }
}

}  // namespace heed
