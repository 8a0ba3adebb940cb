// One chunk of a fading scan: its rows, what they have faded by, and the products of rows that fade between
// them.
// No decay is ever divided by, so gates as strong as 0 do no harm.
#pragma once

#include "core/kernels/decay_scan.h"
#include "core/kernels/heads.h"
#include "core/kernels/small_gemm.h"

namespace heed::kernel {

/// Rows of a chunk.
inline constexpr int64_t chunk = 16;

/// Decays of the rows of one chunk, [chunk, wide].
template <class T>
class Fade {
 public:
  static int64_t scratch(int64_t wide) { return 3 * chunk * wide; }
  Fade(T* memory, int64_t f, int64_t wide)
      : f_(f), wide_(wide), step_(memory), into_(memory + chunk * wide), out_(memory + 2 * chunk * wide) {}

  /// From the logarithms: `each` numbers a row (1 or f), `ld` apart; null: nothing fades.
  void load(const T* logs, int64_t ld, int64_t each, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
      T* step = step_ + i * wide_;
      if (logs == nullptr) {
        std::fill_n(step, wide_, T(1));
      } else if (each == 1) {
        std::fill_n(step, wide_, power(simd::splat(logs[i * ld]))[0]);
      } else {
        std::copy_n(logs + i * ld, f_, step);
        std::fill(step + f_, step + wide_, T(0));
        for (int64_t c = 0; c < wide_; c += simd::Lanes<T>::count)
          simd::store(step + c, power(simd::load(step + c)));
      }
    }
    std::copy_n(step_, wide_, into_);
    for (int64_t i = 1; i < rows; ++i)
      multiply(into_ + (i - 1) * wide_, step_ + i * wide_, into_ + i * wide_);
    std::fill_n(out_ + (rows - 1) * wide_, wide_, T(1));
    for (int64_t i = rows - 2; i >= 0; --i)
      multiply(out_ + (i + 1) * wide_, step_ + (i + 1) * wide_, out_ + i * wide_);
    rows_ = rows;
  }

  const T* step(int64_t i) const { return step_ + i * wide_; }    ///< of row i alone
  const T* total() const { return into_ + (rows_ - 1) * wide_; }  ///< of the whole chunk
  /// to = x faded from the chunk's start up to each row, or from each row to the chunk's end.
  void into(const T* x, T* to) const { multiply(x, into_, to, rows_ * wide_); }
  void out(const T* x, T* to) const { multiply(x, out_, to, rows_ * wide_); }

  int64_t rows() const { return rows_; }
  int64_t wide() const { return wide_; }
  int64_t f() const { return f_; }

 private:
  static simd::Vector<T> power(simd::Vector<T> logs) {
    const simd::Vector<T> most = simd::splat(T(126)), x = logs * T(1.4426950408889634074);
    return simd::exp2<T>(x < most ? x : most);
  }
  void multiply(const T* a, const T* b, T* to) const { multiply(a, b, to, wide_); }
  static void multiply(const T* a, const T* b, T* to, int64_t count) {
    for (int64_t c = 0; c < count; ++c) to[c] = a[c] * b[c];
  }

  int64_t f_, wide_, rows_ = 0;
  T *step_, *into_, *out_;
};

/// x [rows, width] as rows of `wide`, filled up with zeros.
template <class T>
void padded_rows(const T* x, int64_t ld, int64_t rows, int64_t width, int64_t wide, T* to) {
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(x + r * ld, width, to + r * wide);
    std::fill(to + r * wide + width, to + (r + 1) * wide, T(0));
  }
}

/// The same turned, [wide or less, chunk], with zeros for the rows that a short chunk lacks.
template <class T>
void turned_rows(const T* x, int64_t ld, int64_t rows, int64_t width, T* to) {
  if (rows < chunk) std::fill_n(to, width * chunk, T(0));
  simd::turn(x, ld, rows, width, T(1), to, chunk);
}

