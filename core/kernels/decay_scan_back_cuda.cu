// Fading sums and the delta rule on a device, backward. What is written to the state depends on its columns
// alone, so a first sweep from the right over columns gives dv; with that known its rows are lines of their
// own, and a sweep from the right gives dk, one from the left dq and what the decays get.
#include "core/count.h"
#include "core/kernels/decay_device.h"

namespace heed::kernel {
namespace {

template <class T>
struct BackCall : DecayCall<T> {
  Heads<const T> rest, dout, dend;
  Heads<T> dq, dk, dv, dlogs, dbeta, dstart;
  T* du = nullptr;      ///< [B, H, T, d]: gradients of what is written, where beta stands before it
  T* shares = nullptr;  ///< [B, H, T, f]: what each position adds to the gradients of its and earlier decays
  T* ends = nullptr;    ///< [B, H, f]: what the last state adds
  int steps = 1;

  BackCall(const DecayInputs& x, const Tensor& beside, const Tensor& slope, const Tensor& last,
           const DecayInputs& dx)
      : DecayCall<T>(x),
        rest(beside),
        dout(slope),
        dend(last),
        dq(dx.q),
        dk(dx.k),
        dv(dx.v),
        dlogs(dx.log_decay),
        dbeta(dx.beta),
        dstart(dx.start) {}
};

/// From the right, lines are columns: dv, du and dstart.
template <class T, int L, int R>
__global__ void __launch_bounds__(decay_threads) written(BackCall<T> x) {
  const Line<L, R> me;
  constexpr int wide = me.length, lines = me.lines;
  T* k_rows = cuda::shared<T>();
  T* q_rows = k_rows + x.steps * wide;
  T* decays = q_rows + x.steps * wide;
  T* dout_rows = decays + x.steps * wide;
  T* du_rows = dout_rows + x.steps * lines;
  T* dv_rows = du_rows + x.steps * lines;
  T* betas = dv_rows + x.steps * lines;
  const int64_t b = blockIdx.x / x.H, h = blockIdx.x % x.H, first = int64_t{blockIdx.y} * lines;
  const int64_t column = first + me.line;
  const DecayRows<T> q(x.q, b, h, x.f), k(x.k, b, h, x.f), dout(x.dout, b, h, x.d),
      logs(x.logs, b, h, x.each), beta(x.beta, b, h, 1);
  T state[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const bool there = x.dend.data != nullptr && me.place(r) < x.f && column < x.d;
    state[r] = there ? x.dend.at(b, h, me.place(r))[column] : T(0);
  }
  for (int64_t end = x.length; end > 0; end -= x.steps) {
    const int64_t t = max(end - x.steps, int64_t{0});
    const int count = static_cast<int>(end - t);
    k.load(k_rows, wide, 0, t, count);
    q.load(q_rows, wide, 0, t, count);
    load_decays(logs, x.each, decays, wide, 0, t, count);
    dout.load(dout_rows, lines, first, t, count);
    if (x.delta) beta.load(betas, 1, 0, t, count);
    __syncthreads();
    for (int i = count - 1; i >= 0; --i) {
      const T *key = k_rows + i * wide, *query = q_rows + i * wide, *decay = decays + i * wide;
      const T slope = dout_rows[i * lines + me.line];
      T du = T(0);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        state[r] += query[me.place(r)] * slope;
        du += state[r] * key[me.place(r)];
      }
      du = me.sum(du);
      const T w = x.delta ? betas[i] * du : T(0);
      if (me.lane == 0) {
        du_rows[i * lines + me.line] = du;
        dv_rows[i * lines + me.line] = x.delta ? w : du;
      }
#pragma unroll
      for (int r = 0; r < R; ++r) state[r] = decay[me.place(r)] * (state[r] - key[me.place(r)] * w);
    }
    __syncthreads();
    put_lines(dv_rows, lines, first, x.d, t, count, x.dv.at(b, h, 0), x.dv.ld);
    if (x.delta) put_lines(du_rows, lines, first, x.d, t, count, x.du + blockIdx.x * x.length * x.d, x.d);
    __syncthreads();
  }
  if (x.dstart.data == nullptr || column >= x.d) return;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (me.place(r) < x.f) x.dstart.at(b, h, me.place(r))[column] = state[r];
  }
}

/// What both sweeps over rows have of some positions in shared memory.
template <class T, int L, int R>
struct RowSweep {
  static constexpr int wide = Line<L, R>::length, lines = Line<L, R>::lines;
  const BackCall<T>& x;
  int64_t b, h, first;
  DecayRows<T> q, k, u, w, dout, logs, beta;
  T *u_rows, *w_rows, *dout_rows, *q_lines, *k_lines, *decays, *betas, *made;

