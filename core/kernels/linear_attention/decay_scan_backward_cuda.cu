// Sums with decay and the delta rule on a device, backward. A sweep from the right over columns of the state
// gives dv. With dv known, rows of the state are independent: a sweep from the right gives dk, and one from
// the left gives dq and the gradients of the decays.
#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/block.h"
#include "heed/core/kernels/linear_attention/decay_device.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

template <class T>
struct BackCall : DecayCall<T> {
  HeadView<const T> rest, dout, dend;
  HeadView<T> dq, dk, dv, dlogs, dbeta, dstart;
  T* du = nullptr;      ///< [B, H, T, d]: gradients of u before the factor beta
  T* shares = nullptr;  ///< [B, H, T, f]: what each position adds to the gradients of its own and earlier
                        ///< decays
  T* ends = nullptr;    ///< [B, H, f]: what the last state adds
  int steps = 1;

  BackCall(const DecayInputs& x, const Tensor& residual, const Tensor& gradient, const Tensor& last,
           const DecayInputs& dx)
      : DecayCall<T>(x),
        rest(residual),
        dout(gradient),
        dend(last),
        dq(dx.q),
        dk(dx.k),
        dv(dx.v),
        dlogs(dx.log_decay),
        dbeta(dx.beta),
        dstart(dx.start) {}
};

/// dv, du and dstart by a sweep from the last position to the first. A line holds a column of the gradient R
/// of the state: R += q_t dout_t^T, du_t = R^T k_t, dv_t = beta_t du_t, R = a_t (R - k_t dv_t^T); without
/// beta dv_t = du_t and R = a_t R.
template <class T, int L, int R>
__global__ void __launch_bounds__(decay_threads) written(BackCall<T> x) {
  const Line<L, R> me;
  constexpr int row_width = me.length, lines = me.lines;
  const ColumnSweep<T, L, R> sweep(x, x.steps, x.dout);
  T *dv_lines = sweep.result, *du_lines = sweep.residual;
  const int64_t b = sweep.b, h = sweep.h, first = sweep.first, column = first + me.line;
  T state[R];
  load_columns(me, x.dend, b, h, x.f, column, x.d, state);
  for (int64_t end = x.length; end > 0; end -= x.steps) {
    const int64_t t = max(end - x.steps, int64_t{0});
    const int count = static_cast<int>(end - t);
    sweep.load(t, count);
    for (int i = count - 1; i >= 0; --i) {
      const T *key = sweep.k_rows + i * row_width, *query = sweep.q_rows + i * row_width,
              *decay = sweep.decays + i * row_width;
      const int at = i * lines + me.line;
      const T dout_value = sweep.input_lines[at];
      T du = T(0);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        state[r] += query[me.place(r)] * dout_value;
        du += state[r] * key[me.place(r)];
      }
      du = me.sum(du);
      const T w = x.delta ? sweep.betas[i] * du : T(0);
      if (me.lane == 0) {
        du_lines[at] = du;
        dv_lines[at] = x.delta ? w : du;
      }
#pragma unroll
      for (int r = 0; r < R; ++r) state[r] = decay[me.place(r)] * (state[r] - key[me.place(r)] * w);
    }
    __syncthreads();
    put_lines(dv_lines, lines, first, x.d, t, count, x.dv.at(b, h, 0), x.dv.ld);
    if (x.delta) put_lines(du_lines, lines, first, x.d, t, count, x.du + blockIdx.x * x.length * x.d, x.d);
    __syncthreads();
  }
  put_state(me, state, x.f, column, x.d, x.dstart, b, h);
}

/// Shared memory of both sweeps over rows of the state.
template <class T, int L, int R>
struct RowSweep {
  static constexpr int row_width = Line<L, R>::length, lines = Line<L, R>::lines;
  const BackCall<T>& x;
  int64_t b, h, first;
  DecayRows<T> q, k, u, w, dout, logs, beta;
  T *u_rows, *w_rows, *dout_rows, *q_lines, *k_lines, *decays, *betas, *result;

  __device__ explicit RowSweep(const BackCall<T>& call)
      : x(call),
        b(blockIdx.x / call.H),
        h(blockIdx.x % call.H),
        first(int64_t{blockIdx.y} * lines),
        q(call.q, b, h, call.f),
        k(call.k, b, h, call.f),
        u(call.delta ? call.rest : call.v, b, h, call.d),
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
  __device__ T before(int i) const { return x.delta ? betas[i] : T(1); }
};

