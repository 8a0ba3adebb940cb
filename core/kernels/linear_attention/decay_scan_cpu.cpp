// Fading sums in chunks on the CPU: a running state carries what lies before a chunk, small products with a
// triangular map do the rest. With beta the rows of a chunk are solved for by substitution: the WY
// representation of the product of its reflections. The backward pass is one sweep with a state from the
// right, and one with the state from the left.
#include "core/kernels/decay_scan.h"
#include "core/kernels/here.h"

#include "core/count.h"
#include "core/kernels/decay_chunk.h"
#include "core/kernels/scratch.h"
#include "core/parallel.h"

namespace heed::kernel {
namespace {

template <class T>
void forward(const DecayInputs& in, const Tensor& out, const Tensor& end, const Tensor& rest) {
  const Extent<T> x(in);
  const DecayHeads<const T> parts(in);
  const Part<T> outs(out), ends(end), rests(rest);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) *
                  (Chunk<T>::scratch(x) + chunk * x.wide_d + Carve<T>::rounded(x.f * x.wide_d)));
  parallel_rows(x.B * x.H, x.grain(), [&](int64_t begin, int64_t stop) {
    const Scratch::Part part(scratch);
    Carve<T> carve(part.template data<T>());
    Chunk<T> c(x, carve);
    T *sum = carve.take(chunk * x.wide_d), *state = carve.take(x.f * x.wide_d);
    int64_t flops = 0;
    for (int64_t at = begin; at < stop; ++at) {
      const int64_t b = at / x.H, h = at % x.H;
      const Head<T> head(parts, b, h);
      if (const T* start = parts.start.at(b, h)) {
        padded_rows(start, parts.start.ld, x.f, x.d, x.wide_d, state);
      } else {
        std::fill_n(state, x.f * x.wide_d, T(0));
      }
      for (int64_t t = 0; t < x.length; t += chunk) {
        c.load(head, t);
        flops += c.make_maps();
        c.load_written(head.v + t * head.ld_v, head.ld_v, nullptr, 0);
        const int64_t rows = c.rows();
        if (x.delta) {
          flops += small_gemm(Left::straight, rows, x.wide_d, x.f, c.k_in, x.wide_f, state, x.wide_d, sum,
                              x.wide_d, false);
          for (int64_t i = 0; i < rows; ++i) {
            T *u = c.u + i * x.wide_d, *found = sum + i * x.wide_d;
            for (int64_t j = 0; j < i; ++j) {
              const T weight = c.strict_map[i * chunk + j];
              for (int64_t n = 0; n < x.wide_d; ++n) found[n] += weight * c.u[j * x.wide_d + n];
            }
            for (int64_t n = 0; n < x.wide_d; ++n) u[n] -= found[n];
            std::copy_n(u, x.d, rests.at(b, h) + (t + i) * rests.ld);
            simd::scaled(u, x.wide_d, head.beta[(t + i) * head.ld_beta], u);
          }
          flops += rows * rows * x.d;
        }
        flops += small_gemm(Left::straight, rows, x.wide_d, x.f, c.q_in, x.wide_f, state, x.wide_d, sum,
                            x.wide_d, false);
        flops += small_gemm(Left::straight, rows, x.wide_d, rows, c.map, chunk, c.u, x.wide_d, sum, x.wide_d,
                            true);
        for (int64_t i = 0; i < rows; ++i)
          std::copy_n(sum + i * x.wide_d, x.d, outs.at(b, h) + (t + i) * outs.ld);
        if (!end && t + chunk >= x.length) continue;
        for (int64_t r = 0; r < x.f; ++r)
          simd::scaled(state + r * x.wide_d, x.wide_d, c.fade.total()[r], state + r * x.wide_d);
        flops += small_gemm(Left::turned, x.f, x.wide_d, rows, c.k_out, x.wide_f, c.u, x.wide_d, state,
                            x.wide_d, true);
      }
      for (int64_t r = 0; end && r < x.f; ++r)
        std::copy_n(state + r * x.wide_d, x.d, ends.at(b, h) + r * ends.ld);
    }
    Count::add(flops);
  });
}

