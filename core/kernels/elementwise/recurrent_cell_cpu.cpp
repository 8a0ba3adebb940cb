// The cells of LSTM and GRU on the CPU.
#include "heed/core/kernels/elementwise/recurrent_cell.h"

#include <algorithm>

#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Calls live(row) or ended(row) for every sequence, in pieces that depend on the shape only.
template <class Live, class Ended>
void each_row(int64_t rows, int64_t width, const Tensor& lengths, int64_t position, const Live& on_running,
              const Ended& on_ended) {
  const int32_t* length = lengths ? lengths.data<int32_t>() : nullptr;
  parallel_rows(rows, light_grain / 8 / std::max<int64_t>(width, 1), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (length != nullptr && length[row] <= position)
        on_ended(row);
      else
        on_running(row);
    }
  });
}

}  // namespace

/// in, forget, out = sigmoid and candidate = tanh of a + b; c' = forget c + in candidate, h' = out tanh(c').
/// `gates` [N, 4 D] keeps the four. One task is some sequences; an ended one keeps its state.
template <>
void LstmCell::cpu<here>(const CellTensors& t, int64_t position) {
  const int64_t rows = t.state.extent(1), width = t.state.extent(2);
  visit_float("lstm_cell", t.state.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T *pa = t.a.data<T>(), *pb = t.b.data<T>(), *old_state = t.state.data<T>();
    T *gate_rows = t.gates.data<T>(), *new_state = t.next.data<T>();
    const int64_t size = rows * width;
    each_row(
        rows, width, t.lengths, position,
        [&](int64_t row) {
          const T *x = pa + row * 4 * width, *y = pb + row * 4 * width, *c = old_state + size + row * width;
          T *gate = gate_rows + row * 4 * width, *to_h = new_state + row * width,
            *to_c = new_state + size + row * width;
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) {
            const T in = math::sigmoid(x[i] + y[i]), forget = math::sigmoid(x[width + i] + y[width + i]);
            const T candidate = math::tanh(x[2 * width + i] + y[2 * width + i]);
            const T out = math::sigmoid(x[3 * width + i] + y[3 * width + i]);
            const T cell = forget * c[i] + in * candidate;
            gate[i] = in;
            gate[width + i] = forget;
            gate[2 * width + i] = candidate;
            gate[3 * width + i] = out;
            to_c[i] = cell;
            to_h[i] = out * math::tanh(cell);
          }
        },
        [&](int64_t row) {
          std::fill_n(gate_rows + row * 4 * width, 4 * width, T(0));
          std::copy_n(old_state + row * width, width, new_state + row * width);
          std::copy_n(old_state + size + row * width, width, new_state + size + row * width);
        });
  });
  Count::add(4 * t.state.size());
}

/// dgates [N, 4 D], the gradient of a + b, and dstate: zero for h, which enters through b, and dcell forget
/// for c. One task is some sequences; an ended one hands dnext on as dstate.
template <>
void LstmCellBack::cpu<here>(const LstmBackTensors& t, int64_t position) {
  const int64_t rows = t.state.extent(1), width = t.state.extent(2);
  visit_float("lstm_cell", t.state.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T *gate_rows = t.gates.data<T>(), *old_state = t.state.data<T>(), *new_state = t.next.data<T>();
    const T* dnext_rows = t.dnext.data<T>();
    T *dgate_rows = t.dgates.data<T>(), *dstate_rows = t.dstate.data<T>();
    const int64_t size = rows * width;
    each_row(
        rows, width, t.lengths, position,
        [&](int64_t row) {
          const T *gate = gate_rows + row * 4 * width, *c = old_state + size + row * width,
                  *cell = new_state + size + row * width;
          const T *dh = dnext_rows + row * width, *dc = dnext_rows + size + row * width;
          T *dgate = dgate_rows + row * 4 * width, *dbefore = dstate_rows + size + row * width;
          std::fill_n(dstate_rows + row * width, width, T(0));  // h comes in through b
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) {
            const T in = gate[i], forget = gate[width + i], candidate = gate[2 * width + i],
                    open = gate[3 * width + i];
            const T tanh_cell = math::tanh(cell[i]);
            const T dcell = dc[i] + dh[i] * open * (1 - tanh_cell * tanh_cell);
            dgate[i] = dcell * candidate * in * (1 - in);
            dgate[width + i] = dcell * c[i] * forget * (1 - forget);
            dgate[2 * width + i] = dcell * in * (1 - candidate * candidate);
            dgate[3 * width + i] = dh[i] * tanh_cell * open * (1 - open);
            dbefore[i] = dcell * forget;
          }
        },
        [&](int64_t row) {
          std::fill_n(dgate_rows + row * 4 * width, 4 * width, T(0));
          std::copy_n(dnext_rows + row * width, width, dstate_rows + row * width);
          std::copy_n(dnext_rows + size + row * width, width, dstate_rows + size + row * width);
        });
  });
  Count::add(4 * t.state.size());
}

