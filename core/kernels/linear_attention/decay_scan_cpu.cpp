// Decayed sums in chunks on the CPU: a running state covers the positions before a chunk, small products with
// triangular weights cover those within it. With beta the rows of a chunk are solved for by forward
// substitution (the WY representation of a product of reflections). The backward pass goes once from the last
// chunk to the first, with the gradient of the state, and once from the first to the last, with the state.
#include "heed/core/kernels/linear_attention/decay_scan.h"

#include "heed/core/kernels/linear_attention/decay_chunk.h"
#include "heed/core/kernels/simd/scratch.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// out, end and residual of DecayScan. One task is some heads (b, h); each keeps its state S [f, d] and goes
/// through the positions chunk by chunk: a chunk reads S, reads its own earlier rows through triangular
/// weights, and is added to S.
template <class T>
void forward(const DecayInputs& in, const Tensor& out, const Tensor& end, const Tensor& residual) {
  const DecayExtents<T> x(in);
  const DecayHeads<const T> inputs(in);
  const HeadView<T> outs(out), ends(end), residuals(residual);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * (DecayChunk<T>::scratch(x) + chunk * x.padded_d +
                                                     BumpAllocator<T>::rounded(x.f * x.padded_d)));
  parallel_rows(x.B * x.H, x.grain(), [&](int64_t begin, int64_t stop) {
    const Scratch::Part part(scratch);
    BumpAllocator<T> arena(part.template data<T>());
    DecayChunk<T> c(x, arena);
    T *sum = arena.take(chunk * x.padded_d), *state = arena.take(x.f * x.padded_d);
    int64_t flops = 0;
    for (int64_t at = begin; at < stop; ++at) {
      const int64_t b = at / x.H, h = at % x.H;
      const DecayHead<T> head(inputs, b, h);
      // S begins as `start`, or zero.
      if (const T* start = inputs.start.at(b, h, 0)) {
        padded_rows(start, inputs.start.ld, x.f, x.d, x.padded_d, state);
      } else {
        std::fill_n(state, x.f * x.padded_d, T(0));
      }
      for (int64_t t = 0; t < x.length; t += chunk) {
        c.load(head, t);
        flops += c.make_weights();
        c.load_u(head.v.row(t), head.v.ld, nullptr, 0);
        const int64_t rows = c.rows();
        // Delta rule, row after row: residual_i = v_i - (value that S and earlier rows store at k_i), u_i =
        // beta_i residual_i.
        if (x.delta) {
          flops += small_gemm(Left::row_major, rows, x.padded_d, x.f, c.k_from_start, x.padded_f, state,
                              x.padded_d, sum, x.padded_d, false);
          for (int64_t i = 0; i < rows; ++i) {
            T *u = c.u + i * x.padded_d, *stored = sum + i * x.padded_d;
            for (int64_t j = 0; j < i; ++j) {
              const T weight = c.strict_weights[i * chunk + j];
              for (int64_t n = 0; n < x.padded_d; ++n) stored[n] += weight * c.u[j * x.padded_d + n];
            }
            for (int64_t n = 0; n < x.padded_d; ++n) u[n] -= stored[n];
            std::copy_n(u, x.d, residuals.at(b, h, 0) + (t + i) * residuals.ld);
            simd::scaled(u, x.padded_d, *head.beta.row(t + i), u);
          }
          flops += rows * rows * x.d;
        }
        // out [rows, d] = q_from_start S + weights u.
        flops += small_gemm(Left::row_major, rows, x.padded_d, x.f, c.q_from_start, x.padded_f, state,
                            x.padded_d, sum, x.padded_d, false);
        flops += small_gemm(Left::row_major, rows, x.padded_d, rows, c.weights, chunk, c.u, x.padded_d, sum,
                            x.padded_d, true);
        for (int64_t i = 0; i < rows; ++i)
          std::copy_n(sum + i * x.padded_d, x.d, outs.at(b, h, 0) + (t + i) * outs.ld);
        // S [f, d] = (decay of the chunk) S + k_to_end^T u.
        if (!end && t + chunk >= x.length) continue;
        for (int64_t r = 0; r < x.f; ++r)
          simd::scaled(state + r * x.padded_d, x.padded_d, c.decay.total()[r], state + r * x.padded_d);
        flops += small_gemm(Left::transposed, x.f, x.padded_d, rows, c.k_to_end, x.padded_f, c.u, x.padded_d,
                            state, x.padded_d, true);
      }
      for (int64_t r = 0; end && r < x.f; ++r)
        std::copy_n(state + r * x.padded_d, x.d, ends.at(b, h, 0) + r * ends.ld);
    }
    Count::add(flops);
  });
}

