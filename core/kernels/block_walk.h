// How the runs of a pattern become work: tiles of queries against the keys they share, or queries one by one.
#pragma once

#include <algorithm>
#include <vector>

#include "core/kernels/attention_row.h"
#include "core/kernels/block_attention.h"
#include "core/parallel.h"

namespace heed::kernel {

/// Runs [begin, end) of one query's keys, those at `keys` and past it cut off.
template <class F>
void each_run(const Pattern& pattern, int64_t head, int64_t query, int64_t keys, F&& f) {
  const auto row = static_cast<size_t>((pattern.heads == 1 ? 0 : head) * pattern.queries + query);
  for (int64_t r = pattern.first[row]; r < pattern.first[row + 1]; ++r) {
    const Pattern::Run& run = pattern.runs[static_cast<size_t>(r)];
    if (run.begin >= keys) break;
    f(int64_t{run.begin}, std::min<int64_t>(run.end, keys));
  }
}

/// Calls f(picked) for the keys of one query, at most a tile at a time.
template <class F>
void each_pick(const Pattern& pattern, int64_t head, int64_t query, int64_t keys, F&& f) {
  int32_t index[tile];
  int64_t count = 0;
  each_run(pattern, head, query, keys, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      index[count++] = static_cast<int32_t>(j);
      if (count == tile) {
        f(Picked{index, count});
        count = 0;
      }
    }
  });
  if (count > 0) f(Picked{index, count});
}

/// For every tile of a pattern, how its queries are cheapest: all together, in groups, or one by one.
class Plan {
 public:
  static constexpr int64_t group = 16;

  explicit Plan(const Pattern& pattern)
      : tiles_(pieces_of(pattern.queries, tile)),
        heads_(pattern.heads),
        modes_(static_cast<size_t>(heads_ * tiles_)) {
    parallel_rows(heads_ * tiles_, 8, [&](int64_t begin, int64_t end) {
      Marks marks(pattern.keys), all(pattern.keys);
      for (int64_t at = begin; at < end; ++at) {
        modes_[static_cast<size_t>(at)] = mode(pattern, at / tiles_, at % tiles_ * tile, marks, all);
      }
    });
  }

  /// Calls f(first query, count, one by one) for the parts of tile `t`.
  template <class F>
  void each_part(int64_t head, int64_t t, int64_t queries, F&& f) const {
    const uint8_t mode = modes_[static_cast<size_t>((heads_ == 1 ? 0 : head) * tiles_ + t)];
    const int64_t size = mode == together ? tile : group, begin = t * tile,
                  end = std::min(begin + tile, queries);
    for (int64_t i = begin, g = 0; i < end; i += size, ++g) {
      f(i, std::min(size, end - i), mode != together && (mode >> g & 1) != 0);
    }
  }

 private:
  static constexpr uint8_t together = 0x80;

  /// Which spans of `span` keys are touched.
  struct Marks {
    static constexpr int64_t span = 16;
    explicit Marks(int64_t keys) : words(static_cast<size_t>(keys / span / 64 + 1)) {}
    std::vector<uint64_t> words;

    void clear() { std::fill(words.begin(), words.end(), 0); }
    void mark(int64_t begin, int64_t end) {
      const int64_t first = begin / span, last = (end - 1) / span;
      for (int64_t w = first / 64; w <= last / 64; ++w) {
        words[static_cast<size_t>(w)] |= low_bits(last - w * 64 + 1) & ~low_bits(first - w * 64);
      }
    }
    void join(const Marks& other) {
      for (size_t w = 0; w < words.size(); ++w) words[w] |= other.words[w];
    }
    double keys() const {
      int64_t spans = 0;
      for (const uint64_t word : words) spans += __builtin_popcountll(word);
      return static_cast<double>(spans * span);
    }
  };

  static uint8_t mode(const Pattern& pattern, int64_t head, int64_t begin, Marks& marks, Marks& all) {
    // Relative costs of a pair: in a full tile, in a group of 16, and by itself.
    constexpr double in_group = 1.4, alone = 6;
    const int64_t end = std::min(begin + tile, pattern.queries);
    uint8_t rows = 0;
    double parts = 0;
    all.clear();
    for (int64_t i = begin, g = 0; i < end; i += group, ++g) {
      marks.clear();
      int64_t kept = 0;
      for (int64_t q = i; q < std::min(i + group, end); ++q) {
        each_run(pattern, head, q, pattern.keys, [&](int64_t from, int64_t to) {
          if (to <= from) return;
          marks.mark(from, to);
          kept += to - from;
        });
      }
      const double shared = marks.keys() * group * in_group, single = alone * static_cast<double>(kept);
      if (single < shared) rows = static_cast<uint8_t>(rows | 1U << g);
      parts += std::min(single, shared);
      all.join(marks);
    }
    return all.keys() * static_cast<double>(simd::padded<float>(end - begin)) <= parts ? together : rows;
  }

  int64_t tiles_, heads_;
  std::vector<uint8_t> modes_;
};

/// The keys that some queries see, walked upwards in steps of at most a tile.
template <class T>
class Walker {
 public:
  PairBits<T> visible;

  /// Queries i to i + count of `head`, keys below `keys`.
  void start(const Pattern& pattern, int64_t head, int64_t i, int64_t count, int64_t keys) {
    pattern_ = &pattern;
    count_ = count;
    keys_ = keys;
    at_ = 0;
    const auto row = static_cast<size_t>((pattern.heads == 1 ? 0 : head) * pattern.queries + i);
    std::copy_n(pattern.first.begin() + static_cast<std::ptrdiff_t>(row), count + 1, bound_);
    std::copy_n(bound_, count, next_);
    for (int64_t q = count; q < simd::padded<T>(count); ++q) visible.set(q, 0);
  }

  /// The next step: its first key and `length` keys; their pairs in `visible`. False when there are no more.
  bool next(int64_t& begin, int64_t& length) {
    begin = keys_;
    for (int64_t q = 0; q < count_; ++q) {
      while (next_[q] < bound_[q + 1] && run(next_[q]).end <= at_) ++next_[q];
      if (next_[q] < bound_[q + 1]) begin = std::min(begin, std::max<int64_t>(run(next_[q]).begin, at_));
    }
    if (begin >= keys_) return false;
    at_ = std::min(begin + tile, keys_);
    int64_t furthest = begin;
    for (int64_t q = 0; q < count_; ++q) {
      uint64_t bits = 0;
      for (int64_t r = next_[q]; r < bound_[q + 1] && run(r).begin < at_; ++r) {
        const int64_t from = std::max<int64_t>(run(r).begin, begin), to = std::min<int64_t>(run(r).end, at_);
        if (to <= from) continue;
        bits |= low_bits(to - begin) & ~low_bits(from - begin);
        furthest = std::max(furthest, to);
      }
      visible.set(q, bits);
    }
    length = furthest - begin;
    return true;
  }

 private:
  const Pattern::Run& run(int64_t r) const { return pattern_->runs[static_cast<size_t>(r)]; }

  const Pattern* pattern_ = nullptr;
  int64_t count_ = 0, keys_ = 0, at_ = 0;
  int64_t bound_[tile + 1], next_[tile];
};

}  // namespace heed::kernel
