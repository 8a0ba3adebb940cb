// Sums with decay and the delta rule on a device, backward. A loop from the last position to the first over
// columns of the gradient R of the state gives dv. With dv known, rows of the state are independent: a loop
// from the last position gives dk, and one from the first gives dq and the gradients of the decays.
#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/linear_attention/decay_device.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

template <class T>
struct BackwardCall : DecayCall<T> {
  HeadView<const T> residual, dout, dend;
  HeadView<T> dq, dk, dv, dlogs, dbeta, dstart;
  T* du = nullptr;  ///< [B, H, T, d]: gradients of u before the factor beta
  T* decay_terms =
      nullptr;  ///< [B, H, T, f]: terms of the gradients of the decays of this and earlier positions
  T* end_terms = nullptr;  ///< [B, H, f]: terms of the gradients of all decays, from the end state
  int steps = 1;

  BackwardCall(const DecayInputs& x, const Tensor& residuals, const Tensor& douts, const Tensor& dend_state,
               const DecayInputs& dx)
      : DecayCall<T>(x),
        residual(residuals),
        dout(douts),
        dend(dend_state),
        dq(dx.q),
        dk(dx.k),
        dv(dx.v),
        dlogs(dx.log_decay),
        dbeta(dx.beta),
        dstart(dx.start) {}
};

/// dv, du and dstart in a loop from the last position to the first. A line of L lanes holds a column of the
/// gradient R of the state: R += q_t dout_t^T, du_t = R^T k_t, dv_t = beta_t du_t, R = a_t (R - k_t dv_t^T);
/// without beta dv_t = du_t and R = a_t R.
template <class T, int L, int R>
__global__ void __launch_bounds__(decay_threads) value_gradients(BackwardCall<T> x) {
  const Line<L, R> line;
  constexpr int row_width = line.length, lines = line.lines;
  const ColumnSweep<T, L, R> sweep(x, x.steps, x.dout);
  T *dv_lines = sweep.result, *du_lines = sweep.residual;
  const int64_t b = sweep.b, h = sweep.h, first = sweep.first, column = first + line.number;
  T state[R];
  load_columns(line, x.dend, b, h, x.f, column, x.d, state);
  for (int64_t end = x.length; end > 0; end -= x.steps) {
    const int64_t t = max(end - x.steps, int64_t{0});
    const int count = static_cast<int>(end - t);
    sweep.load(t, count);
    for (int i = count - 1; i >= 0; --i) {
      const T *key = sweep.k_rows + i * row_width, *query = sweep.q_rows + i * row_width,
              *decay = sweep.decays + i * row_width;
      const int place = i * lines + line.number;
      const T dout_value = sweep.input_lines[place];
      T du = T(0);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        state[r] += query[line.index(r)] * dout_value;
        du += state[r] * key[line.index(r)];
      }
      du = line.sum(du);
      const T w = x.delta ? sweep.betas[i] * du : T(0);
      if (line.lane == 0) {
        du_lines[place] = du;
        dv_lines[place] = x.delta ? w : du;
      }
#pragma unroll
      for (int r = 0; r < R; ++r) state[r] = decay[line.index(r)] * (state[r] - key[line.index(r)] * w);
    }
    __syncthreads();
    store_lines(dv_lines, lines, first, x.d, t, count, x.dv.at(b, h, 0), x.dv.ld);
    if (x.delta) store_lines(du_lines, lines, first, x.d, t, count, x.du + blockIdx.x * x.length * x.d, x.d);
    __syncthreads();
  }
  store_columns(line, state, x.f, column, x.d, x.dstart, b, h);
}

/// Shared memory of a block whose lines are rows of the state: u, w = dv and dout of some positions, the
/// block's numbers of q, k and the decays, and up to three results.
template <class T, int L, int R>
struct RowSweep {
  static constexpr int row_width = Line<L, R>::length, lines = Line<L, R>::lines;
  const BackwardCall<T>& x;
  int64_t b, h, first;
  DecayRows<T> q, k, u, w, dout, logs, beta;
  T *u_rows, *w_rows, *dout_rows, *q_lines, *k_lines, *decays, *betas, *result;