  __device__ explicit RowSweep(const BackCall<T>& call)
      : x(call),
        b(blockIdx.x / call.H),
        h(blockIdx.x % call.H),
        first(int64_t{blockIdx.y} * lines),
        q(call.q, b, h, call.f),
        k(call.k, b, h, call.f),
        u(call.delta ? call.rest : call.v, b, h, call.d),
        dout(call.dout, b, h, call.d),
        logs(call.logs, b, h, call.each),
        beta(call.beta, b, h, 1) {
    w.data = call.dv.at(b, h, 0);
    w.ld = call.dv.ld;
    w.width = call.d;
    u_rows = cuda::shared<T>();
    w_rows = u_rows + x.steps * wide;
    dout_rows = w_rows + x.steps * wide;
    q_lines = dout_rows + x.steps * wide;
    k_lines = q_lines + x.steps * lines;
    decays = k_lines + x.steps * lines;
    betas = decays + x.steps * lines;
    made = betas + x.steps;
  }
  __device__ void load(int64_t t, int count) const {
    u.load(u_rows, wide, 0, t, count);
    if (x.delta) {
      w.load(w_rows, wide, 0, t, count);
      beta.load(betas, 1, 0, t, count);
    }
    dout.load(dout_rows, wide, 0, t, count);
    q.load(q_lines, lines, first, t, count);
    k.load(k_lines, lines, first, t, count);
    load_decays(logs, x.each, decays, lines, first, t, count);
    __syncthreads();
  }
  /// What is multiplied with u where beta stands before it.
  __device__ T before(int i) const { return x.delta ? betas[i] : T(1); }
};

template <int wide, int lines>
constexpr int row_numbers = 3 * wide + 6 * lines + 1;

/// From the right, lines are rows: dk, as far as keys are written.
template <class T, int L, int R>
__global__ void __launch_bounds__(decay_threads) keys_written(BackCall<T> x) {
  const Line<L, R> me;
  constexpr int wide = me.length, lines = me.lines;
  const RowSweep<T, L, R> sweep(x);
  const int64_t row = sweep.first + me.line;
  T state[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const bool there = x.dend.data != nullptr && me.place(r) < x.d && row < x.f;
    state[r] = there ? x.dend.at(sweep.b, sweep.h, row)[me.place(r)] : T(0);
  }
  for (int64_t end = x.length; end > 0; end -= x.steps) {
    const int64_t t = max(end - x.steps, int64_t{0});
    const int count = static_cast<int>(end - t);
    sweep.load(t, count);
    for (int i = count - 1; i >= 0; --i) {
      const T *u = sweep.u_rows + i * wide, *w = sweep.w_rows + i * wide, *dout = sweep.dout_rows + i * wide;
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
      if (me.lane == 0) sweep.made[at] = dk;
    }
    __syncthreads();
    put_lines(sweep.made, lines, sweep.first, x.f, t, count, x.dk.at(sweep.b, sweep.h, 0), x.dk.ld);
    __syncthreads();
  }
}