/// The backward pass of one head.
template <class T>
class Back {
 public:
  static int64_t scratch(const Extent<T>& x) {
    return Chunk<T>::scratch(x) + 4 * chunk * x.wide_d + chunk * x.wide_f + Carve<T>::rounded(x.d * chunk) +
           2 * chunk * chunk + Carve<T>::rounded(x.f * x.wide_d) + Carve<T>::rounded(x.d * x.wide_f);
  }
  Back(const Extent<T>& extent, T* memory) : x(extent), carve_(memory), c_(extent, carve_) {
    for (T** each : {&dout_, &du_, &w_, &minus_}) *each = carve_.take(chunk * x.wide_d);
    sum_ = carve_.take(chunk * x.wide_f);
    turned_u_ = carve_.take(x.d * chunk);
    slopes_ = carve_.take(chunk * chunk);
    strict_slopes_ = carve_.take(chunk * chunk);
    state_ = carve_.take(x.f * x.wide_d);
    turned_state_ = carve_.take(x.d * x.wide_f);
  }

  /// Gradients of what is written: dk, dv, dbeta and the share of dlog_decay that comes from it.
  int64_t from_right(const Head<T>& head, Rows<T> rest, Rows<T> dout, Rows<T> dend, Rows<T> dk, Rows<T> dv,
                     Rows<T> dlogs, Rows<T> dbeta) {
    int64_t flops = 0;
    if (dend.data != nullptr) {
      padded_rows(dend.data, dend.ld, x.f, x.d, x.wide_d, state_);
    } else {
      std::fill_n(state_, x.f * x.wide_d, T(0));
    }
    for (int64_t t = x.length > 0 ? (x.length - 1) / chunk * chunk : -1; t >= 0; t -= chunk) {
      flops += load(head, rest, dout, t, true);
      const int64_t rows = c_.rows();
      // du = what reads it inside the chunk and after it.
      flops += small_gemm(Left::straight, rows, x.wide_d, x.f, c_.k_out, x.wide_f, state_, x.wide_d, du_,
                          x.wide_d, false);
      flops +=
          small_gemm(Left::turned, rows, x.wide_d, rows, c_.map, chunk, dout_, x.wide_d, du_, x.wide_d, true);
      if (x.delta) flops += solve(head, rest, dbeta, t);
      for (int64_t i = 0; i < rows; ++i) std::copy_n((x.delta ? w_ : du_) + i * x.wide_d, x.d, at(dv, t + i));
      flops += make_slopes();
      simd::turn(state_, x.wide_d, x.f, x.d, T(1), turned_state_, x.wide_f);
      flops += small_gemm(Left::straight, rows, x.wide_f, x.d, c_.u, x.wide_d, turned_state_, x.wide_f, sum_,
                          x.wide_f, false);
      c_.fade.out(sum_, sum_);
      flops += spread_faded(c_.fade, slopes_, c_.q, sum_);
      if (x.delta) flops += spread_faded(c_.fade, strict_slopes_, c_.k, sum_);
      for (int64_t i = 0; i < rows; ++i) std::copy_n(sum_ + i * x.wide_f, x.f, at(dk, t + i));
      add_fading(dlogs, t, c_.k, T(-1), true);
      for (int64_t r = 0; r < x.f; ++r)
        simd::scaled(state_ + r * x.wide_d, x.wide_d, c_.fade.total()[r], state_ + r * x.wide_d);
      flops += small_gemm(Left::turned, x.f, x.wide_d, rows, c_.q_in, x.wide_f, dout_, x.wide_d, state_,
                          x.wide_d, true);
      if (x.delta) {
        flops += small_gemm(Left::turned, x.f, x.wide_d, rows, c_.k_in, x.wide_f, minus_, x.wide_d, state_,
                            x.wide_d, true);
      }
    }
    return flops;
  }
  const T* dstart() const { return state_; }

