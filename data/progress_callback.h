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

/// `parallel_rows` in chunks of a fraction of a second, calling on_progress after each; in one chunk when it
/// is empty. `f` must write only its own rows, so results do not depend on chunks. A thread gets
/// `runs_a_thread` runs of `grain` per chunk.
template <class F>
void parallel_rows_with_progress(int64_t count, int64_t grain, const ProgressCallback& on_progress, F&& f,
                                 int64_t runs_a_thread = 16) {
  const int64_t stretch = on_progress ? runs_a_thread * grain * threads() : std::max<int64_t>(count, 1);
  for (int64_t done = 0; done < count; done += stretch) {
    const int64_t rows = std::min(stretch, count - done);
    parallel_rows(rows, grain, [&](int64_t begin, int64_t end) { f(done + begin, done + end); });
    if (on_progress) on_progress(done + rows);
  }
}

}  // namespace heed