/// dk_t = R_t u_t, what comes from writing to the state, by a sweep from the last position to the first. A
/// line holds a row of the gradient R of the state.
template <class T, int L, int R>
__global__ void __launch_bounds__(decay_threads) keys_written(BackCall<T> x) {
  const Line<L, R> me;
  constexpr int row_width = me.length, lines = me.lines;
  const RowSweep<T, L, R> sweep(x);
  const int64_t row = sweep.first + me.line;
  T state[R];
  load_rows(me, x.dend, sweep.b, sweep.h, row, x.f, x.d, state);
  for (int64_t end = x.length; end > 0; end -= x.steps) {
    const int64_t t = max(end - x.steps, int64_t{0});
    const int count = static_cast<int>(end - t);
    sweep.load(t, count);
    for (int i = count - 1; i >= 0; --i) {
      const T *u = sweep.u_rows + i * row_width, *w = sweep.w_rows + i * row_width,
              *dout = sweep.dout_rows + i * row_width;
      const int at = i * lines + me.line;
      const T query = sweep.q_lines[at], key = sweep.k_lines[at], decay = sweep.decays[at];
      T dk = T(0);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        state[r] += query * dout[me.place(r)];
        dk += state[r] * u[me.place(r)];
        if (x.delta) state[r] -= key * w[me.place(r)];
        state[r] *= decay;
      }
      dk = me.sum(dk) * sweep.before(i);
      if (me.lane == 0) sweep.result[at] = dk;
    }
    __syncthreads();
    put_lines(sweep.result, lines, sweep.first, x.f, t, count, x.dk.at(sweep.b, sweep.h, 0), x.dk.ld);
    __syncthreads();
  }
}

/// dq_t = S_t dout_t and the shares of decays, by a sweep from the first position to the last; with beta also
/// dk_t -= (a_t S_(t-1)) dv_t, what comes from reading the state. A line holds a row of S.
template <class T, int L, int R>
__global__ void __launch_bounds__(decay_threads) queries_read(BackCall<T> x) {
  const Line<L, R> me;
  constexpr int row_width = me.length, lines = me.lines;
  const RowSweep<T, L, R> sweep(x);
  T *dk_lines = sweep.result, *dq_lines = dk_lines + x.steps * lines,
    *share_lines = dq_lines + x.steps * lines;
  const int64_t row = sweep.first + me.line;
  T* dk_rows = x.dk.at(sweep.b, sweep.h, 0);
  T state[R];
  load_rows(me, x.start, sweep.b, sweep.h, row, x.f, x.d, state);
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
      const int at = i * lines + me.line;
      const T query = sweep.q_lines[at], key = sweep.k_lines[at], decay = sweep.decays[at];
      const T written = key * sweep.before(i);
      T dq = T(0), stored = T(0);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        state[r] *= decay;
        if (x.delta) stored += state[r] * w[me.place(r)];
        state[r] += written * u[me.place(r)];
        dq += state[r] * dout[me.place(r)];
      }
      dq = me.sum(dq);
      if (x.delta) stored = me.sum(stored);
      if (me.lane == 0) {
        const T dk = dk_lines[at];
        dq_lines[at] = dq;
        dk_lines[at] = dk - stored;
        share_lines[at] = query * dq - key * dk - key * stored;
      }
    }
    __syncthreads();
    put_lines(dq_lines, lines, sweep.first, x.f, t, count, x.dq.at(sweep.b, sweep.h, 0), x.dq.ld);
    if (x.delta) put_lines(dk_lines, lines, sweep.first, x.f, t, count, dk_rows, x.dk.ld);
    if (x.shares != nullptr)
      put_lines(share_lines, lines, sweep.first, x.f, t, count, x.shares + blockIdx.x * x.length * x.f, x.f);
    __syncthreads();
  }
  if (x.shares == nullptr) return;
  T last = T(0);
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const bool is_valid = x.dend.data != nullptr && me.place(r) < x.d && row < x.f;
    if (is_valid) last += state[r] * x.dend.at(sweep.b, sweep.h, row)[me.place(r)];
  }
  last = me.sum(last);
  if (me.lane == 0 && row < x.f) x.ends[blockIdx.x * x.f + row] = last;
}

/// dbeta = du . rest, one warp per position.
template <class T>
__global__ void beta_grads(BackCall<T> x) {
  const int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (row >= x.B * x.H * x.length) return;
  const int64_t head = row / x.length, b = head / x.H, h = head % x.H, t = row % x.length;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  T sum = T(0);
  for (int64_t c = lane; c < x.d; c += 32) sum += x.du[row * x.d + c] * x.rest.at(b, h, t)[c];
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, bits);
  if (lane == 0) *x.dbeta.at(b, h, t) = sum;
}

constexpr int decay_warps = 32;