/// The backward pass of one head. R [f, d] is the gradient of the state S.
template <class T>
class DecayBackward {
 public:
  static int64_t scratch(const DecayExtents<T>& x) {
    return DecayChunk<T>::scratch(x) + 4 * chunk * x.padded_d + chunk * x.padded_f +
           BumpAllocator<T>::rounded(x.d * chunk) + 2 * chunk * chunk +
           BumpAllocator<T>::rounded(x.f * x.padded_d) + BumpAllocator<T>::rounded(x.d * x.padded_f);
  }
  DecayBackward(const DecayExtents<T>& extent, T* memory) : x(extent), arena_(memory), c_(extent, arena_) {
    for (T** tile : {&dout_, &du_, &w_, &minus_w_}) *tile = arena_.take(chunk * x.padded_d);
    sum_ = arena_.take(chunk * x.padded_f);
    u_transposed_ = arena_.take(x.d * chunk);
    weight_grads_ = arena_.take(chunk * chunk);
    strict_weight_grads_ = arena_.take(chunk * chunk);
    state_ = arena_.take(x.f * x.padded_d);
    state_transposed_ = arena_.take(x.d * x.padded_f);
  }

  /// From the last chunk to the first, with R in state_: gradients of what chunks write to S, which are dv,
  /// dbeta, dstart, and parts of dk and dlog_decay. Returns the operations. With the delta rule dv is
  /// w_j = beta_j du_j, and position j reads S with the gradient -w_j.
  int64_t backward_sweep(const DecayHead<T>& head, Rows<T> residual, Rows<T> dout, Rows<T> dend, Rows<T> dk,
                         Rows<T> dv, Rows<T> dlogs, Rows<T> dbeta) {
    int64_t flops = 0;
    if (dend.data != nullptr) {
      padded_rows(dend.data, dend.ld, x.f, x.d, x.padded_d, state_);
    } else {
      std::fill_n(state_, x.f * x.padded_d, T(0));
    }
    for (int64_t t = x.length > 0 ? (x.length - 1) / chunk * chunk : -1; t >= 0; t -= chunk) {
      flops += load(head, residual, dout, t, /*needs_weights=*/true);
      const int64_t rows = c_.rows();
      // du [rows, d] = k_to_end R + weights^T dout: from later chunks and from rows of the chunk.
      flops += small_gemm(Left::row_major, rows, x.padded_d, x.f, c_.k_to_end, x.padded_f, state_, x.padded_d,
                          du_, x.padded_d, false);
      flops += small_gemm(Left::transposed, rows, x.padded_d, rows, c_.weights, chunk, dout_, x.padded_d, du_,
                          x.padded_d, true);
      if (x.delta) flops += back_substitute(head, residual, dbeta, t);
      for (int64_t i = 0; i < rows; ++i)
        std::copy_n((x.delta ? w_ : du_) + i * x.padded_d, x.d, row_of(dv, t + i));
      flops += make_weight_grads();
      simd::scaled_transpose(state_, x.padded_d, x.f, x.d, T(1), state_transposed_, x.padded_f);
      flops += small_gemm(Left::row_major, rows, x.padded_f, x.d, c_.u, x.padded_d, state_transposed_,
                          x.padded_f, sum_, x.padded_f, false);
      c_.decay.decay_to_end(sum_, sum_);
      flops += sum_over_later(c_.decay, weight_grads_, c_.q, sum_);
      if (x.delta) flops += sum_over_later(c_.decay, strict_weight_grads_, c_.k, sum_);
      for (int64_t i = 0; i < rows; ++i) std::copy_n(sum_ + i * x.padded_f, x.f, row_of(dk, t + i));
      add_decay_grads(dlogs, t, c_.k, T(-1), /*clears=*/true);
      for (int64_t r = 0; r < x.f; ++r)
        simd::scaled(state_ + r * x.padded_d, x.padded_d, c_.decay.total()[r], state_ + r * x.padded_d);
      flops += small_gemm(Left::transposed, x.f, x.padded_d, rows, c_.q_from_start, x.padded_f, dout_,
                          x.padded_d, state_, x.padded_d, true);
      if (x.delta) {
        flops += small_gemm(Left::transposed, x.f, x.padded_d, rows, c_.k_from_start, x.padded_f, minus_w_,
                            x.padded_d, state_, x.padded_d, true);
      }
    }
    return flops;
  }
  const T* dstart() const { return state_; }

