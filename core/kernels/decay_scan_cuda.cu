// Fading sums and the delta rule on a device, forward: the columns of the state are lines of their own.
#include "core/kernels/decay_scan.h"

#include "core/count.h"
#include "core/kernels/decay_device.h"

namespace heed::kernel {
namespace {

template <class T>
struct ForwardCall : DecayCall<T> {
  Heads<T> out, end, rest;
  int steps = 1;
  ForwardCall(const DecayInputs& x, const Tensor& to, const Tensor& last, const Tensor& beside)
      : DecayCall<T>(x), out(to), end(last), rest(beside) {}
};

template <class T, int L, int R>
__global__ void __launch_bounds__(decay_threads) forward(ForwardCall<T> x) {
  const Line<L, R> me;
  constexpr int wide = me.length, lines = me.lines;
  T* k_rows = cuda::shared<T>();
  T* q_rows = k_rows + x.steps * wide;
  T* decays = q_rows + x.steps * wide;
  T* v_rows = decays + x.steps * wide;
  T* out_rows = v_rows + x.steps * lines;
  T* rest_rows = out_rows + x.steps * lines;
  T* betas = rest_rows + x.steps * lines;
  const int64_t b = blockIdx.x / x.H, h = blockIdx.x % x.H, first = int64_t{blockIdx.y} * lines;
  const int64_t column = first + me.line;
  const DecayRows<T> q(x.q, b, h, x.f), k(x.k, b, h, x.f), v(x.v, b, h, x.d), logs(x.logs, b, h, x.each),
      beta(x.beta, b, h, 1);
  T state[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const bool there = x.start.data != nullptr && me.place(r) < x.f && column < x.d;
    state[r] = there ? x.start.at(b, h, me.place(r))[column] : T(0);
  }
  for (int64_t t = 0; t < x.length; t += x.steps) {
    const int count = static_cast<int>(min(int64_t{x.steps}, x.length - t));
    k.load(k_rows, wide, 0, t, count);
    q.load(q_rows, wide, 0, t, count);
    load_decays(logs, x.each, decays, wide, 0, t, count);
    v.load(v_rows, lines, first, t, count);
    if (x.delta) beta.load(betas, 1, 0, t, count);
    __syncthreads();
    for (int i = 0; i < count; ++i) {
      const T *key = k_rows + i * wide, *query = q_rows + i * wide, *decay = decays + i * wide;
#pragma unroll
      for (int r = 0; r < R; ++r) state[r] *= decay[me.place(r)];
      T u = v_rows[i * lines + me.line];
      if (x.delta) {
        T found = T(0);
#pragma unroll
        for (int r = 0; r < R; ++r) found += state[r] * key[me.place(r)];
        u -= me.sum(found);
        if (me.lane == 0) rest_rows[i * lines + me.line] = u;
        u *= betas[i];
      }
      T out = T(0);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        state[r] += key[me.place(r)] * u;
        out += state[r] * query[me.place(r)];
      }
      out = me.sum(out);
      if (me.lane == 0) out_rows[i * lines + me.line] = out;
    }
    __syncthreads();
    put_lines(out_rows, lines, first, x.d, t, count, x.out.at(b, h, 0), x.out.ld);
    if (x.delta) put_lines(rest_rows, lines, first, x.d, t, count, x.rest.at(b, h, 0), x.rest.ld);
    __syncthreads();
  }
  if (x.end.data == nullptr || column >= x.d) return;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (me.place(r) < x.f) x.end.at(b, h, me.place(r))[column] = state[r];
  }
}

}  // namespace

void DecayScan::cuda(const DecayInputs& x, const Tensor& out, const Tensor& end, const Tensor& rest) {
  visit_float("decay_scan", x.q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForwardCall<T> call(x, out, end, rest);
    Count::add(call.flops());
    visit_lines<T>(call.f, [&]<int L, int R>(std::type_identity<Line<L, R>>) {
      constexpr int wide = L * R, lines = decay_threads / L;
      call.steps = decay_steps(wide);
      cuda::run(forward<T, L, R>,
                {.blocks = dim3(static_cast<unsigned>(call.B * call.H),
                                static_cast<unsigned>(cuda::pieces(call.d, lines))),
                 .threads = dim3(decay_threads),
                 .shared_bytes = call.steps * (3 * wide + 3 * lines + 1) * static_cast<int>(sizeof(T))},
                call);
    });
  });
}

}  // namespace heed::kernel
