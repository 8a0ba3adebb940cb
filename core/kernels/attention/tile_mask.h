// Which pairs of a tile of queries and a tile of keys must be computed, as few rectangles.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heed::kernel {

/// Largest number of queries, and of keys, in a tile.
inline constexpr int64_t tile = 64;

/// The keys that each group of 16 queries sees: one rectangle for a full tile; several on the diagonal of a
/// causal mask or at the edges of a window.
struct TileMask {
  static constexpr int64_t group = 16;
  /// Queries [from, to) see keys [low, high).
  struct Step {
    int64_t from, to, low, high;
    bool meets(int64_t first, int64_t last) const { return low <= first && last <= high; }
  };
  Step step[tile / group];
  int64_t steps = 0;

  /// Steps must be added in the order of their queries.
  void add(const Step& more) {
    if (more.low >= more.high) return;
    Step* last = steps > 0 ? &step[steps - 1] : nullptr;
    if (last != nullptr && last->to == more.from && last->low == more.low && last->high == more.high) {
      last->to = more.to;
    } else {
      step[steps++] = more;
    }
  }
  /// One past the last key of any step.
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
  /// Calls f(rectangle) for the same pairs cut at every key edge: prefers many keys to many queries.
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
