// One tile of queries against runs of keys: the steps that tiled attention, dense or by blocks, is made of.
// Scores are kept turned, [key, query]: then a vector holds one key's scores of many queries, the softmax
// runs along rows without reductions inside vectors, and k, v, q, dout enter every product as they lie in
// memory. Scores are in units of log2, so that a weight is one exp2.
#pragma once

#include <algorithm>
#include <limits>

#include "core/kernels/attention_shape.h"
#include "core/kernels/heads.h"
#include "core/kernels/small_gemm.h"
#include "core/kernels/stairs.h"

namespace heed::kernel {

/// Rows that are added to, and the distance between them.
template <class T>
struct Sums {
  T* data;
  int64_t ld;

  T* row(int64_t index) const { return data + index * ld; }
};

/// One bit for each pair of a tile.
template <class T>
struct PairBits {
  static constexpr int64_t bits = 8 * static_cast<int64_t>(sizeof(T));
  alignas(64) simd::Word<T> words[tile / bits][tile];

  /// Bit j of `keys` speaks of key j and this query.
  void set(int64_t query, uint64_t keys) {
    for (int64_t w = 0; w < tile / bits; ++w)
      words[w][query] = static_cast<simd::Word<T>>(keys >> (w * bits % 64));
  }
  /// The same for queries 0 to `count`, one word of keys each.
  void set_all(const uint64_t* keys, int64_t count) {
    for (int64_t w = 0; w < tile / bits; ++w) {
      for (int64_t i = 0; i < count; ++i)
        words[w][i] = static_cast<simd::Word<T>>(keys[i] >> (w * bits % 64));
    }
  }
  /// `x` where the bit of key j is set, `otherwise` elsewhere; for the queries from `lane` on.
  simd::Vector<T> select(int64_t j, int64_t lane, simd::Vector<T> x, simd::Vector<T> otherwise) const {
    const simd::Words<T> mine = simd::load_words<T>(&words[j / bits][lane]);
    return (mine & (simd::Word<T>{1} << (j % bits))) != 0 ? x : otherwise;
  }
};

/// The lowest `count` bits.
inline uint64_t low_bits(int64_t count) {
  return count <= 0 ? 0 : count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

/// What stands between the plain scores and the weights of one step.
template <class T>
struct Between {
  const PairBits<T>* visible = nullptr;  ///< pairs that exist; null: all
  const PairBits<T>* kept = nullptr;     ///< pairs that dropout keeps; null: all
  T keep_scale = 1;
  const T* bias = nullptr;  ///< [key, query] as the scores, in log2 units; null: none
  T cap = 0;                ///< of the scores, in log2 units; 0: none

  bool masked() const { return visible != nullptr || bias != nullptr || cap != 0; }
};

/// tanh x by one exp2: absolute error of a rounding, which is all that a bounded score needs.
template <class T>
simd::Vector<T> bounded(simd::Vector<T> x) {
  const simd::Vector<T> high = simd::splat(T(15)), low = simd::splat(T(-15));
  x = x > high ? high : x < low ? low : x;
  return T(1) - T(2) / (T(1) + simd::exp2<T>(x * static_cast<T>(2 * log2_e)));
}

/// The forward pass of one tile of queries.
template <class T>
class ForwardTile {
 public:
  static int64_t scratch(int64_t d, int64_t dv) {
    return Carve<T>::rounded(d * tile) + tile * tile + 2 * Carve<T>::rounded(tile * simd::padded<T>(dv)) +
           3 * tile;
  }
  ForwardTile(T* memory, int64_t d, int64_t dv) : d_(d), dv_(dv), wide_(simd::padded<T>(dv)) {
    Carve<T> carve(memory);
    turned_ = carve.take(d * tile);
    scores_ = carve.take(tile * tile);
    sum_ = carve.take(tile * wide_);
    values_ = carve.take(tile * wide_);
    most_ = carve.take(tile);
    total_ = carve.take(tile);
    shrink_ = carve.take(tile);
  }

  /// q [queries, d] with leading dimension ldq. `factor` is the scale times log2 e; `sink` a score in log2
  /// units that each row begins with, -inf: none.
  void start(const T* q, int64_t ldq, int64_t queries, T factor,
             T sink = -std::numeric_limits<T>::infinity()) {
    queries_ = queries;
    width_ = simd::padded<T>(queries);
    simd::turn(q, ldq, queries, d_, factor, turned_, width_);
    std::fill_n(sum_, queries * wide_, T(0));
    std::fill_n(most_, width_, sink);
    std::fill_n(total_, width_, sink == -std::numeric_limits<T>::infinity() ? T(0) : T(1));
    fresh_ = true;
  }

  /// After start(): goes on from what other keys gave the same queries.
  void resume(const T* out, int64_t ldo, const RowLogs<T>& lse) {
    constexpr T nothing = -std::numeric_limits<T>::infinity();
    for (int64_t i = 0; i < queries_; ++i) {
      const RowLog<T> before = lse.at(i);
      const auto [base, share] = before.split();
      const T total = T(1) / share;
      simd::scaled(out + i * ldo, dv_, total, sum_ + i * wide_);
      most_[i] = base;
      total_[i] = before.log == nothing ? T(0) : total;
    }
    fresh_ = false;
  }

  /// Takes in the keys of one step. k and v point at its first key.
  int64_t keys(const T* k, int64_t ldk, const T* v, int64_t ldv, const Stairs& stairs,
               const Between<T>& between) {
    if (stairs.steps == 0) return 0;
    int64_t flops = 0;
    stairs.each_rectangle([&](const Stairs::Step& s) {
      flops += small_gemm(Left::straight, s.high - s.low, lanes_of(s), d_, k + s.low * ldk, ldk,
                          turned_ + s.from, width_, scores_ + s.low * width_ + s.from, width_, false);
    });
    if (between.masked()) {
      between.kept != nullptr ? weigh<true, true>(stairs, between) : weigh<true, false>(stairs, between);
    } else {
      between.kept != nullptr ? weigh<false, true>(stairs, between) : weigh<false, false>(stairs, between);
    }
    if (!fresh_) rescale();
    fresh_ = false;
    const Rows<T> values = whole_rows(v, ldv, stairs.end(), dv_, values_);
    stairs.each([&](const Stairs::Step& s) {
      flops +=
          small_gemm(Left::turned, s.to - s.from, wide_, s.high - s.low, scores_ + s.low * width_ + s.from,
                     width_, values.data + s.low * values.ld, values.ld, sum_ + s.from * wide_, wide_, true);
    });
    return flops;
  }

  /// out [queries, dv]; the logs of the queries' rows.
  void finish(T* out, int64_t ldo, const RowLogs<T>& lse) const {
    alignas(64) T inverse[tile], logs[tile];
    for (int64_t lane = 0; lane < width_; lane += lanes) {
      const V total = simd::load(total_ + lane);
      simd::store(logs + lane, simd::log2<T>(total));
      simd::store(inverse + lane, total == 0 ? V{} : T(1) / total);
    }
    for (int64_t i = 0; i < queries_; ++i) {
      simd::scaled(sum_ + i * wide_, dv_, inverse[i], out + i * ldo);
      lse.put(i, total_[i] == T(0) ? RowLog<T>::nothing() : RowLog<T>::of(most_[i], logs[i]));
    }
  }

 private:
  using V = simd::Vector<T>;
  static constexpr int64_t lanes = simd::Lanes<T>::count;
  static int64_t lanes_of(const Stairs::Step& s) { return simd::padded<T>(s.to - s.from); }

  /// Scores to weights, with the running maximum and sum of each query.
  template <bool masked, bool dropped>
  void weigh(const Stairs& stairs, const Between<T>& between) {
    const V nothing = simd::splat(-std::numeric_limits<T>::infinity());
    std::fill_n(shrink_, width_, T(1));
    stairs.each([&](const Stairs::Step& s) {
      for (int64_t lane = s.from; lane < s.to; lane += lanes) {
        T* column = scores_ + lane;
        const V before = simd::load(most_ + lane);
        V part[4] = {before, before, before, before};
        const auto look = [&](int64_t j, V& most) {
          V score = simd::load(column + j * width_);
          if constexpr (masked) {
            if (between.cap != 0) score = between.cap * bounded<T>(score / between.cap);
            if (between.bias != nullptr) score += simd::load(between.bias + j * width_ + lane);
            if (between.visible != nullptr) score = between.visible->select(j, lane, score, nothing);
            simd::store(column + j * width_, score);
          }
          most = score > most ? score : most;
        };
        int64_t j = s.low;
        for (; j + 4 <= s.high; j += 4) {
          for (int64_t p = 0; p < 4; ++p) look(j + p, part[p]);
        }
        for (; j < s.high; ++j) look(j, part[0]);
        const V left = part[0] > part[1] ? part[0] : part[1], right = part[2] > part[3] ? part[2] : part[3];
        const V most = left > right ? left : right;
        const V base = most == nothing ? V{} : most;  // no key yet: the weights become 2^-inf, not NaN
        V total[2] = {V{}, V{}};
        const auto weight = [&](int64_t at, V& sum) {
          V p = simd::exp2<T>(simd::load(column + at * width_) - base);
          sum += p;
          if constexpr (dropped) p = between.kept->select(at, lane, p * between.keep_scale, V{});
          simd::store(column + at * width_, p);
        };
        for (j = s.low; j + 2 <= s.high; j += 2) {
          weight(j, total[0]);
          weight(j + 1, total[1]);
        }
        if (j < s.high) weight(j, total[0]);
        const V shrink = simd::exp2<T>(before - base);
        simd::store(shrink_ + lane, shrink);
        simd::store(total_ + lane, simd::load(total_ + lane) * shrink + (total[0] + total[1]));
        simd::store(most_ + lane, most);
      }
    });
  }

  void rescale() {
    for (int64_t i = 0; i < queries_; ++i) {
      if (shrink_[i] == T(1)) continue;
      for (int64_t c = 0; c < wide_; c += lanes) {
        simd::store(sum_ + i * wide_ + c, simd::load(sum_ + i * wide_ + c) * shrink_[i]);
      }
    }
  }

  int64_t d_, dv_, wide_;
  int64_t queries_ = 0, width_ = 0;
  bool fresh_ = true;
  T *turned_, *scores_, *sum_, *values_, *most_, *total_, *shrink_;
};

/// The backward pass of one tile of queries. Sums of dk and dv belong to the caller: rows of whole vectors,
/// zero at first.
template <class T>
class BackTile {
 public:
  static int64_t scratch(int64_t d, int64_t dv) {
    const int64_t wide_d = tile * simd::padded<T>(d), wide_dv = tile * simd::padded<T>(dv);
    return Carve<T>::rounded(d * tile) + Carve<T>::rounded(dv * tile) + 2 * tile * tile +
           2 * Carve<T>::rounded(wide_d) + Carve<T>::rounded(wide_dv) + 2 * tile;
  }
  BackTile(T* memory, int64_t d, int64_t dv)
      : d_(d), dv_(dv), wide_d_(simd::padded<T>(d)), wide_dv_(simd::padded<T>(dv)) {
    Carve<T> carve(memory);
    turned_q_ = carve.take(d * tile);
    turned_dout_ = carve.take(dv * tile);
    weights_ = carve.take(tile * tile);
    slopes_ = carve.take(tile * tile);
    q_copy_ = carve.take(tile * wide_d_);
    sum_ = carve.take(tile * wide_d_);
    dout_copy_ = carve.take(tile * wide_dv_);
    lse_ = carve.take(tile);
    delta_ = carve.take(tile);
  }

  /// Gradients of scores, and so all sums of dq and dk, come out `slope` times what they are: with the scale
  /// itself they need no pass of their own for it.
  void start(const T* q, int64_t ldq, const T* dout, int64_t ld_dout, const T* out, int64_t ldo,
             const RowLogs<T>& lse, int64_t queries, T factor, T slope) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    queries_ = queries;
    width_ = simd::padded<T>(queries);
    simd::turn(q, ldq, queries, d_, factor, turned_q_, width_);
    simd::turn(dout, ld_dout, queries, dv_, slope, turned_dout_, width_);
    q_ = whole_rows(q, ldq, queries, d_, q_copy_);
    dout_ = whole_rows(dout, ld_dout, queries, dv_, dout_copy_);
    std::fill_n(sum_, queries * wide_d_, T(0));
    bool all_exact = true;
    for (int64_t i = 0; i < queries; ++i) {
      // A row without keys weighs nothing: 2^(s - inf) = 0.
      const RowLog<T> row = lse.at(i);
      lse_[i] = row.log == -infinity ? infinity : row.split().base;
      all_exact = all_exact && row.rest == T(0);
    }
    simd::row_dots(dout, ld_dout, out, ldo, queries, dv_, delta_);
    simd::scaled(delta_, width_, slope, delta_);
    std::fill(lse_ + queries, lse_ + width_, infinity);
    if (!all_exact) shrink_rows(lse);
  }

  /// k and v: rows of whole vectors from the step's first key on; dk and dv likewise, and added to. The
  /// gradient of the score of lane i and key j is added to diagonals[i - j], where those are wanted.
  int64_t keys(Rows<T> k, Rows<T> v, const Stairs& stairs, const Between<T>& between, Sums<T> dk, Sums<T> dv,
               T* diagonals = nullptr) {
    int64_t flops = 0;
    stairs.each_rectangle([&](const Stairs::Step& s) {
      const int64_t at = s.low * width_ + s.from, keys = s.high - s.low,
                    wide = simd::padded<T>(s.to - s.from);
      flops += small_gemm(Left::straight, keys, wide, d_, k.data + s.low * k.ld, k.ld, turned_q_ + s.from,
                          width_, weights_ + at, width_, false);
      flops += small_gemm(Left::straight, keys, wide, dv_, v.data + s.low * v.ld, v.ld, turned_dout_ + s.from,
                          width_, slopes_ + at, width_, false);
    });
    if (between.masked()) {
      between.kept != nullptr ? slope<true, true>(stairs, between) : slope<true, false>(stairs, between);
    } else {
      between.kept != nullptr ? slope<false, true>(stairs, between) : slope<false, false>(stairs, between);
    }
    if (diagonals != nullptr) add_diagonals(stairs, diagonals);
    stairs.each_rectangle([&](const Stairs::Step& s) {
      const int64_t at = s.low * width_ + s.from, keys = s.high - s.low, queries = s.to - s.from;
      flops += small_gemm(Left::straight, keys, wide_dv_, queries, weights_ + at, width_,
                          dout_.data + s.from * dout_.ld, dout_.ld, dv.row(s.low), dv.ld, true);
      flops += small_gemm(Left::straight, keys, wide_d_, queries, slopes_ + at, width_,
                          q_.data + s.from * q_.ld, q_.ld, dk.row(s.low), dk.ld, true);
    });
    stairs.each([&](const Stairs::Step& s) {
      flops +=
          small_gemm(Left::turned, s.to - s.from, wide_d_, s.high - s.low, slopes_ + s.low * width_ + s.from,
                     width_, k.data + s.low * k.ld, k.ld, sum_ + s.from * wide_d_, wide_d_, true);
    });
    return flops;
  }

  /// dq [queries, d].
  void finish(T* dq, int64_t ld, T scale) const {
    for (int64_t i = 0; i < queries_; ++i) simd::scaled(sum_ + i * wide_d_, d_, scale, dq + i * ld);
  }

 private:
  using V = simd::Vector<T>;
  static constexpr int64_t lanes = simd::Lanes<T>::count;

  /// Weights of rows whose log lost something are to be multiplied by a share. All gradients are linear in
  /// each row's dout, so that is multiplied.
  void shrink_rows(const RowLogs<T>& lse) {
    for (int64_t i = 0; i < queries_; ++i) {
      const T share = lse.at(i).split().share;
      simd::scaled(dout_.data + i * dout_.ld, wide_dv_, share, dout_copy_ + i * wide_dv_);
      for (int64_t c = 0; c < dv_; ++c) turned_dout_[c * width_ + i] *= share;
      delta_[i] *= share;
    }
    dout_ = {dout_copy_, wide_dv_};
  }

  /// Scores to (dropped) weights, and their gradients to those of the scores.
  template <bool masked, bool dropped>
  void slope(const Stairs& stairs, const Between<T>& between) {
    const V nothing = simd::splat(-std::numeric_limits<T>::infinity());
    stairs.each([&](const Stairs::Step& step) {
      for (int64_t lane = step.from; lane < step.to; lane += lanes) {
        const V lse = simd::load(lse_ + lane), delta = simd::load(delta_ + lane);
        for (int64_t j = step.low; j < step.high; ++j) {
          T* weight = weights_ + j * width_ + lane;
          T* gradient = slopes_ + j * width_ + lane;
          V s = simd::load(weight);
          [[maybe_unused]] V steep = simd::splat(T(1));
          if constexpr (masked) {
            if (between.cap != 0) {
              const V bound = bounded<T>(s / between.cap);
              s = between.cap * bound;
              steep = T(1) - bound * bound;
            }
            if (between.bias != nullptr) s += simd::load(between.bias + j * width_ + lane);
            if (between.visible != nullptr) s = between.visible->select(j, lane, s, nothing);
          }
          const V p = simd::exp2<T>(s - lse);
          V dp = simd::load(gradient);
          if constexpr (dropped) {
            simd::store(weight, between.kept->select(j, lane, p * between.keep_scale, V{}));
            dp = between.kept->select(j, lane, dp * between.keep_scale, V{});
          } else {
            simd::store(weight, p);
          }
          if constexpr (masked) {
            simd::store(gradient, p * (dp - delta) * steep);
          } else {
            simd::store(gradient, p * (dp - delta));
          }
        }
      }
    });
  }

  void add_diagonals(const Stairs& stairs, T* diagonals) const {
    stairs.each([&](const Stairs::Step& s) {
      for (int64_t j = s.low; j < s.high; ++j) {
        for (int64_t i = s.from; i < s.to; ++i) diagonals[i - j] += slopes_[j * width_ + i];
      }
    });
  }

  int64_t d_, dv_, wide_d_, wide_dv_;
  int64_t queries_ = 0, width_ = 0;
  Rows<T> q_{}, dout_{};
  T *turned_q_, *turned_dout_, *weights_, *slopes_, *q_copy_, *sum_, *dout_copy_, *lse_, *delta_;
};

}  // namespace heed::kernel
