// The cells of LSTM and GRU on a GPU: one thread for each unit of each sequence.
#include "heed/core/kernels/elementwise/recurrent_cell.h"

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/elementwise/recurrent_units.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// The units of all sequences, numbered row by row.
struct Units {
  int64_t width;     ///< units of a sequence
  int64_t size;      ///< units of all sequences; c follows h in the state after as many numbers
  int64_t position;  ///< position of the step
  const int32_t* lengths;

  Units(const Tensor& state, const Tensor& sequence_lengths, int64_t step_position)
      : width(state.extent(2)),
        size(state.extent(1) * state.extent(2)),
        position(step_position),
        lengths(cuda::pointer<int32_t>(sequence_lengths)) {}
  __device__ bool has_ended(int64_t unit) const {
    return lengths != nullptr && lengths[unit / width] <= position;
  }
  /// Index of gate 0 of the unit in an array [N, num_gates, width].
  __device__ int64_t gate_index(int64_t unit, int num_gates) const {
    return unit / width * num_gates * width + unit % width;
  }
  cuda::Grid grid() const { return cuda::block_per_row(ceil_div(size, cuda::block)); }
};

/// Sets all gates of one unit to 0.
template <class T>
__device__ void clear_gates(T* gates, int count, int64_t width) {
  for (int g = 0; g < count; ++g) gates[g * width] = T(0);
}

/// lstm_unit() by one thread per unit; an ended sequence keeps h and c, and its gates are 0.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    lstm(Units units, const T* a, const T* b, const T* state, T* gates, T* next) {
  const int64_t unit = cuda::global_thread(), gate = units.gate_index(unit, lstm_gates),
                c = units.size + unit;  // index of c of the unit in the state
  if (unit >= units.size) return;
  if (units.has_ended(unit)) {
    clear_gates(gates + gate, lstm_gates, units.width);
    next[unit] = state[unit];
    next[c] = state[c];
    return;
  }
  lstm_unit(a + gate, b + gate, units.width, state[c], gates + gate, next[unit], next[c]);
}

/// lstm_unit_back() by one thread per unit, with dstate = 0 for h: its gradient passes through b. An ended
/// sequence passes dnext on as dstate.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    lstm_back(Units units, const T* gates, const T* state, const T* next, const T* dnext, T* dgates,
              T* dstate) {
  const int64_t unit = cuda::global_thread(), gate = units.gate_index(unit, lstm_gates),
                c = units.size + unit;  // index of c of the unit in the state
  if (unit >= units.size) return;
  if (units.has_ended(unit)) {
    clear_gates(dgates + gate, lstm_gates, units.width);
    dstate[unit] = dnext[unit];
    dstate[c] = dnext[c];
    return;
  }
  dstate[unit] = T(0);
  lstm_unit_back(gates + gate, units.width, state[c], next[c], dnext[unit], dnext[c], dgates + gate,
                 dstate[c]);
}

/// gru_unit() by one thread per unit; an ended sequence keeps h, and its gates are 0.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    gru(Units units, const T* a, const T* b, const T* state, T* gates, T* next) {
  const int64_t unit = cuda::global_thread(), gate = units.gate_index(unit, gru_gates);
  if (unit >= units.size) return;
  if (units.has_ended(unit)) {
    clear_gates(gates + gate, gru_gates, units.width);
    next[unit] = state[unit];
    return;
  }
  gru_unit(a + gate, b + gate, units.width, state[unit], gates + gate, next[unit]);
}

/// gru_unit_back() by one thread per unit; an ended sequence passes dnext on as dstate.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    gru_back(Units units, const T* gates, const T* b, const T* state, const T* dnext, T* da, T* db,
             T* dstate) {
  const int64_t unit = cuda::global_thread(), gate = units.gate_index(unit, gru_gates);
  if (unit >= units.size) return;
  if (units.has_ended(unit)) {
    clear_gates(da + gate, gru_gates, units.width);
    clear_gates(db + gate, gru_gates, units.width);
    dstate[unit] = dnext[unit];
    return;
  }
  gru_unit_back(gates + gate, b + gate, units.width, state[unit], dnext[unit], da + gate, db + gate,
                dstate[unit]);
}

}  // namespace

/// Computes next and gates with one thread per unit.
void LstmCell::cuda(const CellTensors& t, int64_t position) {
  const Units units(t.state, t.lengths, position);
  visit_float("lstm_cell", t.state.dtype(), [&]<class T>(Type<T>) {
    cuda::run(lstm<T>, units.grid(), units, t.a.data<T>(), t.b.data<T>(), t.state.data<T>(),
              t.gates.data<T>(), t.next.data<T>());
  });
  Count::add(4 * t.state.size());
}

/// Computes dgates and dstate with one thread per unit.
void LstmCellBack::cuda(const LstmBackTensors& t, int64_t position) {
  const Units units(t.state, t.lengths, position);
  visit_float("lstm_cell", t.state.dtype(), [&]<class T>(Type<T>) {
    cuda::run(lstm_back<T>, units.grid(), units, t.gates.data<T>(), t.state.data<T>(), t.next.data<T>(),
              t.dnext.data<T>(), t.dgates.data<T>(), t.dstate.data<T>());
  });
  Count::add(4 * t.state.size());
}

/// Computes next and gates with one thread per unit.
void GruCell::cuda(const CellTensors& t, int64_t position) {
  const Units units(t.state, t.lengths, position);
  visit_float("gru_cell", t.state.dtype(), [&]<class T>(Type<T>) {
    cuda::run(gru<T>, units.grid(), units, t.a.data<T>(), t.b.data<T>(), t.state.data<T>(), t.gates.data<T>(),
              t.next.data<T>());
  });
  Count::add(6 * t.state.size());
}

/// Computes da, db and dstate with one thread per unit.
void GruCellBack::cuda(const GruBackTensors& t, int64_t position) {
  const Units units(t.state, t.lengths, position);
  visit_float("gru_cell", t.state.dtype(), [&]<class T>(Type<T>) {
    cuda::run(gru_back<T>, units.grid(), units, t.gates.data<T>(), t.b.data<T>(), t.state.data<T>(),
              t.dnext.data<T>(), t.da.data<T>(), t.db.data<T>(), t.dstate.data<T>());
  });
  Count::add(6 * t.state.size());
}

}  // namespace heed::kernel
