// What all parts of a Fastmax call share: extents, the list of monomials, and chunks of prepared tokens.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/kernels/dropout.h"
#include "core/kernels/heads.h"
#include "core/kernels/monomials.h"

namespace heed::kernel {

/// A run of features that is made and used at once.
struct FeatureBlock {
  int64_t feature, count;  ///< in the state
  int64_t row;             ///< degrees 0 and 1: the first row of a Side; else -1
  int64_t node;            ///< the first monomial
};

/// A call's constants. The query's rows carry the coefficient of degree 1, so that rows of degree 0 and 1
/// need no weight.
template <class T>
struct FastmaxPlan {
  static constexpr int64_t block_rows = 48;

  const FastmaxTerms& terms;
  int64_t d, dv, wide, ld;  ///< wide: dv in whole vectors; a state's rows are [v.., 1] in ld
  int64_t chunk, degree, features;
  T carried;                       ///< of a query's prepared row
  std::vector<T> weights, slopes;  ///< coefficients of f and of f', in carried scores
  std::vector<Monomial<T>> nodes;
  std::vector<FeatureBlock> blocks;

  FastmaxPlan(const FastmaxTerms& t, int64_t width, int64_t values, bool factored)
      : terms(t),
        d(width),
        dv(values),
        wide(simd::padded<T>(values)),
        ld(simd::padded<T>(values + 1)),
        chunk(t.chunk > 0                  ? t.chunk
              : t.coefficients.size() <= 2 ? 32
                                           : 64),  // pairs cost more than few features
        degree(static_cast<int64_t>(t.coefficients.size()) - 1),
        features(factored ? fastmax_features(width, t.coefficients) : 0) {
    const double first = degree >= 1 && t.coefficients[1] != 0 ? t.coefficients[1] : 1;
    carried = static_cast<T>(first * t.scale);
    std::vector<double> coefficients = t.coefficients;
    for (size_t l = 0; l < coefficients.size(); ++l) {
      coefficients[l] /= std::pow(first, static_cast<double>(l));
      weights.push_back(static_cast<T>(coefficients[l]));
      if (l > 0) slopes.push_back(static_cast<T>(static_cast<double>(l) * coefficients[l]));
    }
    if (!factored) return;
    nodes = monomials<T>(d, coefficients);
    const int64_t begin = coefficients[0] != 0 ? 0 : 1, end = degree >= 1 && coefficients[1] != 0 ? d + 1 : 1;
    int64_t feature = 0;
    const auto cut = [&](int64_t from, int64_t to, bool rows) {
      for (int64_t at = from; at < to; at += block_rows) {
        const int64_t count = std::min(block_rows, to - at);
        blocks.push_back({feature, count, rows ? at : -1, rows ? -1 : at});
        feature += count;
      }
    };
    cut(begin, end, true);
    cut(0, static_cast<int64_t>(nodes.size()), false);
  }

  /// Numbers of a state.
  int64_t state() const { return features * ld; }
  /// Operations of one pass of `length` tokens over a state.
  int64_t pass_flops(int64_t length) const { return 2 * length * features * (dv + 1); }
  /// Keys of sequence b among `count` that begin with number `from`.
  int64_t seen(const int32_t* lengths, int64_t b, int64_t from, int64_t count) const {
    if (lengths == nullptr) return count;
    return std::clamp<int64_t>(lengths[b] - terms.first_key - from, 0, count);
  }
};

/// A chunk of prepared queries or keys: variables in rows, tokens in lanes.
template <class T>
class FastmaxSide {
 public:
  static int64_t scratch(const FastmaxPlan<T>& plan) {
    return (plan.d + 1) * plan.chunk + plan.chunk + plan.chunk * simd::padded<T>(plan.d) +
           2 * MonomialFeatures<T>::scratch(plan.degree, plan.chunk);
  }
  FastmaxSide(const FastmaxPlan<T>& plan, bool query, T* memory)
      : plan_(plan),
        query_(query),
        rows_(memory),
        inverse_(rows_ + (plan.d + 1) * plan.chunk),
        copy_(inverse_ + plan.chunk),
        walk_(plan.degree, plan.chunk, copy_ + plan.chunk * simd::padded<T>(plan.d)),
        back_(plan.degree, plan.chunk,
              copy_ + plan.chunk * simd::padded<T>(plan.d) +
                  MonomialFeatures<T>::scratch(plan.degree, plan.chunk)) {}

