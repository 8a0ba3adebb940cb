// One chunk of a scan with decay on the CPU: its rows, their decays, and products of rows that decay with the
// distance between them. No formula divides by a decay, so a decay of 0 is safe.
#pragma once

#include <numbers>

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/gemm/small_gemm.h"
#include "heed/core/kernels/linear_attention/decay_scan.h"

namespace heed::kernel {

/// Number of positions of a chunk.
inline constexpr int64_t chunk = 16;

/// Decays of the rows (positions) of one chunk, [chunk, padded f]: of each row alone, from the start of the
/// chunk to each row, and from each row to the end of the chunk.
template <class T>
class ChunkDecay {
 public:
  static int64_t scratch(int64_t padded_f) { return 3 * chunk * padded_f; }
  ChunkDecay(T* memory, int64_t f, int64_t padded_f)
      : f_(f),
        padded_f_(padded_f),
        step_(memory),
        from_start_(memory + chunk * padded_f),
        to_end_(memory + 2 * chunk * padded_f) {}

  /// Loads decays from their logarithms: `num_decays` numbers per row (1 or f), rows `ld` apart. Null: all
  /// decays are 1.
  void load(const T* logs, int64_t ld, int64_t num_decays, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
      T* step = step_ + i * padded_f_;
      if (logs == nullptr) {
        std::fill_n(step, padded_f_, T(1));
      } else if (num_decays == 1) {
        std::fill_n(step, padded_f_, power(simd::splat(logs[i * ld]))[0]);
      } else {
        std::copy_n(logs + i * ld, f_, step);
        std::fill(step + f_, step + padded_f_, T(0));
        for (int64_t c = 0; c < padded_f_; c += simd::Lanes<T>::count)
          simd::store(step + c, power(simd::load(step + c)));
      }
    }
    std::copy_n(step_, padded_f_, from_start_);
    for (int64_t i = 1; i < rows; ++i)
      multiply(from_start_ + (i - 1) * padded_f_, step_ + i * padded_f_, from_start_ + i * padded_f_);
    std::fill_n(to_end_ + (rows - 1) * padded_f_, padded_f_, T(1));
    for (int64_t i = rows - 2; i >= 0; --i)
      multiply(to_end_ + (i + 1) * padded_f_, step_ + (i + 1) * padded_f_, to_end_ + i * padded_f_);
    rows_ = rows;
  }

  const T* step(int64_t i) const { return step_ + i * padded_f_; }          ///< decays of row i alone
  const T* total() const { return from_start_ + (rows_ - 1) * padded_f_; }  ///< decays of the whole chunk
  /// to[i] = x[i] times the decays of rows 0 to i: from the start of the chunk to row i. `to` may be x.
  void decay_from_start(const T* x, T* to) const { multiply(x, from_start_, to, rows_ * padded_f_); }
  /// to[i] = x[i] times the decays of rows i + 1 to the last: from row i to the end of the chunk.
  void decay_to_end(const T* x, T* to) const { multiply(x, to_end_, to, rows_ * padded_f_); }

  int64_t rows() const { return rows_; }
  int64_t padded_f() const { return padded_f_; }
  int64_t f() const { return f_; }

 private:
  /// exp(logs), bounded below infinity.
  static simd::Vector<T> power(simd::Vector<T> logs) {
    const simd::Vector<T> max_exponent = simd::splat(T(126)), x = logs * static_cast<T>(std::numbers::log2e);
    return simd::exp2<T>(x < max_exponent ? x : max_exponent);
  }
  void multiply(const T* a, const T* b, T* to) const { multiply(a, b, to, padded_f_); }
  static void multiply(const T* a, const T* b, T* to, int64_t count) {
    for (int64_t c = 0; c < count; ++c) to[c] = a[c] * b[c];
  }

  int64_t f_, padded_f_, rows_ = 0;
  T *step_, *from_start_, *to_end_;
};

/// Copies x [rows, width] to rows of `padded_width` numbers, padded with zeros.
template <class T>
void padded_rows(const T* x, int64_t ld, int64_t rows, int64_t width, int64_t padded_width, T* to) {
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(x + r * ld, width, to + r * padded_width);
    std::fill(to + r * padded_width + width, to + (r + 1) * padded_width, T(0));
  }
}

/// to [width, chunk] = the transpose of x [rows, width], with zeros for the missing rows of a short chunk.
template <class T>
void transposed_rows(const T* x, int64_t ld, int64_t rows, int64_t width, T* to) {
  if (rows < chunk) std::fill_n(to, width * chunk, T(0));
  simd::scaled_transpose(x, ld, rows, width, T(1), to, chunk);
}

