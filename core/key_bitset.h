// A set of keys as bits, for planning the tiles of a sparse pattern.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace heed::kernel {

/// A set of keys as a bit map. The cost of operations grows with the range of the keys.
class KeyBits {
 public:
  /// An empty set of keys 0 <= key < `keys`.
  explicit KeyBits(int64_t keys) : words_(static_cast<size_t>(keys / 64 + 1)), before_(words_.size()) {}

  /// Removes all keys.
  void clear() {
    if (low_ <= high_) std::fill(words_.begin() + low_, words_.begin() + high_ + 1, 0);
    low_ = static_cast<int64_t>(words_.size());
    high_ = -1;
  }
  /// Adds keys begin <= key < end.
  void add(int64_t begin, int64_t end) {
    const int64_t first = begin / 64, last = (end - 1) / 64;
    low_ = std::min(low_, first);
    high_ = std::max(high_, last);
    for (int64_t w = first; w <= last; ++w) {
      uint64_t bits = ~uint64_t{0};
      if (w == first) bits &= ~uint64_t{0} << (begin % 64);
      if (w == last) bits &= ~uint64_t{0} >> (63 - (end - 1) % 64);
      word(w) |= bits;
    }
  }
  /// Adds all keys of `other`, a set with the same `keys`.
  void join(const KeyBits& other) {
    if (other.low_ > other.high_) return;
    low_ = std::min(low_, other.low_);
    high_ = std::max(high_, other.high_);
    for (int64_t w = other.low_; w <= other.high_; ++w) word(w) |= other.words_[static_cast<size_t>(w)];
  }
  /// Counts the keys, and the runs of neighbouring keys.
  void count(int64_t& keys, int64_t& runs) const {
    keys = runs = 0;
    uint64_t carry = 0;
    for (int64_t w = low_; w <= high_; ++w) {
      const uint64_t bits = words_[static_cast<size_t>(w)];
      keys += std::popcount(bits);
      runs += std::popcount(bits & ~(bits << 1 | carry));
      carry = bits >> 63;
    }
  }
  /// Smallest key; 0 in an empty set.
  int64_t first() const {
    if (low_ > high_) return 0;
    return low_ * 64 + std::countr_zero(words_[static_cast<size_t>(low_)]);
  }
  /// Largest key; -1 in an empty set.
  int64_t last() const {
    if (low_ > high_) return -1;
    return high_ * 64 + 63 - std::countl_zero(words_[static_cast<size_t>(high_)]);
  }
  /// Number of keys of the set up to `key`.
  int64_t upto(int64_t key) const {
    int64_t keys = 0;
    for (int64_t w = low_; w <= high_ && w * 64 <= key; ++w) {
      const uint64_t bits = words_[static_cast<size_t>(w)];
      keys += std::popcount(key - w * 64 >= 63 ? bits : bits & ((uint64_t{2} << (key - w * 64)) - 1));
    }
    return keys;
  }
  /// Appends the keys to `out` in ascending order, and lets place() be called until the set changes.
  void list(std::vector<int32_t>& out) {
    const size_t begin = out.size();
    for (int64_t w = low_; w <= high_; ++w) {
      before_[static_cast<size_t>(w)] = static_cast<int64_t>(out.size() - begin);
      for (uint64_t bits = words_[static_cast<size_t>(w)]; bits != 0; bits &= bits - 1)
        out.push_back(static_cast<int32_t>(w * 64 + std::countr_zero(bits)));
    }
  }
  /// Number of keys of the set below `key`. list() must have been called since the last change.
  int64_t place(int64_t key) const {
    const auto w = static_cast<size_t>(key / 64);
    return before_[w] + std::popcount(words_[w] & ((uint64_t{1} << (key % 64)) - 1));
  }

 private:
  uint64_t& word(int64_t w) { return words_[static_cast<size_t>(w)]; }

  std::vector<uint64_t> words_;  // bit k % 64 of word k / 64 stands for key k
  std::vector<int64_t> before_;  // number of keys in earlier words
  int64_t low_ = 0, high_ = -1;  // first and last word that may have keys; low_ > high_ in an empty set
};

}  // namespace heed::kernel