  /// Gradients of what is read: dq, the rest of dk, and the rest of dlog_decay before it is summed.
  int64_t from_left(const Head<T>& head, const T* start, int64_t ld_start, Rows<T> rest, Rows<T> dout,
                    Rows<T> dv, Rows<T> dq, Rows<T> dk, Rows<T> dlogs) {
    int64_t flops = 0;
    if (start != nullptr) {
      simd::turn(start, ld_start, x.f, x.d, T(1), turned_state_, x.wide_f);
    } else {
      std::fill_n(turned_state_, x.d * x.wide_f, T(0));
    }
    for (int64_t t = 0; t < x.length; t += chunk) {
      flops += load(head, rest, dout, t, false);
      const int64_t rows = c_.rows();
      if (x.delta) {
        padded_rows(at(dv, t), dv.ld, rows, x.d, x.wide_d, w_);
        for (int64_t n = 0; n < rows * x.wide_d; ++n) minus_[n] = -w_[n];
      }
      flops += make_slopes();
      flops += read(dout_, slopes_);
      for (int64_t i = 0; i < rows; ++i) std::copy_n(sum_ + i * x.wide_f, x.f, at(dq, t + i));
      add_fading(dlogs, t, c_.q, T(1), false);
      if (x.delta) {
        flops += read(minus_, strict_slopes_);
        for (int64_t i = 0; i < rows; ++i) {
          T* to = at(dk, t + i);
          for (int64_t n = 0; n < x.f; ++n) to[n] += sum_[i * x.wide_f + n];
        }
        add_fading(dlogs, t, c_.k, T(1), false);
      }
      for (int64_t r = 0; r < x.d; ++r) {
        T* row = turned_state_ + r * x.wide_f;
        for (int64_t n = 0; n < x.wide_f; ++n) row[n] *= c_.fade.total()[n];
      }
      flops += small_gemm(Left::turned, x.d, x.wide_f, rows, c_.u, x.wide_d, c_.k_out, x.wide_f,
                          turned_state_, x.wide_f, true);
    }
    return flops;
  }

  /// From the shares of each row to dlog_decay: every later row fades by it too. The state at the end, which
  /// from_left() leaves behind, has its own gradient.
  void sum_fading(Rows<T> dend, Rows<T> dlogs) {
    for (int64_t n = 0; n < x.each; ++n) {
      double later = 0;
      for (int64_t r = x.each == 1 ? 0 : n; dend.data != nullptr && r < (x.each == 1 ? x.f : n + 1); ++r) {
        for (int64_t column = 0; column < x.d; ++column)
          later += static_cast<double>(at(dend, r)[column]) * turned_state_[column * x.wide_f + r];
      }
      for (int64_t t = x.length - 1; t >= 0; --t) {
        later += static_cast<double>(at(dlogs, t)[n]);
        at(dlogs, t)[n] = static_cast<T>(later);
      }
    }
  }

 private:
  static T* at(Rows<T> x, int64_t row) { return const_cast<T*>(x.data) + row * x.ld; }

  int64_t load(const Head<T>& head, Rows<T> rest, Rows<T> dout, int64_t t, bool maps) {
    c_.load(head, t);
    if (x.delta) {
      c_.load_written(at(rest, t), rest.ld, head.beta + t * head.ld_beta, head.ld_beta);
    } else {
      c_.load_written(head.v + t * head.ld_v, head.ld_v, nullptr, 0);
    }
    padded_rows(at(dout, t), dout.ld, c_.rows(), x.d, x.wide_d, dout_);
    return maps ? c_.make_maps() : 0;
  }

  /// du of the rows of a chunk that later ones have read, last first; w = beta du.
  int64_t solve(const Head<T>& head, Rows<T> rest, Rows<T> dbeta, int64_t t) {
    const int64_t rows = c_.rows();
    for (int64_t j = rows - 1; j >= 0; --j) {
      T* du = du_ + j * x.wide_d;
      for (int64_t i = j + 1; i < rows; ++i) {
        const T weight = c_.strict_map[i * chunk + j];
        for (int64_t n = 0; n < x.wide_d; ++n) du[n] -= weight * w_[i * x.wide_d + n];
      }
      const T beta = head.beta[(t + j) * head.ld_beta];
      for (int64_t n = 0; n < x.wide_d; ++n) {
        w_[j * x.wide_d + n] = beta * du[n];
        minus_[j * x.wide_d + n] = -beta * du[n];
      }
    }
    T dots[chunk];
    simd::row_dots(du_, x.wide_d, at(rest, t), rest.ld, rows, x.d, dots);
    for (int64_t j = 0; j < rows; ++j) *at(dbeta, t + j) = dots[j];
    return rows * rows * x.d;
  }