  __device__ explicit RowSweep(const BackwardCall<T>& call)
      : x(call),
        b(blockIdx.x / call.H),
        h(blockIdx.x % call.H),
        first(int64_t{blockIdx.y} * lines),
        q(call.q, b, h, call.f),
        k(call.k, b, h, call.f),
        u(call.delta ? call.residual : call.v, b, h, call.d),
        dout(call.dout, b, h, call.d),
        logs(call.logs, b, h, call.num_decays),
        beta(call.beta, b, h, 1) {
    w.data = call.dv.at(b, h, 0);
    w.ld = call.dv.ld;
    w.width = call.d;
    u_rows = cuda::shared<T>();
    w_rows = u_rows + x.steps * row_width;
    dout_rows = w_rows + x.steps * row_width;
    q_lines = dout_rows + x.steps * row_width;
    k_lines = q_lines + x.steps * lines;
    decays = k_lines + x.steps * lines;
    betas = decays + x.steps * lines;
    result = betas + x.steps;
  }
  /// Loads positions [t, t + count). All threads call it.
  __device__ void load(int64_t t, int count) const {
    u.load(u_rows, row_width, 0, t, count);
    if (x.delta) {
      w.load(w_rows, row_width, 0, t, count);
      beta.load(betas, 1, 0, t, count);
    }
    dout.load(dout_rows, row_width, 0, t, count);
    q.load(q_lines, lines, first, t, count);
    k.load(k_lines, lines, first, t, count);
    load_decays(logs, x.num_decays, decays, lines, first, t, count);
    __syncthreads();
  }
  static int bytes(int steps) {
    return steps * (3 * row_width + 6 * lines + 1) * static_cast<int>(sizeof(T));
  }
  /// The factor of u: beta, or 1 without beta.
  __device__ T beta_or_one(int i) const { return x.delta ? betas[i] : T(1); }
};

/// dk_t = R_t u_t, the gradient of writing to the state, in a loop from the last position to the first. A
/// line of L lanes holds a row of the gradient R of the state.
template <class T, int L, int R>
__global__ void __launch_bounds__(decay_threads) key_write_gradients(BackwardCall<T> x) {
  const Line<L, R> line;
  constexpr int row_width = line.length, lines = line.lines;
  const RowSweep<T, L, R> sweep(x);
  const int64_t row = sweep.first + line.number;
  T state[R];
  load_rows(line, x.dend, sweep.b, sweep.h, row, x.f, x.d, state);
  for (int64_t end = x.length; end > 0; end -= x.steps) {
    const int64_t t = max(end - x.steps, int64_t{0});
    const int count = static_cast<int>(end - t);
    sweep.load(t, count);
    for (int i = count - 1; i >= 0; --i) {
      const T *u = sweep.u_rows + i * row_width, *w = sweep.w_rows + i * row_width,
              *dout = sweep.dout_rows + i * row_width;
      const int place = i * lines + line.number;
      const T query = sweep.q_lines[place], key = sweep.k_lines[place], decay = sweep.decays[place];
      T dk = T(0);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        state[r] += query * dout[line.index(r)];
        dk += state[r] * u[line.index(r)];
        if (x.delta) state[r] -= key * w[line.index(r)];
        state[r] *= decay;
      }
      dk = line.sum(dk) * sweep.beta_or_one(i);
      if (line.lane == 0) sweep.result[place] = dk;
    }
    __syncthreads();
    store_lines(sweep.result, lines, sweep.first, x.f, t, count, x.dk.at(sweep.b, sweep.h, 0), x.dk.ld);
    __syncthreads();
  }
}