/// Implements decayed_products(), with or without strict_weights: row i of the weights at a time, vector
/// lanes are columns j. At row i each b_j with j < i is multiplied by the decay of row i. Vectorised by hand:
/// the compiler would split the rows into scalars, at a third of the speed.
template <bool strict, class T>
void decayed_products(const ChunkDecay<T>& decay, const T* a, const T* strict_a, T* b_transposed, T* weights,
                      T* strict_weights) {
  using simd::Vector;
  constexpr int64_t lanes = simd::Lanes<T>::count, parts = chunk / lanes;
  T column_indices[chunk];
  for (int64_t j = 0; j < chunk; ++j) column_indices[j] = static_cast<T>(j);
  for (int64_t i = 0; i < decay.rows(); ++i) {
    const T *step = decay.step(i), *x = a + i * decay.padded_f(),
            *y = strict ? strict_a + i * decay.padded_f() : x;
    Vector<T> sum[parts] = {}, strict_sum[parts] = {};
    const Vector<T> row = simd::splat(static_cast<T>(i));
    for (int64_t c = 0; c < decay.f(); ++c) {
#pragma GCC unroll 8
      for (int64_t p = 0; p < parts; ++p) {
        T* column = b_transposed + c * chunk + p * lanes;
        Vector<T> b = simd::load(column);
        b = simd::load(column_indices + p * lanes) < row ? b * step[c] : b;
        simd::store(column, b);
        sum[p] += x[c] * b;
        if constexpr (strict) strict_sum[p] += y[c] * b;
      }
    }
    for (int64_t p = 0; p < parts; ++p) {
      const Vector<T> j = simd::load(column_indices + p * lanes), none = {};
      simd::store(weights + i * chunk + p * lanes, j <= row ? sum[p] : none);
      if constexpr (strict)
        simd::store(strict_weights + i * chunk + p * lanes, j < row ? strict_sum[p] : none);
    }
  }
}

/// weights[i, j] = a_i . (b_j decayed from row j to row i) for j <= i, else 0. Where strict_weights is not
/// null, strict_weights[i, j] = strict_a_i . (b_j decayed from row j to row i) for j < i, else 0. Both are
/// [chunk, chunk]. Overwrites b_transposed [f, chunk]. Returns the operations.
template <class T>
int64_t decayed_products(const ChunkDecay<T>& decay, const T* a, const T* strict_a, T* b_transposed,
                         T* weights, T* strict_weights) {
  if (strict_weights != nullptr) {
    decayed_products<true>(decay, a, strict_a, b_transposed, weights, strict_weights);
  } else {
    decayed_products<false>(decay, a, strict_a, b_transposed, weights, strict_weights);
  }
  return (strict_weights != nullptr ? 3 : 2) * decay.rows() * decay.rows() * decay.f();
}

/// to_i += sum over j <= i of weights[i, j] (b_j decayed from row j to row i); b and to are [rows, padded f].
/// Returns the operations.
template <class T>
int64_t sum_over_earlier(const ChunkDecay<T>& decay, const T* weights, const T* b, T* to) {
  const int64_t padded_f = decay.padded_f();
  simd::Vector<T> decayed[chunk];
  for (int64_t c = 0; c < padded_f; c += simd::Lanes<T>::count) {
    for (int64_t i = 0; i < decay.rows(); ++i) {
      const simd::Vector<T> step = simd::load(decay.step(i) + c);
      simd::Vector<T> sum = simd::load(to + i * padded_f + c);
      for (int64_t j = 0; j < i; ++j) {
        decayed[j] *= step;
        sum += weights[i * chunk + j] * decayed[j];
      }
      decayed[i] = simd::load(b + i * padded_f + c);
      simd::store(to + i * padded_f + c, sum + weights[i * chunk + i] * decayed[i]);
    }
  }
  return 2 * decay.rows() * decay.rows() * decay.f();
}

/// to_j += sum over i >= j of weights[i, j] (a_i decayed from row j to row i); a and to are [rows, padded f].
/// Returns the operations.
template <class T>
int64_t sum_over_later(const ChunkDecay<T>& decay, const T* weights, const T* a, T* to) {
  const int64_t padded_f = decay.padded_f(), rows = decay.rows();
  simd::Vector<T> decayed[chunk];
  for (int64_t c = 0; c < padded_f; c += simd::Lanes<T>::count) {
    for (int64_t j = rows - 1; j >= 0; --j) {
      decayed[j] = simd::load(a + j * padded_f + c);
      simd::Vector<T> sum = simd::load(to + j * padded_f + c) + weights[j * chunk + j] * decayed[j];
      if (j + 1 < rows) {
        const simd::Vector<T> step = simd::load(decay.step(j + 1) + c);
        for (int64_t i = j + 1; i < rows; ++i) {
          decayed[i] *= step;
          sum += weights[i * chunk + j] * decayed[i];
        }
      }
      simd::store(to + j * padded_f + c, sum);
    }
  }
  return 2 * rows * rows * decay.f();
}

