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

/// map[i, j] = a_i . (b_j faded from row j to row i), zero for j > i; strict_map the same of `strict_a` for
/// j < i, or null. turned_b [f, chunk] is spoilt. Maps are [chunk, chunk].
template <class T>
int64_t faded_products(const Fade<T>& fade, const T* a, const T* strict_a, T* turned_b, T* map,
                       T* strict_map) {
  const int64_t wide = fade.wide();
  for (int64_t i = 0; i < fade.rows(); ++i) {
    const T *step = fade.step(i), *x = a + i * wide, *y = strict_map ? strict_a + i * wide : x;
    T sum[chunk] = {}, strict_sum[chunk] = {};
    for (int64_t c = 0; c < fade.f(); ++c) {
      T* column = turned_b + c * chunk;
      const T one = step[c], left = x[c], other = y[c];
      for (int64_t j = 0; j < chunk; ++j) {
        const T b = column[j] * (j < i ? one : T(1));
        column[j] = b;
        sum[j] += left * b;
        strict_sum[j] += other * b;
      }
    }
    for (int64_t j = 0; j < chunk; ++j) {
      map[i * chunk + j] = j <= i ? sum[j] : T(0);
      if (strict_map != nullptr) strict_map[i * chunk + j] = j < i ? strict_sum[j] : T(0);
    }
  }
  return (strict_map != nullptr ? 3 : 2) * fade.rows() * fade.rows() * fade.f();
}

/// to_i += sum over j <= i of map[i, j] (b_j faded from row j to row i). `b` [rows, wide] is copied to
/// `faded`.
template <class T>
int64_t gather_faded(const Fade<T>& fade, const T* map, const T* b, T* faded, T* to) {
  const int64_t wide = fade.wide();
  std::copy_n(b, fade.rows() * wide, faded);
  for (int64_t i = 0; i < fade.rows(); ++i) {
    const T* step = fade.step(i);
    T* sum = to + i * wide;
    for (int64_t j = 0; j <= i; ++j) {
      T* row = faded + j * wide;
      const T weight = map[i * chunk + j];
      for (int64_t c = 0; c < wide; ++c) {
        const T x = j < i ? row[c] * step[c] : row[c];
        row[c] = x;
        sum[c] += weight * x;
      }
    }
  }
  return 2 * fade.rows() * fade.rows() * fade.f();
}

/// to_j += sum over i >= j of map[i, j] (a_i faded from row j to row i). `a` as b above.
template <class T>
int64_t spread_faded(const Fade<T>& fade, const T* map, const T* a, T* faded, T* to) {
  const int64_t wide = fade.wide(), rows = fade.rows();
  std::copy_n(a, rows * wide, faded);
  for (int64_t j = rows - 1; j >= 0; --j) {
    T* sum = to + j * wide;
    for (int64_t i = j; i < rows; ++i) {
      T* row = faded + i * wide;
      const T* step = fade.step(i > j ? j + 1 : j);
      const T weight = map[i * chunk + j];
      for (int64_t c = 0; c < wide; ++c) {
        const T x = i > j ? row[c] * step[c] : row[c];
        row[c] = x;
        sum[c] += weight * x;
      }
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
struct Parts {
  Part<T> q, k, v, log_decay, beta, start;
  explicit Parts(const DecayInputs& x)
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
  Head(const Parts<const T>& x, int64_t b, int64_t h)
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