/// reset, keep = sigmoid(a + b), candidate = tanh(a + reset b), h' = candidate + keep (h - candidate).
/// `gates` [N, 3 D] keeps the three. One task is some sequences; an ended one keeps its state.
template <>
void GruCell::cpu<here>(const CellTensors& t, int64_t position) {
  const int64_t rows = t.state.extent(1), width = t.state.extent(2);
  visit_float("gru_cell", t.state.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T *pa = t.a.data<T>(), *pb = t.b.data<T>(), *old_state = t.state.data<T>();
    T *gate_rows = t.gates.data<T>(), *new_state = t.next.data<T>();
    each_row(
        rows, width, t.lengths, position,
        [&](int64_t row) {
          const T *x = pa + row * 3 * width, *y = pb + row * 3 * width, *h = old_state + row * width;
          T *gate = gate_rows + row * 3 * width, *out = new_state + row * width;
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) {
            const T reset = math::sigmoid(x[i] + y[i]), keep = math::sigmoid(x[width + i] + y[width + i]);
            const T candidate = math::tanh(x[2 * width + i] + reset * y[2 * width + i]);
            gate[i] = reset;
            gate[width + i] = keep;
            gate[2 * width + i] = candidate;
            out[i] = candidate + keep * (h[i] - candidate);
          }
        },
        [&](int64_t row) {
          std::fill_n(gate_rows + row * 3 * width, 3 * width, T(0));
          std::copy_n(old_state + row * width, width, new_state + row * width);
        });
  });
  Count::add(6 * t.state.size());
}

/// da and db [N, 3 D], which differ in the candidate's part only, where db has the factor reset; dstate = dh'
/// keep. One task is some sequences; an ended one hands dnext on as dstate.
template <>
void GruCellBack::cpu<here>(const GruBackTensors& t, int64_t position) {
  const int64_t rows = t.state.extent(1), width = t.state.extent(2);
  visit_float("gru_cell", t.state.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T *gate_rows = t.gates.data<T>(), *pb = t.b.data<T>(), *old_state = t.state.data<T>(),
            *dnext_rows = t.dnext.data<T>();
    T *to_a = t.da.data<T>(), *to_b = t.db.data<T>(), *dstate_rows = t.dstate.data<T>();
    each_row(
        rows, width, t.lengths, position,
        [&](int64_t row) {
          const T *gate = gate_rows + row * 3 * width, *y = pb + row * 3 * width,
                  *h = old_state + row * width;
          const T* dh = dnext_rows + row * width;
          T *da_row = to_a + row * 3 * width, *db_row = to_b + row * 3 * width,
            *dbefore = dstate_rows + row * width;
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) {
            const T reset = gate[i], keep = gate[width + i], candidate = gate[2 * width + i];
            const T dcandidate = dh[i] * (1 - keep) * (1 - candidate * candidate);
            const T dreset = dcandidate * y[2 * width + i] * reset * (1 - reset);
            const T dkeep = dh[i] * (h[i] - candidate) * keep * (1 - keep);
            da_row[i] = db_row[i] = dreset;
            da_row[width + i] = db_row[width + i] = dkeep;
            da_row[2 * width + i] = dcandidate;
            db_row[2 * width + i] = dcandidate * reset;
            dbefore[i] = dh[i] * keep;
          }
        },
        [&](int64_t row) {
          std::fill_n(to_a + row * 3 * width, 3 * width, T(0));
          std::fill_n(to_b + row * 3 * width, 3 * width, T(0));
          std::copy_n(dnext_rows + row * width, width, dstate_rows + row * width);
        });
  });
  Count::add(6 * t.state.size());
}

}  // namespace heed::kernel
