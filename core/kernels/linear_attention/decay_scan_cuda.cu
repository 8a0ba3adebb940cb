// Sums with decay and the delta rule on a device, forward: each line is a column of the state.
#include "heed/core/kernels/linear_attention/decay_scan.h"

#include "heed/core/kernels/linear_attention/decay_device.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Arguments of forward().
template <class T>
struct ForwardCall : DecayCall<T> {
  HeadView<T> out, end, residual;
  int steps = 1;  ///< positions that are loaded at once
  ForwardCall(const DecayInputs& x, const Tensor& outs, const Tensor& end_state, const Tensor& residuals)
      : DecayCall<T>(x), out(outs), end(end_state), residual(residuals) {}
};

/// S = a_t S + k_t u_t^T and out_t = S^T q_t, position after position, for some columns of the state of a
/// head. A block has one column for every L lanes, which keep its f numbers in registers, R each.
template <class T, int L, int R>
__global__ void __launch_bounds__(decay_threads) forward(ForwardCall<T> x) {
  const Line<L, R> line;
  constexpr int row_width = line.length, lines = line.lines;
  const ColumnSweep<T, L, R> sweep(x, x.steps, x.v);
  const int64_t b = sweep.b, h = sweep.h, first = sweep.first, column = first + line.number;
  T state[R];
  load_columns(line, x.start, b, h, x.f, column, x.d, state);
  for (int64_t t = 0; t < x.length; t += x.steps) {
    const int count = static_cast<int>(min(int64_t{x.steps}, x.length - t));
    sweep.load(t, count);
    for (int i = 0; i < count; ++i) {
      const T *key = sweep.k_rows + i * row_width, *query = sweep.q_rows + i * row_width,
              *decay = sweep.decays + i * row_width;
      const int place = i * lines + line.number;
#pragma unroll
      for (int r = 0; r < R; ++r) state[r] *= decay[line.index(r)];
      T u = sweep.input_lines[place];
      // u = beta_t (v_t - S^T k_t) of this column.
      if (x.delta) {
        T stored = T(0);
#pragma unroll
        for (int r = 0; r < R; ++r) stored += state[r] * key[line.index(r)];
        u -= line.sum(stored);
        if (line.lane == 0) sweep.residual[place] = u;
        u *= sweep.betas[i];
      }
      T out = T(0);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        state[r] += key[line.index(r)] * u;
        out += state[r] * query[line.index(r)];
      }
      out = line.sum(out);
      if (line.lane == 0) sweep.result[place] = out;
    }
    __syncthreads();
    store_lines(sweep.result, lines, first, x.d, t, count, x.out.at(b, h, 0), x.out.ld);
    if (x.delta)
      store_lines(sweep.residual, lines, first, x.d, t, count, x.residual.at(b, h, 0), x.residual.ld);
    __syncthreads();
  }
  store_columns(line, state, x.f, column, x.d, x.end, b, h);
}

}  // namespace

/// Starts `forward` with the smallest lines that hold f numbers: for each head one block for every
/// decay_threads / L columns of its state.
void DecayScan::cuda(const DecayInputs& x, const Tensor& out, const Tensor& end, const Tensor& residual) {
  visit_float("decay_scan", x.q.dtype(), [&]<class T>(Type<T>) {
    ForwardCall<T> call(x, out, end, residual);
    Count::add(call.flops());
    visit_lines<T>(call.f, [&]<int L, int R>(std::type_identity<Line<L, R>>) {
      call.steps = decay_steps(L * R);
      cuda::run(
          forward<T, L, R>,
          decay_grid(call.B * call.H, call.d, decay_threads / L, ColumnSweep<T, L, R>::bytes(call.steps)),
          call);
    });
  });
}

}  // namespace heed::kernel
