// Causal sums in chunks on the CPU: a running state carries what lies before a chunk, small products with a
// triangular map do the rest. The backward pass is one sweep with a state from the left and one with a state
// from the right.
#include "core/kernels/here.h"
#include "core/kernels/linear_scan.h"

#include "core/count.h"
#include "core/kernels/heads.h"
#include "core/kernels/scratch.h"
#include "core/kernels/small_gemm.h"
#include "core/parallel.h"

namespace heed::kernel {
namespace {

constexpr int64_t chunk = 32;
constexpr int64_t group = 16;

/// The triangular map of one chunk, kept turned: element [j, i] with j <= i, in strips of `group` queries.
template <class T>
class Triangle {
 public:
  static constexpr int64_t scratch = chunk * chunk;
  explicit Triangle(T* memory) : map_(memory) {}

  /// map[j, i] = a_j . b_i over `depth`, zero for j > i. `turned_b` is [depth, width of the chunk].
  int64_t make(int64_t rows, int64_t depth, Rows<T> a, const T* turned_b) {
    rows_ = rows;
    width_ = simd::padded<T>(rows);
    int64_t flops = 0;
    for (int64_t j = 0; j < rows; j += group) {
      const int64_t high = std::min(group, rows - j);
      T* strip = map_ + j * width_ + j;
      flops += small_gemm(Left::straight, high, width_ - j, depth, a.from(j).data, a.ld, turned_b + j, width_,
                          strip, width_, false);
      for (int64_t r = 1; r < high; ++r) std::fill_n(strip + r * width_, r, T(0));
    }
    return flops;
  }
  /// to[i] += sum over j <= i of map[j, i] b_j.
  int64_t gather(int64_t columns, Rows<T> b, T* to) const {
    int64_t flops = 0;
    for (int64_t i = 0; i < rows_; i += group) {
      const int64_t upto = std::min(i + group, rows_);
      flops += small_gemm(Left::turned, upto - i, columns, upto, map_ + i, width_, b.data, b.ld,
                          to + i * columns, columns, true);
    }
    return flops;
  }
  /// to[j] += sum over i >= j of map[j, i] b_i.
  int64_t spread(int64_t columns, Rows<T> b, T* to) const {
    int64_t flops = 0;
    for (int64_t j = 0; j < rows_; j += group) {
      flops +=
          small_gemm(Left::straight, std::min(group, rows_ - j), columns, rows_ - j, map_ + j * width_ + j,
                     width_, b.from(j).data, b.ld, to + j * columns, columns, true);
    }
    return flops;
  }

 private:
  T* map_;
  int64_t rows_ = 0, width_ = 0;
};

/// Extents of a call, and those rounded up to whole vectors.
template <class T>
struct Extent {
  int64_t B, H, length, f, d, wide_f, wide_d;
  Extent(const Tensor& phi, const Tensor& v)
      : B(phi.extent(0)),
        H(phi.extent(1)),
        length(phi.extent(2)),
        f(phi.extent(3)),
        d(v.extent(3)),
        wide_f(simd::padded<T>(f)),
        wide_d(simd::padded<T>(d)) {}