/// dlog_decay: every later position fades by it too. A block for 32 numbers of each head's decays: lanes
/// along them, or, where all of a state fades alike, along what is added up for that; warps along runs of
/// positions, which are first summed, then summed again on top of what comes after them.
template <class T>
__global__ void __launch_bounds__(decay_warps* cuda::lanes) sum_decay_grads(BackCall<T> x) {
  __shared__ double later[decay_warps][cuda::lanes];
  const int lane = cuda::lane_number(), warp = cuda::warp_number();
  const bool alike = x.num_decays == 1;
  const int64_t head = blockIdx.x, n = alike ? 0 : int64_t{blockIdx.y} * cuda::lanes + lane,
                run = ceil_div(x.length, decay_warps), begin = min(warp * run, x.length),
                end = min(begin + run, x.length);
  const T* shares = x.shares + head * x.length * x.f;
  // This lane's part of a row of f.
  const auto part = [&](const T* row) {
    if (!alike) return n < x.f ? row[n] : T(0);
    T all = T(0);
    for (int64_t c = lane; c < x.f; c += cuda::lanes) all += row[c];
    return all;
  };
  const auto whole = [&](auto sum) { return alike ? cuda::warp_sum(sum) : sum; };
  double sum = 0;
#pragma unroll 4
  for (int64_t t = end - 1; t >= begin; --t) sum += static_cast<double>(part(shares + t * x.f));
  later[warp][lane] = whole(sum);
  __syncthreads();
  sum = whole(static_cast<double>(part(x.ends + head * x.f)));
  for (int other = decay_warps - 1; other > warp; --other) sum += later[other][lane];
  T* to = x.dlogs.at(head / x.H, head % x.H, 0) + n;
  const bool writes = alike ? lane == 0 : n < x.f;
#pragma unroll 4
  for (int64_t t = end - 1; t >= begin; --t) {
    sum += static_cast<double>(whole(part(shares + t * x.f)));
    if (writes) to[t * x.dlogs.ld] = static_cast<T>(sum);
  }
}

/// Gradients of DecayScan in up to five kernels: columns of the state from the right (dv, du, dstart), then
/// its rows from the right (dk) and from the left (dq), then dbeta, and the sums of dlog_decay over later
/// positions.
template <class T>
void backward(const DecayInputs& in, const Tensor& rest, const Tensor& dout, const Tensor& dend,
              const DecayInputs& dx) {
  BackCall<T> call(in, rest, dout, dend, dx);
  Count::add(3 * call.flops());
  const int64_t heads = call.B * call.H;
  const auto uninitialized = [&](int64_t numbers) {
    return Tensor(Shape{numbers}, in.q.dtype(), in.q.device());
  };
  // Kept between kernels: du [B H, T, d] with beta; shares [B H, T, f] and ends [B H, f] for dlog_decay.
  Tensor du, shares, ends;
  if (call.delta) {
    du = uninitialized(heads * call.length * call.d);
    call.du = du.data<T>();
  }
  if (dx.log_decay) {
    shares = uninitialized(heads * call.length * call.f);
    ends = uninitialized(heads * call.f);
    call.shares = shares.data<T>();
    call.ends = ends.data<T>();
  }
  // Lines are columns of the state: dv, du and dstart.
  visit_lines<T>(call.f, [&]<int L, int R>(std::type_identity<Line<L, R>>) {
    call.steps = decay_steps(L * R);
    cuda::run(written<T, L, R>,
              decay_grid(heads, call.d, decay_threads / L, ColumnSweep<T, L, R>::bytes(call.steps)), call);
  });
  // Lines are rows of the state: dk from writing, then dq, the rest of dk, and the shares.
  visit_lines<T>(call.d, [&]<int L, int R>(std::type_identity<Line<L, R>>) {
    call.steps = decay_steps(L * R);
    const cuda::Grid rows =
        decay_grid(heads, call.f, decay_threads / L, RowSweep<T, L, R>::bytes(call.steps));
    cuda::run(keys_written<T, L, R>, rows, call);
    cuda::run(queries_read<T, L, R>, rows, call);
  });
  // dbeta = du . rest, and the sums of dlog_decay.
  const int64_t positions = heads * call.length;
  if (call.delta) {
    cuda::run(beta_grads<T>,
              {.blocks = dim3(static_cast<unsigned>(ceil_div(positions, 8))), .threads = dim3(256)}, call);
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

void DecayScanBack::cuda(const DecayInputs& x, const Tensor& rest, const Tensor& dout, const Tensor& dend,
                         const DecayInputs& dx) {
  visit_float("decay_scan", x.q.dtype(),
              [&]<class T>(Type<T>) { backward<T>(x, rest, dout, dend, dx); });
}

}  // namespace heed::kernel