/// From the left, lines are rows: dq, dk as far as keys are read, and the shares of decays.
template <class T, int L, int R>
__global__ void __launch_bounds__(decay_threads) queries_read(BackCall<T> x) {
  const Line<L, R> me;
  constexpr int wide = me.length, lines = me.lines;
  const RowSweep<T, L, R> sweep(x);
  T *dk_lines = sweep.made, *dq_lines = dk_lines + x.steps * lines, *share_lines = dq_lines + x.steps * lines;
  const int64_t row = sweep.first + me.line;
  T* dk_rows = x.dk.at(sweep.b, sweep.h, 0);
  T state[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const bool there = x.start.data != nullptr && me.place(r) < x.d && row < x.f;
    state[r] = there ? x.start.at(sweep.b, sweep.h, row)[me.place(r)] : T(0);
  }
  for (int64_t t = 0; t < x.length; t += x.steps) {
    const int count = static_cast<int>(min(int64_t{x.steps}, x.length - t));
    for (int e = static_cast<int>(threadIdx.x); e < count * lines; e += decay_threads) {
      const int64_t c = sweep.first + e % lines;
      dk_lines[e] = c < x.f ? dk_rows[(t + e / lines) * x.dk.ld + c] : T(0);
    }
    sweep.load(t, count);
    for (int i = 0; i < count; ++i) {
      const T *u = sweep.u_rows + i * wide, *w = sweep.w_rows + i * wide, *dout = sweep.dout_rows + i * wide;
      const int at = i * lines + me.line;
      const T query = sweep.q_lines[at], key = sweep.k_lines[at], decay = sweep.decays[at];
      const T written = key * sweep.before(i);
      T dq = T(0), found = T(0);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        state[r] *= decay;
        if (x.delta) found += state[r] * w[me.place(r)];
        state[r] += written * u[me.place(r)];
        dq += state[r] * dout[me.place(r)];
      }
      dq = me.sum(dq);
      if (x.delta) found = me.sum(found);
      if (me.lane == 0) {
        const T dk = dk_lines[at];
        dq_lines[at] = dq;
        dk_lines[at] = dk - found;
        share_lines[at] = query * dq - key * dk - key * found;
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
    const bool there = x.dend.data != nullptr && me.place(r) < x.d && row < x.f;
    if (there) last += state[r] * x.dend.at(sweep.b, sweep.h, row)[me.place(r)];
  }
  last = me.sum(last);
  if (me.lane == 0 && row < x.f) x.ends[blockIdx.x * x.f + row] = last;
}

/// A warp for each position: dbeta = du . rest.
template <class T>
__global__ void beta_slopes(BackCall<T> x) {
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

/// dlog_decay: every later position fades by it too. A block for each head and number of a decay: each thread
/// sums a run of positions, then adds what comes after it.
template <class T>
__global__ void sum_fading(BackCall<T> x) {
  double* later = cuda::shared<double>();
  const int64_t head = blockIdx.x, n = blockIdx.y, threads = blockDim.x, me = threadIdx.x;
  const int64_t run = (x.length + threads - 1) / threads, begin = min(me * run, x.length),
                end = min(begin + run, x.length);
  const int64_t low = x.each == 1 ? 0 : n, high = x.each == 1 ? x.f : n + 1;
  const T* shares = x.shares + head * x.length * x.f;
  T* to = x.dlogs.at(head / x.H, head % x.H, 0) + n;
  double sum = 0;
  for (int64_t t = end - 1; t >= begin; --t) {
    T all = T(0);
    for (int64_t c = low; c < high; ++c) all += shares[t * x.f + c];
    sum += static_cast<double>(all);
    to[t * x.dlogs.ld] = static_cast<T>(sum);
  }
  later[me] = sum;
  __syncthreads();
  double after = 0;
  for (int64_t c = low; c < high; ++c) after += static_cast<double>(x.ends[head * x.f + c]);
  for (int64_t other = threads - 1; other > me; --other) after += later[other];
  for (int64_t t = begin; t < end; ++t) {
    T& slope = to[t * x.dlogs.ld];
    slope = static_cast<T>(static_cast<double>(slope) + after);
  }
}

template <class T>
void backward(const DecayInputs& in, const Tensor& rest, const Tensor& dout, const Tensor& dend,
              const DecayInputs& dx) {
  BackCall<T> call(in, rest, dout, dend, dx);
  Count::add(3 * call.flops());
  const int64_t heads = call.B * call.H;
  const auto fresh = [&](int64_t numbers) { return Tensor(Shape{numbers}, in.q.dtype(), in.q.device()); };
  Tensor du, shares, ends;
  if (call.delta) {
    du = fresh(heads * call.length * call.d);
    call.du = du.data<T>();
  }
  if (dx.log_decay) {
    shares = fresh(heads * call.length * call.f);
    ends = fresh(heads * call.f);
    call.shares = shares.data<T>();
    call.ends = ends.data<T>();
  }
  const auto grid = [&](int64_t lines, int64_t each) {
    return dim3(static_cast<unsigned>(heads), static_cast<unsigned>(cuda::pieces(lines, each)));
  };
  constexpr int size = static_cast<int>(sizeof(T));
  visit_lines<T>(call.f, [&]<int L, int R>(std::type_identity<Line<L, R>>) {
    constexpr int wide = L * R, lines = decay_threads / L;
    call.steps = decay_steps(wide);
    cuda::run(written<T, L, R>,
              {.blocks = grid(call.d, lines),
               .threads = dim3(decay_threads),
               .shared_bytes = call.steps * (3 * wide + 3 * lines + 1) * size},
              call);
  });
  visit_lines<T>(call.d, [&]<int L, int R>(std::type_identity<Line<L, R>>) {
    constexpr int wide = L * R, lines = decay_threads / L;
    call.steps = decay_steps(wide);
    const cuda::Grid rows{.blocks = grid(call.f, lines),
                          .threads = dim3(decay_threads),
                          .shared_bytes = call.steps * row_numbers<wide, lines> * size};
    cuda::run(keys_written<T, L, R>, rows, call);
    cuda::run(queries_read<T, L, R>, rows, call);
  });
  const int64_t positions = heads * call.length;
  if (call.delta) {
    cuda::run(beta_slopes<T>,
              {.blocks = dim3(static_cast<unsigned>(cuda::pieces(positions, 8))), .threads = dim3(256)},
              call);
  }
  if (dx.log_decay && call.length > 0) {
    constexpr int threads = 128;
    cuda::run(sum_fading<T>,
              {.blocks = dim3(static_cast<unsigned>(heads), static_cast<unsigned>(call.each)),
               .threads = dim3(threads),
               .shared_bytes = threads * static_cast<int>(sizeof(double))},
              call);
  }
}

}  // namespace

void DecayScanBack::cuda(const DecayInputs& x, const Tensor& rest, const Tensor& dout, const Tensor& dend,
                         const DecayInputs& dx) {
  visit_float("decay_scan", x.q.dtype(),
              [&](auto type) { backward<typename decltype(type)::type>(x, rest, dout, dend, dx); });
}

}  // namespace heed::kernel