  /// From the first chunk to the last, with S^T in state_transposed_: gradients of what chunks read from S,
  /// which are dq, and the other parts of dk and dlog_decay. Returns the operations.
  int64_t forward_sweep(const DecayHead<T>& head, const T* start, int64_t ld_start, Rows<T> residual,
                        Rows<T> dout, Rows<T> dv, Rows<T> dq, Rows<T> dk, Rows<T> dlogs) {
    int64_t flops = 0;
    if (start != nullptr) {
      simd::scaled_transpose(start, ld_start, x.f, x.d, T(1), state_transposed_, x.padded_f);
    } else {
      std::fill_n(state_transposed_, x.d * x.padded_f, T(0));
    }
    for (int64_t t = 0; t < x.length; t += chunk) {
      flops += load(head, residual, dout, t, /*needs_weights=*/false);
      const int64_t rows = c_.rows();
      if (x.delta) {
        padded_rows(row_of(dv, t), dv.ld, rows, x.d, x.padded_d, w_);
        for (int64_t n = 0; n < rows * x.padded_d; ++n) minus_w_[n] = -w_[n];
      }
      flops += make_weight_grads();
      flops += read_gradients(dout_, weight_grads_);
      for (int64_t i = 0; i < rows; ++i) std::copy_n(sum_ + i * x.padded_f, x.f, row_of(dq, t + i));
      add_decay_grads(dlogs, t, c_.q, T(1), /*clears=*/false);
      if (x.delta) {
        flops += read_gradients(minus_w_, strict_weight_grads_);
        for (int64_t i = 0; i < rows; ++i) {
          T* to = row_of(dk, t + i);
          for (int64_t n = 0; n < x.f; ++n) to[n] += sum_[i * x.padded_f + n];
        }
        add_decay_grads(dlogs, t, c_.k, T(1), /*clears=*/false);
      }
      for (int64_t r = 0; r < x.d; ++r) {
        T* row = state_transposed_ + r * x.padded_f;
        for (int64_t n = 0; n < x.padded_f; ++n) row[n] *= c_.decay.total()[n];
      }
      flops += small_gemm(Left::transposed, x.d, x.padded_f, rows, c_.u, x.padded_d, c_.k_to_end, x.padded_f,
                          state_transposed_, x.padded_f, true);
    }
    return flops;
  }

  /// dlog_decay_t += sum over later positions, since a decay acts on every later row too. Includes the
  /// gradient of the final state, which forward_sweep() leaves in state_transposed_.
  void sum_decay_grads(Rows<T> dend, Rows<T> dlogs) {
    for (int64_t n = 0; n < x.num_decays; ++n) {
      double later = 0;
      for (int64_t r = x.num_decays == 1 ? 0 : n;
           dend.data != nullptr && r < (x.num_decays == 1 ? x.f : n + 1); ++r) {
        for (int64_t column = 0; column < x.d; ++column)
          later += static_cast<double>(row_of(dend, r)[column]) * state_transposed_[column * x.padded_f + r];
      }
      for (int64_t t = x.length - 1; t >= 0; --t) {
        later += static_cast<double>(row_of(dlogs, t)[n]);
        row_of(dlogs, t)[n] = static_cast<T>(later);
      }
    }
  }

