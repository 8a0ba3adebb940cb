// The cells of LSTM and GRU on the CPU: one task is some sequences, whose units become vector lanes.
#include "heed/core/kernels/elementwise/recurrent_cell.h"

#include <algorithm>

#include "heed/core/kernels/elementwise/recurrent_units.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Calls on_ended(row) for every sequence whose length is not above the position, else on_running(row). One
/// task is some sequences.
template <class Running, class Ended>
void each_sequence(const Tensor& state, const Tensor& lengths, int64_t position, const Running& on_running,
                   const Ended& on_ended) {
  constexpr int64_t flops_per_unit = 8;
  const int64_t rows = state.extent(1), width = state.extent(2);
  const int32_t* length = lengths ? lengths.data<int32_t>() : nullptr;
  parallel_rows(rows, light_grain / flops_per_unit / std::max<int64_t>(width, 1),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    if (length != nullptr && length[row] <= position)
                      on_ended(row);
                    else
                      on_running(row);
                  }
                });
}

}  // namespace

/// lstm_unit() for every unit; an ended sequence keeps h and c, and its gates are 0.
template <>
void LstmCell::cpu<target_isa>(const CellTensors& t, int64_t position) {
  const int64_t width = t.state.extent(2), c_offset = t.state.extent(1) * width;  // h and c follow each other
  visit_float("lstm_cell", t.state.dtype(), [&]<class T>(Type<T>) {
    const T *a = t.a.data<T>(), *b = t.b.data<T>(), *state = t.state.data<T>();
    T *gates = t.gates.data<T>(), *next = t.next.data<T>();
    each_sequence(
        t.state, t.lengths, position,
        [&](int64_t row) {
          const T *a_row = a + row * lstm_gates * width, *b_row = b + row * lstm_gates * width,
                  *c = state + c_offset + row * width;
          T *gate = gates + row * lstm_gates * width, *next_h = next + row * width,
            *next_c = next_h + c_offset;
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i)
            lstm_unit(a_row + i, b_row + i, width, c[i], gate + i, next_h[i], next_c[i]);
        },
        [&](int64_t row) {
          std::fill_n(gates + row * lstm_gates * width, lstm_gates * width, T(0));
          std::copy_n(state + row * width, width, next + row * width);
          std::copy_n(state + c_offset + row * width, width, next + c_offset + row * width);
        });
  });
  Count::add(4 * t.state.size());
}

/// lstm_unit_back() for every unit, with dstate = 0 for h: its gradient passes through b. An ended sequence
/// passes dnext on as dstate.
template <>
void LstmCellBack::cpu<target_isa>(const LstmBackTensors& t, int64_t position) {
  const int64_t width = t.state.extent(2), c_offset = t.state.extent(1) * width;  // h and c follow each other
  visit_float("lstm_cell", t.state.dtype(), [&]<class T>(Type<T>) {
    const T *gates = t.gates.data<T>(), *state = t.state.data<T>(), *next = t.next.data<T>(),
            *dnext = t.dnext.data<T>();
    T *dgates = t.dgates.data<T>(), *dstate = t.dstate.data<T>();
    each_sequence(
        t.state, t.lengths, position,
        [&](int64_t row) {
          const T *gate = gates + row * lstm_gates * width, *c = state + c_offset + row * width,
                  *next_c = next + c_offset + row * width;
          const T *dnext_h = dnext + row * width, *dnext_c = dnext_h + c_offset;
          T *dgate = dgates + row * lstm_gates * width, *dc = dstate + c_offset + row * width;
          std::fill_n(dstate + row * width, width, T(0));
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i)
            lstm_unit_back(gate + i, width, c[i], next_c[i], dnext_h[i], dnext_c[i], dgate + i, dc[i]);
        },
        [&](int64_t row) {
          std::fill_n(dgates + row * lstm_gates * width, lstm_gates * width, T(0));
          std::copy_n(dnext + row * width, width, dstate + row * width);
          std::copy_n(dnext + c_offset + row * width, width, dstate + c_offset + row * width);
        });
  });
  Count::add(4 * t.state.size());
}

/// gru_unit() for every unit; an ended sequence keeps h, and its gates are 0.
template <>
void GruCell::cpu<target_isa>(const CellTensors& t, int64_t position) {
  const int64_t width = t.state.extent(2);
  visit_float("gru_cell", t.state.dtype(), [&]<class T>(Type<T>) {
    const T *a = t.a.data<T>(), *b = t.b.data<T>(), *state = t.state.data<T>();
    T *gates = t.gates.data<T>(), *next = t.next.data<T>();
    each_sequence(
        t.state, t.lengths, position,
        [&](int64_t row) {
          const T *a_row = a + row * gru_gates * width, *b_row = b + row * gru_gates * width,
                  *h = state + row * width;
          T *gate = gates + row * gru_gates * width, *next_h = next + row * width;
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i)
            gru_unit(a_row + i, b_row + i, width, h[i], gate + i, next_h[i]);
        },
        [&](int64_t row) {
          std::fill_n(gates + row * gru_gates * width, gru_gates * width, T(0));
          std::copy_n(state + row * width, width, next + row * width);
        });
  });
  Count::add(6 * t.state.size());
}

/// gru_unit_back() for every unit; an ended sequence passes dnext on as dstate.
template <>
void GruCellBack::cpu<target_isa>(const GruBackTensors& t, int64_t position) {
  const int64_t width = t.state.extent(2);
  visit_float("gru_cell", t.state.dtype(), [&]<class T>(Type<T>) {
    const T *gates = t.gates.data<T>(), *b = t.b.data<T>(), *state = t.state.data<T>(),
            *dnext = t.dnext.data<T>();
    T *da = t.da.data<T>(), *db = t.db.data<T>(), *dstate = t.dstate.data<T>();
    each_sequence(
        t.state, t.lengths, position,
        [&](int64_t row) {
          const T *gate = gates + row * gru_gates * width, *b_row = b + row * gru_gates * width,
                  *h = state + row * width, *dnext_h = dnext + row * width;
          T *da_row = da + row * gru_gates * width, *db_row = db + row * gru_gates * width,
            *dh = dstate + row * width;
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i)
            gru_unit_back(gate + i, b_row + i, width, h[i], dnext_h[i], da_row + i, db_row + i, dh[i]);
        },
        [&](int64_t row) {
          std::fill_n(da + row * gru_gates * width, gru_gates * width, T(0));
          std::fill_n(db + row * gru_gates * width, gru_gates * width, T(0));
          std::copy_n(dnext + row * width, width, dstate + row * width);
        });
  });
  Count::add(6 * t.state.size());
}

}  // namespace heed::kernel
