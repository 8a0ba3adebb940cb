// The cells of LSTM and GRU on the CPU.
#include "core/kernels/here.h"
#include "core/kernels/recurrence.h"

#include <algorithm>

#include "core/count.h"
#include "core/kernels/math.h"
#include "core/parallel.h"

namespace heed::kernel {
namespace {

/// Calls live(row) or ended(row) for every sequence, in pieces that depend on the shape only.
template <class Live, class Ended>
void each_row(int64_t rows, int64_t width, const Tensor& lengths, int64_t position, const Live& live,
              const Ended& ended) {
  const int32_t* length = lengths ? lengths.data<int32_t>() : nullptr;
  parallel_rows(rows, light_grain / 8 / std::max<int64_t>(width, 1), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (length != nullptr && length[row] <= position)
        ended(row);
      else
        live(row);
    }
  });
}

}  // namespace

template <>
void LstmCell::cpu<here>(const Tensor& a, const Tensor& b, const Tensor& state, const Tensor& lengths,
                         int64_t position, const Tensor& gates, const Tensor& next) {
  const int64_t rows = state.extent(1), width = state.extent(2);
  visit_float("lstm_cell", state.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T *pa = a.data<T>(), *pb = b.data<T>(), *before = state.data<T>();
    T *kept = gates.data<T>(), *after = next.data<T>();
    const int64_t size = rows * width;
    each_row(
        rows, width, lengths, position,
        [&](int64_t row) {
          const T *x = pa + row * 4 * width, *y = pb + row * 4 * width, *c = before + size + row * width;
          T *gate = kept + row * 4 * width, *to_h = after + row * width, *to_c = after + size + row * width;
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) {
            const T in = math::sigmoid(x[i] + y[i]), forget = math::sigmoid(x[width + i] + y[width + i]);
            const T fresh = math::tanh(x[2 * width + i] + y[2 * width + i]);
            const T out = math::sigmoid(x[3 * width + i] + y[3 * width + i]);
            const T cell = forget * c[i] + in * fresh;
            gate[i] = in;
            gate[width + i] = forget;
            gate[2 * width + i] = fresh;
            gate[3 * width + i] = out;
            to_c[i] = cell;
            to_h[i] = out * math::tanh(cell);
          }
        },
        [&](int64_t row) {
          std::fill_n(kept + row * 4 * width, 4 * width, T(0));
          std::copy_n(before + row * width, width, after + row * width);
          std::copy_n(before + size + row * width, width, after + size + row * width);
        });
  });
  Count::add(4 * state.size());
}

template <>
void LstmCellBack::cpu<here>(const Tensor& gates, const Tensor& state, const Tensor& next,
                             const Tensor& lengths, int64_t position, const Tensor& dnext,
                             const Tensor& slope, const Tensor& dstate) {
  const int64_t rows = state.extent(1), width = state.extent(2);
  visit_float("lstm_cell", state.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T *kept = gates.data<T>(), *before = state.data<T>(), *after = next.data<T>();
    const T* up = dnext.data<T>();
    T *to = slope.data<T>(), *down = dstate.data<T>();
    const int64_t size = rows * width;
    each_row(
        rows, width, lengths, position,
        [&](int64_t row) {
          const T *gate = kept + row * 4 * width, *c = before + size + row * width,
                  *cell = after + size + row * width;
          const T *dh = up + row * width, *dc = up + size + row * width;
          T *out = to + row * 4 * width, *dbefore = down + size + row * width;
          std::fill_n(down + row * width, width, T(0));  // h comes in through b
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) {
            const T in = gate[i], forget = gate[width + i], fresh = gate[2 * width + i],
                    open = gate[3 * width + i];
            const T bent = math::tanh(cell[i]);
            const T slope_c = dc[i] + dh[i] * open * (1 - bent * bent);
            out[i] = slope_c * fresh * in * (1 - in);
            out[width + i] = slope_c * c[i] * forget * (1 - forget);
            out[2 * width + i] = slope_c * in * (1 - fresh * fresh);
            out[3 * width + i] = dh[i] * bent * open * (1 - open);
            dbefore[i] = slope_c * forget;
          }
        },
        [&](int64_t row) {
          std::fill_n(to + row * 4 * width, 4 * width, T(0));
          std::copy_n(up + row * width, width, down + row * width);
          std::copy_n(up + size + row * width, width, down + size + row * width);
        });
  });
  Count::add(4 * state.size());
}

template <>
void GruCell::cpu<here>(const Tensor& a, const Tensor& b, const Tensor& state, const Tensor& lengths,
                        int64_t position, const Tensor& gates, const Tensor& next) {
  const int64_t rows = state.extent(1), width = state.extent(2);
  visit_float("gru_cell", state.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T *pa = a.data<T>(), *pb = b.data<T>(), *before = state.data<T>();
    T *kept = gates.data<T>(), *after = next.data<T>();
    each_row(
        rows, width, lengths, position,
        [&](int64_t row) {
          const T *x = pa + row * 3 * width, *y = pb + row * 3 * width, *h = before + row * width;
          T *gate = kept + row * 3 * width, *to = after + row * width;
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) {
            const T reset = math::sigmoid(x[i] + y[i]), keep = math::sigmoid(x[width + i] + y[width + i]);
            const T fresh = math::tanh(x[2 * width + i] + reset * y[2 * width + i]);
            gate[i] = reset;
            gate[width + i] = keep;
            gate[2 * width + i] = fresh;
            to[i] = fresh + keep * (h[i] - fresh);
          }
        },
        [&](int64_t row) {
          std::fill_n(kept + row * 3 * width, 3 * width, T(0));
          std::copy_n(before + row * width, width, after + row * width);
        });
  });
  Count::add(6 * state.size());
}

template <>
void GruCellBack::cpu<here>(const Tensor& gates, const Tensor& b, const Tensor& state, const Tensor& lengths,
                            int64_t position, const Tensor& dnext, const Tensor& da, const Tensor& db,
                            const Tensor& dstate) {
  const int64_t rows = state.extent(1), width = state.extent(2);
  visit_float("gru_cell", state.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T *kept = gates.data<T>(), *pb = b.data<T>(), *before = state.data<T>(), *up = dnext.data<T>();
    T *to_a = da.data<T>(), *to_b = db.data<T>(), *down = dstate.data<T>();
    each_row(
        rows, width, lengths, position,
        [&](int64_t row) {
          const T *gate = kept + row * 3 * width, *y = pb + row * 3 * width, *h = before + row * width;
          const T* dh = up + row * width;
          T *x_slope = to_a + row * 3 * width, *y_slope = to_b + row * 3 * width,
            *dbefore = down + row * width;
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) {
            const T reset = gate[i], keep = gate[width + i], fresh = gate[2 * width + i];
            const T dfresh = dh[i] * (1 - keep) * (1 - fresh * fresh);
            const T dreset = dfresh * y[2 * width + i] * reset * (1 - reset);
            const T dkeep = dh[i] * (h[i] - fresh) * keep * (1 - keep);
            x_slope[i] = y_slope[i] = dreset;
            x_slope[width + i] = y_slope[width + i] = dkeep;
            x_slope[2 * width + i] = dfresh;
            y_slope[2 * width + i] = dfresh * reset;
            dbefore[i] = dh[i] * keep;
          }
        },
        [&](int64_t row) {
          std::fill_n(to_a + row * 3 * width, 3 * width, T(0));
          std::fill_n(to_b + row * 3 * width, 3 * width, T(0));
          std::copy_n(up + row * width, width, down + row * width);
        });
  });
  Count::add(6 * state.size());
}

}  // namespace heed::kernel