/// dq_t = S_t dout_t and the terms of decay gradients, in a loop from the first position to the last; with
/// beta also dk_t -= (a_t S_(t-1)) dv_t, the gradient of reading the state. A line of L lanes holds a row of
/// S.
template <class T, int L, int R>
__global__ void __launch_bounds__(decay_threads) read_gradients(BackwardCall<T> x) {
  const Line<L, R> line;
  constexpr int row_width = line.length, lines = line.lines;
  const RowSweep<T, L, R> sweep(x);
  T *dk_lines = sweep.result, *dq_lines = dk_lines + x.steps * lines,
    *term_lines = dq_lines + x.steps * lines;
  const int64_t row = sweep.first + line.number;
  T* dk_rows = x.dk.at(sweep.b, sweep.h, 0);
  T state[R];
  load_rows(line, x.start, sweep.b, sweep.h, row, x.f, x.d, state);
  for (int64_t t = 0; t < x.length; t += x.steps) {
    const int count = static_cast<int>(min(int64_t{x.steps}, x.length - t));
    for (int e = static_cast<int>(threadIdx.x); e < count * lines; e += decay_threads) {
      const int64_t c = sweep.first + e % lines;
      dk_lines[e] = c < x.f ? dk_rows[(t + e / lines) * x.dk.ld + c] : T(0);
    }
    sweep.load(t, count);
    for (int i = 0; i < count; ++i) {
      const T *u = sweep.u_rows + i * row_width, *w = sweep.w_rows + i * row_width,
              *dout = sweep.dout_rows + i * row_width;
      const int place = i * lines + line.number;
      const T query = sweep.q_lines[place], key = sweep.k_lines[place], decay = sweep.decays[place];
      const T written = key * sweep.beta_or_one(i);
      T dq = T(0), stored = T(0);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        state[r] *= decay;
        if (x.delta) stored += state[r] * w[line.index(r)];
        state[r] += written * u[line.index(r)];
        dq += state[r] * dout[line.index(r)];
      }
      dq = line.sum(dq);
      if (x.delta) stored = line.sum(stored);
      if (line.lane == 0) {
        const T dk = dk_lines[place];
        dq_lines[place] = dq;
        dk_lines[place] = dk - stored;
        term_lines[place] = query * dq - key * dk - key * stored;
      }
    }
    __syncthreads();
    store_lines(dq_lines, lines, sweep.first, x.f, t, count, x.dq.at(sweep.b, sweep.h, 0), x.dq.ld);
    if (x.delta) store_lines(dk_lines, lines, sweep.first, x.f, t, count, dk_rows, x.dk.ld);
    if (x.decay_terms != nullptr)
      store_lines(term_lines, lines, sweep.first, x.f, t, count, x.decay_terms + blockIdx.x * x.length * x.f,
                  x.f);
    __syncthreads();
  }
  if (x.decay_terms == nullptr) return;
  T end_term = T(0);  // the sum of this row of S times dend
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const bool is_valid = x.dend.data != nullptr && line.index(r) < x.d && row < x.f;
    if (is_valid) end_term += state[r] * x.dend.at(sweep.b, sweep.h, row)[line.index(r)];
  }
  end_term = line.sum(end_term);
  if (line.lane == 0 && row < x.f) x.end_terms[blockIdx.x * x.f + row] = end_term;
}

/// dbeta = du . residual, one warp per position.
template <class T>
__global__ void beta_grads(BackwardCall<T> x) {
  const int64_t row = cuda::grid_warp();
  if (row >= x.B * x.H * x.length) return;
  const int64_t head = row / x.length, b = head / x.H, h = head % x.H, t = row % x.length;
  T sum = T(0);
  for (int64_t c = cuda::lane_number(); c < x.d; c += 32)
    sum += x.du[row * x.d + c] * x.residual.at(b, h, t)[c];
  sum = cuda::warp_sum(sum);
  if (cuda::lane_number() == 0) *x.dbeta.at(b, h, t) = sum;
}

constexpr int decay_warps = 32;  ///< warps of a block of sum_decay_grads()