  int64_t grain() const {
    const int64_t each = 4 * std::max<int64_t>(length, 1) * (f + chunk) * (d + chunk);
    return std::max<int64_t>(1, piece_flops / each);
  }
};

/// A state [rows, columns] in rows of `wide`, from a tensor or zero.
template <class T>
void load_state(const T* from, int64_t ld, int64_t rows, int64_t columns, int64_t wide, T* state) {
  std::fill_n(state, rows * wide, T(0));
  for (int64_t r = 0; from != nullptr && r < rows; ++r) std::copy_n(from + r * ld, columns, state + r * wide);
}
template <class T>
void save_state(const T* state, int64_t wide, int64_t rows, int64_t columns, T* to, int64_t ld) {
  for (int64_t r = 0; r < rows; ++r) std::copy_n(state + r * wide, columns, to + r * ld);
}
/// The same turned: state [columns, rows] in rows of `wide`.
template <class T>
void load_turned(const T* from, int64_t ld, int64_t rows, int64_t columns, int64_t wide, T* state) {
  if (from == nullptr) {
    std::fill_n(state, columns * wide, T(0));
  } else {
    simd::turn(from, ld, rows, columns, T(1), state, wide);
  }
}

template <class T>
struct States {
  const T* data = nullptr;
  int64_t batch = 0, head = 0, ld = 0;
  explicit States(const Tensor& x) {
    if (!x) return;
    const Heads<const T> heads(x);
    data = heads.data;
    batch = heads.batch;
    head = heads.head;
    ld = heads.ld;
  }
  const T* at(int64_t b, int64_t h) const { return data == nullptr ? nullptr : data + b * batch + h * head; }
};

template <class T>
void forward(const Tensor& phi_q, const Tensor& phi_k, const Tensor& v, const Tensor& start,
             const Tensor& out, const Tensor& end) {
  const Extent<T> x(phi_q, v);
  const Heads<const T> qs(phi_q), ks(phi_k), vs(v);
  const Heads<T> outs(out);
  const States<T> starts(start);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) *
                  (Triangle<T>::scratch + Carve<T>::rounded(x.f * chunk) + 2 * chunk * x.wide_d +
                   Carve<T>::rounded(x.f * x.wide_d)));
  parallel_rows(x.B * x.H, x.grain(), [&](int64_t begin, int64_t stop) {
    const Scratch::Part part(scratch);
    Carve<T> carve(part.template data<T>());
    Triangle<T> triangle(carve.take(Triangle<T>::scratch));
    T *turned_q = carve.take(x.f * chunk), *sum = carve.take(chunk * x.wide_d),
      *v_copy = carve.take(chunk * x.wide_d);
    T* state = carve.take(x.f * x.wide_d);
    int64_t flops = 0;
    for (int64_t at = begin; at < stop; ++at) {
      const int64_t b = at / x.H, h = at % x.H;
      load_state(starts.at(b, h), starts.ld, x.f, x.d, x.wide_d, state);
      for (int64_t t = 0; t < x.length; t += chunk) {
        const int64_t rows = std::min(chunk, x.length - t);
        const Rows<T> q{qs.at(b, h, t), qs.ld}, k{ks.at(b, h, t), ks.ld};
        const Rows<T> values = whole_rows(vs.at(b, h, t), vs.ld, rows, x.d, v_copy);
        simd::turn(q.data, q.ld, rows, x.f, T(1), turned_q, simd::padded<T>(rows));
        flops += triangle.make(rows, x.f, k, turned_q);
        flops += small_gemm(Left::straight, rows, x.wide_d, x.f, q.data, q.ld, state, x.wide_d, sum, x.wide_d,
                            false);
        flops += triangle.gather(x.wide_d, values, sum);
        if (end || t + chunk < x.length) {
          flops += small_gemm(Left::turned, x.f, x.wide_d, rows, k.data, k.ld, values.data, values.ld, state,
                              x.wide_d, true);
        }
        save_state(sum, x.wide_d, rows, x.d, outs.at(b, h, t), outs.ld);
      }
      if (end) {
        const Heads<T> ends(end);
        save_state(state, x.wide_d, x.f, x.d, ends.at(b, h, 0), ends.ld);
      }
    }
    Count::add(flops);
  });
}