/// faded_products() below, with or without strict_map. In vectors by hand: left to itself the compiler takes
/// the rows of a chunk apart into scalars, at a third of the speed.
template <bool strict, class T>
void faded_products(const Fade<T>& fade, const T* a, const T* strict_a, T* turned_b, T* map, T* strict_map) {
  using simd::Vector;
  constexpr int64_t lanes = simd::Lanes<T>::count, parts = chunk / lanes;
  T number[chunk];
  for (int64_t j = 0; j < chunk; ++j) number[j] = static_cast<T>(j);
  for (int64_t i = 0; i < fade.rows(); ++i) {
    const T *step = fade.step(i), *x = a + i * fade.wide(), *y = strict ? strict_a + i * fade.wide() : x;
    Vector<T> sum[parts] = {}, strict_sum[parts] = {};
    const Vector<T> row = simd::splat(static_cast<T>(i));
    for (int64_t c = 0; c < fade.f(); ++c) {
#pragma GCC unroll 8
      for (int64_t p = 0; p < parts; ++p) {
        T* column = turned_b + c * chunk + p * lanes;
        Vector<T> b = simd::load(column);
        b = simd::load(number + p * lanes) < row ? b * step[c] : b;
        simd::store(column, b);
        sum[p] += x[c] * b;
        if constexpr (strict) strict_sum[p] += y[c] * b;
      }
    }
    for (int64_t p = 0; p < parts; ++p) {
      const Vector<T> j = simd::load(number + p * lanes), none = {};
      simd::store(map + i * chunk + p * lanes, j <= row ? sum[p] : none);
      if constexpr (strict) simd::store(strict_map + i * chunk + p * lanes, j < row ? strict_sum[p] : none);
    }
  }
}

/// map[i, j] = a_i . (b_j faded from row j to row i), zero for j > i; strict_map the same of `strict_a` for
/// j < i, or null. turned_b [f, chunk] is spoilt. Maps are [chunk, chunk].
template <class T>
int64_t faded_products(const Fade<T>& fade, const T* a, const T* strict_a, T* turned_b, T* map,
                       T* strict_map) {
  if (strict_map != nullptr) {
    faded_products<true>(fade, a, strict_a, turned_b, map, strict_map);
  } else {
    faded_products<false>(fade, a, strict_a, turned_b, map, strict_map);
  }
  return (strict_map != nullptr ? 3 : 2) * fade.rows() * fade.rows() * fade.f();
}

/// to_i += sum over j <= i of map[i, j] (b_j faded from row j to row i); b and to [rows, wide].
template <class T>
int64_t gather_faded(const Fade<T>& fade, const T* map, const T* b, T* to) {
  const int64_t wide = fade.wide();
  simd::Vector<T> faded[chunk];
  for (int64_t c = 0; c < wide; c += simd::Lanes<T>::count) {
    for (int64_t i = 0; i < fade.rows(); ++i) {
      const simd::Vector<T> step = simd::load(fade.step(i) + c);
      simd::Vector<T> sum = simd::load(to + i * wide + c);
      for (int64_t j = 0; j < i; ++j) {
        faded[j] *= step;
        sum += map[i * chunk + j] * faded[j];
      }
      faded[i] = simd::load(b + i * wide + c);
      simd::store(to + i * wide + c, sum + map[i * chunk + i] * faded[i]);
    }
  }
  return 2 * fade.rows() * fade.rows() * fade.f();
}

/// to_j += sum over i >= j of map[i, j] (a_i faded from row j to row i); a and to as b above.
template <class T>
int64_t spread_faded(const Fade<T>& fade, const T* map, const T* a, T* to) {
  const int64_t wide = fade.wide(), rows = fade.rows();
  simd::Vector<T> faded[chunk];
  for (int64_t c = 0; c < wide; c += simd::Lanes<T>::count) {
    for (int64_t j = rows - 1; j >= 0; --j) {
      faded[j] = simd::load(a + j * wide + c);
      simd::Vector<T> sum = simd::load(to + j * wide + c) + map[j * chunk + j] * faded[j];
      if (j + 1 < rows) {
        const simd::Vector<T> step = simd::load(fade.step(j + 1) + c);
        for (int64_t i = j + 1; i < rows; ++i) {
          faded[i] *= step;
          sum += map[i * chunk + j] * faded[i];
        }
      }
      simd::store(to + j * wide + c, sum);
    }
  }
  return 2 * rows * rows * fade.f();
}

/// Rows of one head of a tensor that may be empty.
template <class T>
struct Part {
  T* data = nullptr;
  int64_t batch = 0, head = 0, ld = 0;
  explicit Part(const Tensor& x) {
    if (!x) return;
    const Heads<T> heads(x);
    data = heads.data;
    batch = heads.batch;
    head = heads.head;
    ld = heads.ld;
  }
  T* at(int64_t b, int64_t h) const { return data == nullptr ? nullptr : data + b * batch + h * head; }
};