/// The tensors of a call as pointers to the rows of their heads.
template <class T>
struct DecayHeads {
  HeadView<T> q, k, v, log_decay, beta, start;
  explicit DecayHeads(const DecayInputs& x)
      : q(x.q), k(x.k), v(x.v), log_decay(x.log_decay), beta(x.beta), start(x.start) {}
};

/// Extents of a call.
template <class T>
struct DecayExtents {
  int64_t B, H, length, f, d, padded_f, padded_d, num_decays;
  bool delta;
  explicit DecayExtents(const DecayInputs& x)
      : B(x.q.extent(0)),
        H(x.q.extent(1)),
        length(x.q.extent(2)),
        f(x.q.extent(3)),
        d(x.v.extent(3)),
        padded_f(simd::padded<T>(f)),
        padded_d(simd::padded<T>(d)),
        num_decays(x.log_decay ? x.log_decay.extent(3) : 1),
        delta(static_cast<bool>(x.beta)) {}
  /// Heads per task.
  int64_t grain() const {
    return std::max<int64_t>(1,
                             flops_per_task / (4 * std::max<int64_t>(length, 1) * (f + chunk) * (d + chunk)));
  }
};

/// The rows of one head. Those of an empty tensor have null data.
template <class T>
struct DecayHead {
  Rows<T> q, k, v, logs, beta;
  DecayHead(const DecayHeads<const T>& x, int64_t b, int64_t h)
      : q{x.q.at(b, h, 0), x.q.ld},
        k{x.k.at(b, h, 0), x.k.ld},
        v{x.v.at(b, h, 0), x.v.ld},
        logs{x.log_decay.at(b, h, 0), x.log_decay.ld},
        beta{x.beta.at(b, h, 0), x.beta.ld} {}
};

/// One chunk of a head for both passes: its decays, padded copies of its rows, and the weights of its pairs.
template <class T>
class DecayChunk {
 public:
  static int64_t scratch(const DecayExtents<T>& x) {
    return ChunkDecay<T>::scratch(x.padded_f) + 5 * chunk * x.padded_f +
           BumpAllocator<T>::rounded(x.f * chunk) + chunk * x.padded_d + 2 * chunk * chunk;
  }
  DecayChunk(const DecayExtents<T>& extent, BumpAllocator<T>& arena)
      : x(extent), decay(arena.take(ChunkDecay<T>::scratch(x.padded_f)), x.f, x.padded_f) {
    for (T** tile : {&q, &k, &q_from_start, &k_from_start, &k_to_end}) *tile = arena.take(chunk * x.padded_f);
    k_transposed_ = arena.take(x.f * chunk);
    u = arena.take(chunk * x.padded_d);
    weights = arena.take(chunk * chunk);
    strict_weights = arena.take(chunk * chunk);
  }

  /// Loads the decays, q and k of positions from t on.
  void load(const DecayHead<T>& head, int64_t t) {
    const int64_t rows = std::min(chunk, x.length - t);
    decay.load(head.logs.data == nullptr ? nullptr : head.logs.row(t), head.logs.ld, x.num_decays, rows);
    padded_rows(head.q.row(t), head.q.ld, rows, x.f, x.padded_f, q);
    padded_rows(head.k.row(t), head.k.ld, rows, x.f, x.padded_f, k);
    decay.decay_from_start(q, q_from_start);
    if (x.delta) decay.decay_from_start(k, k_from_start);
    decay.decay_to_end(k, k_to_end);
  }
  /// weights[i, j] = q_i . (k_j decayed to row i) for j <= i, and with beta strict_weights[i, j] = k_i . (k_j
  /// decayed to row i) for j < i. Returns the operations.
  int64_t make_weights() {
    transposed_rows(k, x.padded_f, decay.rows(), x.f, k_transposed_);
    return decayed_products(decay, q, k, k_transposed_, weights, x.delta ? strict_weights : nullptr);
  }
  /// Loads u from v, or with beta from the residual of the forward pass: u_i = beta_i v_i.
  void load_u(const T* v, int64_t ld, const T* beta, int64_t ld_beta) {
    padded_rows(v, ld, decay.rows(), x.d, x.padded_d, u);
    for (int64_t i = 0; beta != nullptr && i < decay.rows(); ++i)
      simd::scaled(u + i * x.padded_d, x.padded_d, beta[i * ld_beta], u + i * x.padded_d);
  }
  int64_t rows() const { return decay.rows(); }

  const DecayExtents<T>& x;
  ChunkDecay<T> decay;
  T *q, *k;                        // [rows, padded_f]
  T *q_from_start, *k_from_start;  // [rows, padded_f]: decayed from the start of the chunk to each row
  T* k_to_end;                     // [rows, padded_f]: decayed from each row to the end of the chunk
  T* u;                            // [rows, padded_d]
  T *weights, *strict_weights;     // [chunk, chunk]

 private:
  T* k_transposed_;
};

}  // namespace heed::kernel