  /// Takes `count` tokens.
  void load(const T* from, int64_t ld, int64_t count) {
    count_ = count;
    width_ = simd::padded<T>(count);
    std::fill_n(rows_, plan_.chunk, query_ ? plan_.weights[0] : T(1));
    simd::turn(from, ld, count, plan_.d, T(1), rows_ + plan_.chunk, plan_.chunk);
    prepare();
    if (query_ && plan_.carried != T(1)) scale(rows_ + plan_.chunk, plan_.carried);
  }

  int64_t count() const { return count_; }
  int64_t width() const { return width_; }
  const T* rows() const { return rows_ + plan_.chunk; }  ///< [d, chunk], carried
  /// The features of a block: [count, chunk], made in `room` where they are no rows. Blocks come in order.
  void begin(T* slope_rows) {
    walk_.begin(rows(), nullptr, width_);
    back_.begin(rows(), slope_rows, width_);
  }
  const T* make(const FeatureBlock& block, T* room) {
    if (block.row >= 0) return rows_ + block.row * plan_.chunk;
    walk_.make(&plan_.nodes[static_cast<size_t>(block.node)], block.count, query_, room);
    return room;
  }
  /// Adds what gradients of a block's features mean to the gradients of rows().
  void pull(const FeatureBlock& block, const T* slopes, T* slope_rows) {
    if (block.row < 0) {
      back_.pull(&plan_.nodes[static_cast<size_t>(block.node)], block.count, query_, slopes);
      return;
    }
    for (int64_t r = 0; r < block.count; ++r) {
      if (block.row + r == 0) continue;  // the constant
      T* to = slope_rows + (block.row + r - 1) * plan_.chunk;
      for (int64_t c = 0; c < width_; c += n_)
        simd::store(to + c, simd::load(to + c) + simd::load(slopes + r * plan_.chunk + c));
    }
  }
  void finish() { back_.finish(); }

  /// From gradients of rows() to those of the tokens as they were loaded.
  void unprepare(T* slope_rows) const {
    if (query_ && plan_.carried != T(1)) scale(slope_rows, plan_.carried);
    const T back = query_ ? T(1) / plan_.carried : T(1);
    const T* x = rows();
    if (plan_.terms.prepare == Prepare::positive) {
      for (int64_t a = 0; a < plan_.d; ++a) {
        for (int64_t c = 0; c < width_; c += n_) {
          const V y = simd::load(x + a * plan_.chunk + c) * back, one = simd::splat(T(1));
          T* to = slope_rows + a * plan_.chunk + c;
          simd::store(to, simd::load(to) * (y > one ? one : y));
        }
      }
    }
    if (plan_.terms.prepare != Prepare::standard && plan_.terms.prepare != Prepare::unit) return;
    const bool centred = plan_.terms.prepare == Prepare::standard;
    const T share = centred ? T(1) / static_cast<T>(plan_.d) : T(1);
    for (int64_t c = 0; c < width_; c += n_) {
      V total = {}, along = {};
      for (int64_t a = 0; a < plan_.d; ++a) {
        const V slope = simd::load(slope_rows + a * plan_.chunk + c);
        total += slope;
        along += slope * simd::load(x + a * plan_.chunk + c);
      }
      total = centred ? total * share : V{};
      along *= share * back * back;
      const V inverse = simd::load(inverse_ + c);
      for (int64_t a = 0; a < plan_.d; ++a) {
        T* to = slope_rows + a * plan_.chunk + c;
        simd::store(to, (simd::load(to) - total - along * simd::load(x + a * plan_.chunk + c)) * inverse);
      }
    }
  }

  /// Rows [d, chunk] to tokens [count, d]; or the way back with load_raw().
  void store_raw(const T* rows, T* to, int64_t ld) {
    if (simd::padded<T>(plan_.d) == plan_.d) {
      simd::turn(rows, plan_.chunk, plan_.d, count_, T(1), to, ld);
      return;
    }
    const int64_t wide = simd::padded<T>(plan_.d);
    simd::turn(rows, plan_.chunk, plan_.d, count_, T(1), copy_, wide);
    for (int64_t r = 0; r < count_; ++r) std::copy_n(copy_ + r * wide, plan_.d, to + r * ld);
  }
  void load_raw(const T* from, int64_t ld, T* rows) const {
    simd::turn(from, ld, count_, plan_.d, T(1), rows, plan_.chunk);
  }

