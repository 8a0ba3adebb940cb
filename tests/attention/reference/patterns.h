// Patterns of the sparse variants, pair by pair as in their papers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

namespace heed::reference {

/// True if query i of head h may attend to key j, of `length` keys.
using Meets = std::function<bool(int64_t h, int64_t i, int64_t j, int64_t length)>;

/// Beltagy et al. 2020, section 3.1.
inline Meets window(int64_t left, int64_t right, int64_t dilation) {
  return [=](int64_t, int64_t i, int64_t j, int64_t) {
    return i - j <= left * dilation && j - i <= right * dilation && (i - j) % dilation == 0;
  };
}

/// Xiao et al. 2023: the first keys.
inline Meets first_keys(int64_t count) {
  return [=](int64_t, int64_t, int64_t j, int64_t) { return j < count; };
}

/// Child et al. 2019, section 4.2, to both sides, with l keys in `local` as in the authors' code.
inline Meets local(int64_t l) {
  return [=](int64_t, int64_t i, int64_t j, int64_t) { return std::abs(i - j) < l; };
}
inline Meets columns(int64_t l) {
  return [=](int64_t, int64_t i, int64_t j, int64_t) { return (i - j) % l == 0; };
}
inline Meets own_block(int64_t l) {
  return [=](int64_t, int64_t i, int64_t j, int64_t) { return i / l == j / l; };
}
/// Block number `which` of c keys, counted from the end of each block of l keys.
inline Meets summary(int64_t l, int64_t c, int64_t which = 0) {
  return [=](int64_t, int64_t, int64_t j, int64_t) {
    return j % l >= l - c * (which + 1) && j % l < l - c * which;
  };
}
/// `meets`, but for later keys.
inline Meets looking_back(const Meets& meets) {
  return [=](int64_t h, int64_t i, int64_t j, int64_t length) { return j <= i && meets(h, i, j, length); };
}
/// `meets` from the second token on; the first sees all and is seen by all. google-research/long-range-arena,
/// sparse_attention.py: its mask of one position less, with a row and a column of ones before it.
inline Meets after_cls(const Meets& meets) {
  return [=](int64_t h, int64_t i, int64_t j, int64_t length) {
    return i == 0 || j == 0 || meets(h, i - 1, j - 1, length - 1);
  };
}
inline Meets either(const Meets& a, const Meets& b) {
  return [=](int64_t h, int64_t i, int64_t j, int64_t length) {
    return a(h, i, j, length) || b(h, i, j, length);
  };
}
/// `a` in even heads, `b` in odd ones.
inline Meets by_head(const Meets& a, const Meets& b) {
  return [=](int64_t h, int64_t i, int64_t j, int64_t length) {
    return h % 2 == 0 ? a(h, i, j, length) : b(h, i, j, length);
  };
}

/// Zaheer et al. 2020, section 2; block(h, I, r) is the r-th random block of I.
inline Meets bigbird(int64_t b, int64_t random, std::function<int64_t(int64_t, int64_t, int64_t)> block) {
  return [=](int64_t h, int64_t i, int64_t j, int64_t length) {
    const int64_t I = i / b, J = j / b, last = (length - 1) / b;
    if (I == 0 || J == 0 || I == last || J == last || std::abs(I - J) <= 1) return true;
    for (int64_t r = 0; r < random; ++r) {
      if (block(h, I, r) == J) return true;
    }
    return false;
  };
}

/// The local rows of Beltagy et al. 2020, section 3.1: a window and g global keys.
inline Meets longformer(int64_t w, int64_t g) {
  return [=](int64_t, int64_t i, int64_t j, int64_t) { return j < g || std::abs(i - j) <= w; };
}
/// All rows, where global tokens at these positions have the projections of the local ones.
inline Meets longformer_at(int64_t w, std::vector<int64_t> positions) {
  return [=](int64_t, int64_t i, int64_t j, int64_t) {
    const auto is_global = [&](int64_t at) {
      return std::find(positions.begin(), positions.end(), at) != positions.end();
    };
    return is_global(i) || is_global(j) || std::abs(i - j) <= w;
  };
}

}  // namespace heed::reference