/// All tensors of a call, as their heads.
template <class T>
struct DecayHeads {
  Part<T> q, k, v, log_decay, beta, start;
  explicit DecayHeads(const DecayInputs& x)
      : q(x.q), k(x.k), v(x.v), log_decay(x.log_decay), beta(x.beta), start(x.start) {}
};

template <class T>
struct Extent {
  int64_t B, H, length, f, d, wide_f, wide_d, each;
  bool delta;
  explicit Extent(const DecayInputs& x)
      : B(x.q.extent(0)),
        H(x.q.extent(1)),
        length(x.q.extent(2)),
        f(x.q.extent(3)),
        d(x.v.extent(3)),
        wide_f(simd::padded<T>(f)),
        wide_d(simd::padded<T>(d)),
        each(x.log_decay ? x.log_decay.extent(3) : 1),
        delta(static_cast<bool>(x.beta)) {}
  int64_t grain() const {
    return std::max<int64_t>(1, piece_flops / (4 * std::max<int64_t>(length, 1) * (f + chunk) * (d + chunk)));
  }
};

/// Where one head's numbers begin.
template <class T>
struct Head {
  const T *q, *k, *v, *logs, *beta;
  int64_t ld_q, ld_k, ld_v, ld_logs, ld_beta;
  Head(const DecayHeads<const T>& x, int64_t b, int64_t h)
      : q(x.q.at(b, h)),
        k(x.k.at(b, h)),
        v(x.v.at(b, h)),
        logs(x.log_decay.at(b, h)),
        beta(x.beta.at(b, h)),
        ld_q(x.q.ld),
        ld_k(x.k.ld),
        ld_v(x.v.ld),
        ld_logs(x.log_decay.ld),
        ld_beta(x.beta.ld) {}
};

/// What both passes need of a chunk: its decays, padded copies of its rows, and its maps.
template <class T>
class Chunk {
 public:
  static int64_t scratch(const Extent<T>& x) {
    return Fade<T>::scratch(x.wide_f) + 5 * chunk * x.wide_f + Carve<T>::rounded(x.f * chunk) +
           chunk * x.wide_d + 2 * chunk * chunk;
  }
  Chunk(const Extent<T>& extent, Carve<T>& carve)
      : x(extent), fade(carve.take(Fade<T>::scratch(x.wide_f)), x.f, x.wide_f) {
    for (T** each : {&q, &k, &q_in, &k_in, &k_out}) *each = carve.take(chunk * x.wide_f);
    turned_ = carve.take(x.f * chunk);
    u = carve.take(chunk * x.wide_d);
    map = carve.take(chunk * chunk);
    strict_map = carve.take(chunk * chunk);
  }

  void load(const Head<T>& head, int64_t t) {
    const int64_t rows = std::min(chunk, x.length - t);
    fade.load(head.logs == nullptr ? nullptr : head.logs + t * head.ld_logs, head.ld_logs, x.each, rows);
    padded_rows(head.q + t * head.ld_q, head.ld_q, rows, x.f, x.wide_f, q);
    padded_rows(head.k + t * head.ld_k, head.ld_k, rows, x.f, x.wide_f, k);
    fade.into(q, q_in);
    if (x.delta) fade.into(k, k_in);
    fade.out(k, k_out);
  }
  int64_t make_maps() {
    turned_rows(k, x.wide_f, fade.rows(), x.f, turned_);
    return faded_products(fade, q, k, turned_, map, x.delta ? strict_map : nullptr);
  }
  /// u from v, or from what is kept of the forward pass.
  void load_written(const T* v, int64_t ld, const T* beta, int64_t ld_beta) {
    padded_rows(v, ld, fade.rows(), x.d, x.wide_d, u);
    for (int64_t i = 0; beta != nullptr && i < fade.rows(); ++i)
      simd::scaled(u + i * x.wide_d, x.wide_d, beta[i * ld_beta], u + i * x.wide_d);
  }
  int64_t rows() const { return fade.rows(); }

  const Extent<T>& x;
  Fade<T> fade;
  T *q, *k, *q_in, *k_in, *k_out;  // [rows, wide_f]
  T* u;                            // [rows, wide_d]
  T *map, *strict_map;             // [chunk, chunk]

 private:
  T* turned_;
};

}  // namespace heed::kernel