 private:
  using V = simd::Vector<T>;
  static constexpr int n_ = simd::Lanes<T>::count;

  void scale(T* rows, T factor) const {
    for (int64_t a = 0; a < plan_.d; ++a) {
      for (int64_t c = 0; c < width_; c += n_)
        simd::store(rows + a * plan_.chunk + c, simd::load(rows + a * plan_.chunk + c) * factor);
    }
  }

  void prepare() {
    const Prepare how = plan_.terms.prepare;
    T* x = rows_ + plan_.chunk;
    if (how == Prepare::none) return;
    if (how == Prepare::positive) {
      for (int64_t a = 0; a < plan_.d; ++a) {
        for (int64_t c = 0; c < width_; c += n_) {
          const V in = simd::load(x + a * plan_.chunk + c);
          const V below = simd::exp2<T>(in * static_cast<T>(1.4426950408889634));
          simd::store(x + a * plan_.chunk + c, in > V{} ? in + T(1) : below);
        }
      }
      return;
    }
    const bool centred = how == Prepare::standard;
    const T e = static_cast<T>(plan_.terms.prepare_epsilon), share = T(1) / static_cast<T>(plan_.d);
    for (int64_t c = 0; c < width_; c += n_) {
      V mean = {}, square = {};
      for (int64_t a = 0; centred && a < plan_.d; ++a) mean += simd::load(x + a * plan_.chunk + c);
      mean *= share;
      for (int64_t a = 0; a < plan_.d; ++a) {
        const V apart = simd::load(x + a * plan_.chunk + c) - mean;
        square += apart * apart;
      }
      const V inside = centred ? square * share + e : square + e * e;
      V root;
      for (int i = 0; i < n_; ++i) root[i] = std::sqrt(inside[i]);
      const V inverse = T(1) / root;
      simd::store(inverse_ + c, inverse);
      for (int64_t a = 0; a < plan_.d; ++a) {
        T* at = x + a * plan_.chunk + c;
        // A unit vector of one number is exactly 1 or -1, so that 1 + s can be exactly 0.
        simd::store(at, centred ? (simd::load(at) - mean) * inverse : simd::load(at) / root);
      }
    }
  }

  const FastmaxPlan<T>& plan_;
  bool query_;
  T *rows_, *inverse_, *copy_;
  MonomialFeatures<T> walk_, back_;
  int64_t count_ = 0, width_ = 0;
};

/// A state in memory of its own from a tensor's rows [f, dv + 1], or zeros; and back.
template <class T>
void load_fastmax_state(const FastmaxPlan<T>& plan, const T* from, T* state) {
  std::fill_n(state, plan.state(), T(0));
  for (int64_t f = 0; from != nullptr && f < plan.features; ++f)
    std::copy_n(from + f * (plan.dv + 1), plan.dv + 1, state + f * plan.ld);
}
template <class T>
void save_fastmax_state(const FastmaxPlan<T>& plan, const T* state, T* to) {
  for (int64_t f = 0; f < plan.features; ++f)
    std::copy_n(state + f * plan.ld, plan.dv + 1, to + f * (plan.dv + 1));
}

/// state[f, dv] += sum over lanes of features[f] . last, for a block of features [count, chunk].
template <class T>
void add_fastmax_last(const T* features, int64_t count, int64_t chunk, int64_t width, const T* last, T* to,
                      int64_t ld) {
  constexpr int n = simd::Lanes<T>::count;
  for (int64_t f = 0; f < count; f += n) {
    simd::Vector<T> part[n];
    const int64_t high = std::min<int64_t>(n, count - f);
    for (int64_t r = 0; r < n; ++r) {
      part[r] = simd::Vector<T>{};
      for (int64_t c = 0; r < high && c < width; c += n)
        part[r] += simd::load(features + (f + r) * chunk + c) * simd::load(last + c);
    }
    const simd::Vector<T> sums = simd::row_sums<T>(part);
    for (int64_t r = 0; r < high; ++r) to[(f + r) * ld] += sums[r];
  }
}

}  // namespace heed::kernel