  /// slopes[i, j] = dout_i . u_j, and with the delta rule strict_slopes[i, j] = -w_i . u_j for j < i.
  int64_t make_slopes() {
    const int64_t rows = c_.rows();
    turned_rows(c_.u, x.wide_d, rows, x.d, turned_u_);
    int64_t flops = small_gemm(Left::straight, rows, chunk, x.d, dout_, x.wide_d, turned_u_, chunk, slopes_,
                               chunk, false);
    if (!x.delta) return flops;
    flops += small_gemm(Left::straight, rows, chunk, x.d, minus_, x.wide_d, turned_u_, chunk, strict_slopes_,
                        chunk, false);
    for (int64_t i = 0; i < rows; ++i) strict_slopes_[i * chunk + i] = T(0);
    return flops;
  }

  /// sum_ = the gradients of the rows that read the state, from those of what they read.
  int64_t read(const T* slope, const T* slopes) {
    const int64_t rows = c_.rows();
    int64_t flops = small_gemm(Left::straight, rows, x.wide_f, x.d, slope, x.wide_d, turned_state_, x.wide_f,
                               sum_, x.wide_f, false);
    c_.fade.into(sum_, sum_);
    return flops + gather_faded(c_.fade, slopes, c_.k, sum_);
  }

  /// dlogs_t = or += sign x_t sum_t, element by element or summed.
  void add_fading(Rows<T> dlogs, int64_t t, const T* row, T sign, bool first) {
    if (dlogs.data == nullptr) return;
    T dots[chunk];
    if (x.each == 1) simd::row_dots(row, x.wide_f, sum_, x.wide_f, c_.rows(), x.f, dots);
    for (int64_t i = 0; i < c_.rows(); ++i) {
      T* to = at(dlogs, t + i);
      if (first) std::fill_n(to, x.each, T(0));
      if (x.each == 1) {
        *to += sign * dots[i];
        continue;
      }
      const T *a = row + i * x.wide_f, *b = sum_ + i * x.wide_f;
      for (int64_t n = 0; n < x.f; ++n) to[n] += sign * a[n] * b[n];
    }
  }

  const Extent<T>& x;
  Carve<T> carve_;
  Chunk<T> c_;
  T *dout_, *du_, *w_, *minus_, *sum_, *turned_u_, *slopes_, *strict_slopes_, *state_, *turned_state_;
};

template <class T>
void backward(const DecayInputs& in, const Tensor& rest, const Tensor& dout, const Tensor& dend,
              const DecayInputs& dx) {
  const Extent<T> x(in);
  const DecayHeads<const T> parts(in);
  const DecayHeads<T> d(dx);
  const Part<const T> rests(rest), douts(dout), dends(dend);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * Back<T>::scratch(x));
  parallel_rows(x.B * x.H, x.grain(), [&](int64_t begin, int64_t stop) {
    const Scratch::Part part(scratch);
    Back<T> work(x, part.template data<T>());
    int64_t flops = 0;
    for (int64_t n = begin; n < stop; ++n) {
      const int64_t b = n / x.H, h = n % x.H;
      const Head<T> head(parts, b, h);
      const auto rows = [&](const auto& one) { return Rows<T>{one.at(b, h), one.ld}; };
      flops += work.from_right(head, rows(rests), rows(douts), rows(dends), rows(d.k), rows(d.v),
                               rows(d.log_decay), rows(d.beta));
      if (T* to = d.start.at(b, h)) {
        for (int64_t r = 0; r < x.f; ++r) std::copy_n(work.dstart() + r * x.wide_d, x.d, to + r * d.start.ld);
      }
      flops += work.from_left(head, parts.start.at(b, h), parts.start.ld, rows(rests), rows(douts), rows(d.v),
                              rows(d.q), rows(d.k), rows(d.log_decay));
      if (d.log_decay.data != nullptr) work.sum_fading(rows(dends), rows(d.log_decay));
    }
    Count::add(flops);
  });
}

}  // namespace

template <>
void DecayScan::cpu<here>(const DecayInputs& x, const Tensor& out, const Tensor& end, const Tensor& rest) {
  visit_float("decay_scan", x.q.dtype(),
              [&](auto type) { forward<typename decltype(type)::type>(x, out, end, rest); });
}

template <>
void DecayScanBack::cpu<here>(const DecayInputs& x, const Tensor& rest, const Tensor& dout,
                              const Tensor& dend, const DecayInputs& dx) {
  visit_float("decay_scan", x.q.dtype(),
              [&](auto type) { backward<typename decltype(type)::type>(x, rest, dout, dend, dx); });
}

}  // namespace heed::kernel