/// The backward pass of one head.
template <class T>
class Back {
 public:
  static int64_t scratch(const Extent<T>& x) {
    return 2 * Triangle<T>::scratch + Carve<T>::rounded(x.f * chunk) + Carve<T>::rounded(x.d * chunk) +
           3 * chunk * x.wide_f + 3 * chunk * x.wide_d + Carve<T>::rounded(x.f * x.wide_d) +
           Carve<T>::rounded(x.d * x.wide_f);
  }
  Back(const Extent<T>& extent, T* memory)
      : x(extent),
        carve_(memory),
        weights_(carve_.take(Triangle<T>::scratch)),
        slopes_(carve_.take(Triangle<T>::scratch)) {
    turned_q_ = carve_.take(x.f * chunk);
    turned_dout_ = carve_.take(x.d * chunk);
    q_copy_ = carve_.take(chunk * x.wide_f);
    k_copy_ = carve_.take(chunk * x.wide_f);
    sum_f_ = carve_.take(chunk * x.wide_f);
    v_copy_ = carve_.take(chunk * x.wide_d);
    dout_copy_ = carve_.take(chunk * x.wide_d);
    sum_d_ = carve_.take(chunk * x.wide_d);
    state_ = carve_.take(x.f * x.wide_d);
    turned_state_ = carve_.take(x.d * x.wide_f);
  }

  /// dphi_q_i = S_i dout_i, from the left.
  int64_t from_left(Rows<T> k, Rows<T> v, Rows<T> dout, const T* start, int64_t ld_start, T* dq,
                    int64_t ldq) {
    int64_t flops = 0;
    load_turned(start, ld_start, x.f, x.d, x.wide_f, turned_state_);
    for (int64_t t = 0; t < x.length; t += chunk) {
      const int64_t rows = std::min(chunk, x.length - t);
      const Rows<T> keys = whole_rows(k.from(t).data, k.ld, rows, x.f, k_copy_);
      simd::turn(dout.from(t).data, dout.ld, rows, x.d, T(1), turned_dout_, simd::padded<T>(rows));
      flops += slopes_.make(rows, x.d, v.from(t), turned_dout_);
      flops += small_gemm(Left::straight, rows, x.wide_f, x.d, dout.from(t).data, dout.ld, turned_state_,
                          x.wide_f, sum_f_, x.wide_f, false);
      flops += slopes_.gather(x.wide_f, keys, sum_f_);
      if (t + chunk < x.length) {
        flops += small_gemm(Left::turned, x.d, x.wide_f, rows, v.from(t).data, v.ld, keys.data, keys.ld,
                            turned_state_, x.wide_f, true);
      }
      save_state(sum_f_, x.wide_f, rows, x.f, dq + t * ldq, ldq);
    }
    return flops;
  }

  /// dphi_k_j = R_j v_j and dv_j = R_j^T phi_k_j with R_j = dend + sum over i >= j of phi_q_i dout_i^T, from
  /// the right.
  int64_t from_right(Rows<T> q, Rows<T> k, Rows<T> v, Rows<T> dout, const T* dend, int64_t ld_dend, T* dk,
                     int64_t ldk, T* dv, int64_t ldv, bool to_start) {
    int64_t flops = 0;
    load_state(dend, ld_dend, x.f, x.d, x.wide_d, state_);
    load_turned(dend, ld_dend, x.f, x.d, x.wide_f, turned_state_);
    for (int64_t t = (x.length - 1) / chunk * chunk; t >= 0; t -= chunk) {
      const int64_t rows = std::min(chunk, x.length - t), width = simd::padded<T>(rows);
      const Rows<T> queries = whole_rows(q.from(t).data, q.ld, rows, x.f, q_copy_);
      const Rows<T> slopes = whole_rows(dout.from(t).data, dout.ld, rows, x.d, dout_copy_);
      simd::turn(q.from(t).data, q.ld, rows, x.f, T(1), turned_q_, width);
      simd::turn(dout.from(t).data, dout.ld, rows, x.d, T(1), turned_dout_, width);
      flops += weights_.make(rows, x.f, k.from(t), turned_q_);
      flops += slopes_.make(rows, x.d, v.from(t), turned_dout_);
      flops += small_gemm(Left::straight, rows, x.wide_f, x.d, v.from(t).data, v.ld, turned_state_, x.wide_f,
                          sum_f_, x.wide_f, false);
      flops += slopes_.spread(x.wide_f, queries, sum_f_);
      flops += small_gemm(Left::straight, rows, x.wide_d, x.f, k.from(t).data, k.ld, state_, x.wide_d, sum_d_,
                          x.wide_d, false);
      flops += weights_.spread(x.wide_d, slopes, sum_d_);
      if (t > 0 || to_start) {
        flops += small_gemm(Left::turned, x.f, x.wide_d, rows, q.from(t).data, q.ld, slopes.data, slopes.ld,
                            state_, x.wide_d, true);
      }
      if (t > 0) simd::turn(state_, x.wide_d, x.f, x.d, T(1), turned_state_, x.wide_f);
      save_state(sum_f_, x.wide_f, rows, x.f, dk + t * ldk, ldk);
      save_state(sum_d_, x.wide_d, rows, x.d, dv + t * ldv, ldv);
    }
    return flops;
  }
  const T* state() const { return state_; }

