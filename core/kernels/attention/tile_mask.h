// Which pairs of a tile of queries and a step of keys are worked on at all, as few rectangles.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heed::kernel {

/// Most queries of a tile, and most keys of one step.
inline constexpr int64_t tile = 64;

/// Which of a step's keys each group of queries meets: one band for a full rectangle; a stair where the
/// diagonal of a causal map passes, or the edges of a window.
struct Stairs {
  static constexpr int64_t group = 16;
  /// Queries [from, to) meet keys [low, high).
  struct Step {
    int64_t from, to, low, high;
    bool meets(int64_t first, int64_t last) const { return low <= first && last <= high; }
  };
  Step step[tile / group];
  int64_t steps = 0;

  /// In the order of the queries.
  void add(const Step& more) {
    if (more.low >= more.high) return;
    Step* last = steps > 0 ? &step[steps - 1] : nullptr;
    if (last != nullptr && last->to == more.from && last->low == more.low && last->high == more.high) {
      last->to = more.to;
    } else {
      step[steps++] = more;
    }
  }
  /// The keys lie before this one.
  int64_t end() const {
    int64_t most = 0;
    for (int64_t s = 0; s < steps; ++s) most = std::max(most, step[s].high);
    return most;
  }
  /// Calls f(step) for each step.
  template <class F>
  void each(F&& f) const {
    for (int64_t s = 0; s < steps; ++s) f(step[s]);
  }
  /// Calls f(rectangle) for the same pairs cut at every edge of keys: few queries more often than few keys.
  template <class F>
  void each_rectangle(F&& f) const {
    int64_t edge[2 * (tile / group)] = {}, edges = 0;
    const auto put = [&](int64_t key) {
      int64_t at = edges++;
      for (; at > 0 && edge[at - 1] > key; --at) edge[at] = edge[at - 1];
      edge[at] = key;
    };
    for (int64_t s = 0; s < steps; ++s) {
      put(step[s].low);
      put(step[s].high);
    }
    for (int64_t e = 0; e + 1 < edges; ++e) {
      const int64_t low = edge[e], high = edge[e + 1];
      for (int64_t s = 0; low < high && s < steps; ++s) {
        if (!step[s].meets(low, high)) continue;
        const int64_t from = step[s].from;
        while (s + 1 < steps && step[s + 1].from == step[s].to && step[s + 1].meets(low, high)) ++s;
        f(Step{from, step[s].to, low, high});
      }
    }
  }
};

}  // namespace heed::kernel
