// Long work that tells how far it is, and can be ended there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "core/parallel.h"

namespace heed {

/// Hears now and then, in the thread that asked for the work, how many examples are done; what it throws ends
/// the work.
using Told = std::function<void(int64_t done)>;

/// `parallel_rows` in stretches of a fraction of a second, after each of which `told` is called; at once
/// where nobody listens. `f` writes only what belongs to its rows, so stretches change nothing. A thread
/// takes `runs_a_thread` runs of `grain` in a stretch.
template <class F>
void told_rows(int64_t count, int64_t grain, const Told& told, F&& f, int64_t runs_a_thread = 16) {
  const int64_t stretch = told ? runs_a_thread * grain * threads() : std::max<int64_t>(count, 1);
  for (int64_t done = 0; done < count; done += stretch) {
    const int64_t rows = std::min(stretch, count - done);
    parallel_rows(rows, grain, [&](int64_t begin, int64_t end) { f(done + begin, done + end); });
    if (told) told(done + rows);
  }
}

}  // namespace heed