 private:
  const Extent<T>& x;
  Carve<T> carve_;
  Triangle<T> weights_, slopes_;
  T *turned_q_, *turned_dout_, *q_copy_, *k_copy_, *sum_f_, *v_copy_, *dout_copy_, *sum_d_, *state_,
      *turned_state_;
};

template <class T>
void backward(const Tensor& phi_q, const Tensor& phi_k, const Tensor& v, const Tensor& start,
              const Tensor& dout, const Tensor& dend, const Tensor& dphi_q, const Tensor& dphi_k,
              const Tensor& dv, const Tensor& dstart) {
  const Extent<T> x(phi_q, v);
  const Heads<const T> qs(phi_q), ks(phi_k), vs(v), douts(dout);
  const Heads<T> dqs(dphi_q), dks(dphi_k), dvs(dv);
  const States<T> starts(start), dends(dend);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * Back<T>::scratch(x));
  parallel_rows(x.B * x.H, x.grain(), [&](int64_t begin, int64_t stop) {
    const Scratch::Part part(scratch);
    Back<T> work(x, part.template data<T>());
    int64_t flops = 0;
    for (int64_t at = begin; at < stop; ++at) {
      const int64_t b = at / x.H, h = at % x.H;
      const Rows<T> q{qs.at(b, h, 0), qs.ld}, k{ks.at(b, h, 0), ks.ld};
      const Rows<T> values{vs.at(b, h, 0), vs.ld}, slopes{douts.at(b, h, 0), douts.ld};
      flops += work.from_left(k, values, slopes, starts.at(b, h), starts.ld, dqs.at(b, h, 0), dqs.ld);
      flops += work.from_right(q, k, values, slopes, dends.at(b, h), dends.ld, dks.at(b, h, 0), dks.ld,
                               dvs.at(b, h, 0), dvs.ld, static_cast<bool>(dstart));
      if (dstart) {
        const Heads<T> dstarts(dstart);
        save_state(work.state(), x.wide_d, x.f, x.d, dstarts.at(b, h, 0), dstarts.ld);
      }
    }
    Count::add(flops);
  });
}

}  // namespace

template <>
void LinearScan::cpu<here>(const Tensor& phi_q, const Tensor& phi_k, const Tensor& v, const Tensor& start,
                           const Tensor& out, const Tensor& end) {
  visit_float("linear_scan", phi_q.dtype(),
              [&](auto type) { forward<typename decltype(type)::type>(phi_q, phi_k, v, start, out, end); });
}

template <>
void LinearScanBack::cpu<here>(const Tensor& phi_q, const Tensor& phi_k, const Tensor& v, const Tensor& start,
                               const Tensor& dout, const Tensor& dend, const Tensor& dphi_q,
                               const Tensor& dphi_k, const Tensor& dv, const Tensor& dstart) {
  visit_float("linear_scan", phi_q.dtype(), [&](auto type) {
    backward<typename decltype(type)::type>(phi_q, phi_k, v, start, dout, dend, dphi_q, dphi_k, dv, dstart);
  });
}

}  // namespace heed::kernel