 private:
  /// A row of an array that is read or written.
  static T* row_of(Rows<T> x, int64_t row) { return const_cast<T*>(x.data) + row * x.ld; }

  /// Loads q, k, u and dout of a chunk, and makes its weights if they are needed. Returns the operations.
  int64_t load(const DecayHead<T>& head, Rows<T> residual, Rows<T> dout, int64_t t, bool needs_weights) {
    c_.load(head, t);
    if (x.delta) {
      c_.load_u(row_of(residual, t), residual.ld, head.beta.row(t), head.beta.ld);
    } else {
      c_.load_u(head.v.row(t), head.v.ld, nullptr, 0);
    }
    padded_rows(row_of(dout, t), dout.ld, c_.rows(), x.d, x.padded_d, dout_);
    return needs_weights ? c_.make_weights() : 0;
  }

  /// Back substitution of the delta rule, last row first: du_j -= sum over i > j of strict_weights[i, j] w_i,
  /// w_j = beta_j du_j, dbeta_j = du_j . residual_j.
  int64_t back_substitute(const DecayHead<T>& head, Rows<T> residual, Rows<T> dbeta, int64_t t) {
    const int64_t rows = c_.rows();
    for (int64_t j = rows - 1; j >= 0; --j) {
      T* du = du_ + j * x.padded_d;
      for (int64_t i = j + 1; i < rows; ++i) {
        const T weight = c_.strict_weights[i * chunk + j];
        for (int64_t n = 0; n < x.padded_d; ++n) du[n] -= weight * w_[i * x.padded_d + n];
      }
      const T beta = *head.beta.row(t + j);
      for (int64_t n = 0; n < x.padded_d; ++n) {
        w_[j * x.padded_d + n] = beta * du[n];
        minus_w_[j * x.padded_d + n] = -beta * du[n];
      }
    }
    T dots[chunk];
    simd::row_dots(du_, x.padded_d, row_of(residual, t), residual.ld, rows, x.d, dots);
    for (int64_t j = 0; j < rows; ++j) *row_of(dbeta, t + j) = dots[j];
    return rows * rows * x.d;
  }

  /// weight_grads[i, j] = dout_i . u_j, and with the delta rule strict_weight_grads[i, j] = -w_i . u_j for j
  /// < i.
  int64_t make_weight_grads() {
    const int64_t rows = c_.rows();
    transposed_rows(c_.u, x.padded_d, rows, x.d, u_transposed_);
    int64_t flops = small_gemm(Left::row_major, rows, chunk, x.d, dout_, x.padded_d, u_transposed_, chunk,
                               weight_grads_, chunk, false);
    if (!x.delta) return flops;
    flops += small_gemm(Left::row_major, rows, chunk, x.d, minus_w_, x.padded_d, u_transposed_, chunk,
                        strict_weight_grads_, chunk, false);
    for (int64_t i = 0; i < rows; ++i) strict_weight_grads_[i * chunk + i] = T(0);
    return flops;
  }

  /// sum_ [rows, f] = gradients of rows that read S and the chunk's k: grad S^T, decayed from the start of
  /// the chunk, plus weight_grads times the decayed k.
  int64_t read_gradients(const T* grad, const T* weight_grads) {
    const int64_t rows = c_.rows();
    int64_t flops = small_gemm(Left::row_major, rows, x.padded_f, x.d, grad, x.padded_d, state_transposed_,
                               x.padded_f, sum_, x.padded_f, false);
    c_.decay.decay_from_start(sum_, sum_);
    return flops + sum_over_earlier(c_.decay, weight_grads, c_.k, sum_);
  }