/// dlog_decay_t = sum over positions from t on of decay_terms, plus end_terms, since a decay acts on all
/// later positions. A block handles 32 decays of a head, one per lane (or one decay, whose f terms the lanes
/// share). Each warp first sums a run of positions; then it sums the run again, position by position, on top
/// of the sums of later runs.
template <class T>
__global__ void __launch_bounds__(decay_warps* cuda::lanes) sum_decay_grads(BackwardCall<T> x) {
  __shared__ double run_sums[decay_warps][cuda::lanes];
  const int lane = cuda::lane_number(), warp = cuda::warp_number();
  const bool is_scalar = x.num_decays == 1;  // one decay per position
  const int64_t head = blockIdx.x, n = is_scalar ? 0 : int64_t{blockIdx.y} * cuda::lanes + lane,
                run = ceil_div(x.length, decay_warps), begin = min(warp * run, x.length),
                end = min(begin + run, x.length);
  const T* decay_terms = x.decay_terms + head * x.length * x.f;
  // This lane's term of a row [f], or its share of the sum of the row.
  const auto term = [&](const T* row) {
    if (!is_scalar) return n < x.f ? row[n] : T(0);
    T all = T(0);
    for (int64_t c = lane; c < x.f; c += cuda::lanes) all += row[c];
    return all;
  };
  const auto total = [&](auto sum) { return is_scalar ? cuda::warp_sum(sum) : sum; };
  double sum = 0;
#pragma unroll 4
  for (int64_t t = end - 1; t >= begin; --t) sum += static_cast<double>(term(decay_terms + t * x.f));
  run_sums[warp][lane] = total(sum);
  __syncthreads();
  sum = total(static_cast<double>(term(x.end_terms + head * x.f)));
  for (int other = decay_warps - 1; other > warp; --other) sum += run_sums[other][lane];
  T* to = x.dlogs.at(head / x.H, head % x.H, 0) + n;
  const bool writes = is_scalar ? lane == 0 : n < x.f;
#pragma unroll 4
  for (int64_t t = end - 1; t >= begin; --t) {
    sum += static_cast<double>(total(term(decay_terms + t * x.f)));
    if (writes) to[t * x.dlogs.ld] = static_cast<T>(sum);
  }
}

/// Gradients of DecayScan in up to five kernels: value_gradients (dv, du, dstart), key_write_gradients (dk),
/// read_gradients (dq and the rest of dk), then dbeta, and the sums of dlog_decay over later positions.
template <class T>
void backward(const DecayInputs& in, const Tensor& residual, const Tensor& dout, const Tensor& dend,
              const DecayInputs& dx) {
  BackwardCall<T> call(in, residual, dout, dend, dx);
  Count::add(3 * call.flops());
  const int64_t heads = call.B * call.H;
  const auto uninitialized = [&](int64_t numbers) {
    return Tensor(Shape{numbers}, in.q.dtype(), in.q.device());
  };
  // Passed between kernels: du [B H, T, d] with beta; decay_terms [B H, T, f] and end_terms [B H, f] for
  // dlog_decay.
  Tensor du, decay_terms, end_terms;
  if (call.delta) {
    du = uninitialized(heads * call.length * call.d);
    call.du = du.data<T>();
  }
  if (dx.log_decay) {
    decay_terms = uninitialized(heads * call.length * call.f);
    end_terms = uninitialized(heads * call.f);
    call.decay_terms = decay_terms.data<T>();
    call.end_terms = end_terms.data<T>();
  }
  // Lines are columns of the state: dv, du and dstart.
  visit_lines<T>(call.f, [&]<int L, int R>(std::type_identity<Line<L, R>>) {
    call.steps = decay_steps(L * R);
    cuda::run(value_gradients<T, L, R>,
              decay_grid(heads, call.d, decay_threads / L, ColumnSweep<T, L, R>::bytes(call.steps)), call);
  });
  // Lines are rows of the state: dk from writing, then dq, the rest of dk, and the terms of dlog_decay.
  visit_lines<T>(call.d, [&]<int L, int R>(std::type_identity<Line<L, R>>) {
    call.steps = decay_steps(L * R);
    const cuda::Grid rows =
        decay_grid(heads, call.f, decay_threads / L, RowSweep<T, L, R>::bytes(call.steps));
    cuda::run(key_write_gradients<T, L, R>, rows, call);
    cuda::run(read_gradients<T, L, R>, rows, call);
  });
  // dbeta = du . residual, and the sums of dlog_decay.
  const int64_t positions = heads * call.length;
  if (call.delta) {
    cuda::run(beta_grads<T>, cuda::warp_per_row(positions), call);
  }
  if (dx.log_decay && call.length > 0) {
    cuda::run(sum_decay_grads<T>,
              {.blocks = dim3(static_cast<unsigned>(heads),
                              static_cast<unsigned>(ceil_div(call.num_decays, cuda::lanes))),
               .threads = dim3(decay_warps * cuda::lanes)},
              call);
  }
}

}  // namespace

void DecayScanBack::cuda(const DecayInputs& x, const Tensor& residual, const Tensor& dout, const Tensor& dend,
                         const DecayInputs& dx) {
  visit_float("decay_scan", x.q.dtype(), [&]<class T>(Type<T>) { backward<T>(x, residual, dout, dend, dx); });
}

}  // namespace heed::kernel