  /// dlogs_t += sign rows_t sum_t, element by element, or the sum of them where there is one decay per
  /// position. `clears`: sets dlogs_t to zero before.
  void add_decay_grads(Rows<T> dlogs, int64_t t, const T* rows, T sign, bool clears) {
    if (dlogs.data == nullptr) return;
    T dots[chunk];
    if (x.num_decays == 1) simd::row_dots(rows, x.padded_f, sum_, x.padded_f, c_.rows(), x.f, dots);
    for (int64_t i = 0; i < c_.rows(); ++i) {
      T* to = row_of(dlogs, t + i);
      if (clears) std::fill_n(to, x.num_decays, T(0));
      if (x.num_decays == 1) {
        *to += sign * dots[i];
        continue;
      }
      const T *a = rows + i * x.padded_f, *b = sum_ + i * x.padded_f;
      for (int64_t n = 0; n < x.f; ++n) to[n] += sign * a[n] * b[n];
    }
  }

  const DecayExtents<T>& x;
  BumpAllocator<T> arena_;
  DecayChunk<T> c_;
  T *dout_, *du_, *w_, *minus_w_;           // [chunk, padded d]
  T* sum_;                                  // [chunk, padded f]: gradients of q or k
  T* u_transposed_;                         // [d, chunk]
  T *weight_grads_, *strict_weight_grads_;  // [chunk, chunk]
  T* state_;                                // [f, padded d]: R
  T* state_transposed_;                     // [d, padded f]: R^T, then S^T
};

/// Gradients of DecayScan. One task is some heads (b, h): backward_sweep() gives dv, dbeta, dstart and a part
/// of dk, forward_sweep() gives dq and the other part of dk; both add to dlog_decay, which is then summed
/// over later positions.
template <class T>
void backward(const DecayInputs& in, const Tensor& residual, const Tensor& dout, const Tensor& dend,
              const DecayInputs& dx) {
  const DecayExtents<T> x(in);
  const DecayHeads<const T> inputs(in);
  const DecayHeads<T> grads(dx);
  const HeadView<const T> residuals(residual), douts(dout), dends(dend);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * DecayBackward<T>::scratch(x));
  parallel_rows(x.B * x.H, x.grain(), [&](int64_t begin, int64_t stop) {
    const Scratch::Part part(scratch);
    DecayBackward<T> pass(x, part.template data<T>());
    int64_t flops = 0;
    for (int64_t n = begin; n < stop; ++n) {
      const int64_t b = n / x.H, h = n % x.H;
      const DecayHead<T> head(inputs, b, h);
      const auto rows = [&](const auto& one) { return Rows<T>{one.at(b, h, 0), one.ld}; };
      flops += pass.backward_sweep(head, rows(residuals), rows(douts), rows(dends), rows(grads.k),
                                   rows(grads.v), rows(grads.log_decay), rows(grads.beta));
      if (T* to = grads.start.at(b, h, 0)) {
        for (int64_t r = 0; r < x.f; ++r)
          std::copy_n(pass.dstart() + r * x.padded_d, x.d, to + r * grads.start.ld);
      }
      flops +=
          pass.forward_sweep(head, inputs.start.at(b, h, 0), inputs.start.ld, rows(residuals), rows(douts),
                             rows(grads.v), rows(grads.q), rows(grads.k), rows(grads.log_decay));
      if (grads.log_decay.data != nullptr) pass.sum_decay_grads(rows(dends), rows(grads.log_decay));
    }
    Count::add(flops);
  });
}

}  // namespace

template <>
void DecayScan::cpu<target_isa>(const DecayInputs& x, const Tensor& out, const Tensor& end,
                                const Tensor& residual) {
  visit_float("decay_scan", x.q.dtype(), [&]<class T>(Type<T>) { forward<T>(x, out, end, residual); });
}

template <>
void DecayScanBack::cpu<target_isa>(const DecayInputs& x, const Tensor& residual, const Tensor& dout,
                                    const Tensor& dend, const DecayInputs& dx) {
  visit_float("decay_scan", x.q.dtype(), [&]<class T>(Type<T>) { backward<T>(x, residual, dout, dend, dx); });
}

}  // namespace heed::kernel
