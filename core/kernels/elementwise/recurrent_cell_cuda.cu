// The cells of LSTM and GRU on a GPU: a thread for each unit of each sequence.
#include "heed/core/kernels/elementwise/recurrent_cell.h"

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/simd/math.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// The unit that a thread works on.
struct Units {
  int64_t rows, width, position;
  const int32_t* lengths;

  Units(const Tensor& state, const Tensor& ends, int64_t at)
      : rows(state.extent(1)), width(state.extent(2)), position(at), lengths(cuda::pointer<int32_t>(ends)) {}
  int64_t size() const { return rows * width; }
  __device__ bool ended(int64_t row) const { return lengths != nullptr && lengths[row] <= position; }
};

/// in, forget, out = sigmoid and candidate = tanh of a + b; c' = forget c + in candidate, h' = out tanh(c').
/// One thread per unit of a sequence; an ended one keeps its state.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    lstm(Units units, const T* a, const T* b, const T* state, T* gates, T* next) {
  const int64_t at = cuda::global_thread(), width = units.width, size = units.rows * width;
  if (at >= size) return;
  const int64_t row = at / width, i = row * 4 * width + at % width;
  if (units.ended(row)) {
    for (int g = 0; g < 4; ++g) gates[i + g * width] = T(0);
    next[at] = state[at];
    next[size + at] = state[size + at];
    return;
  }
  const T in = math::sigmoid(a[i] + b[i]), forget = math::sigmoid(a[i + width] + b[i + width]);
  const T candidate = math::tanh(a[i + 2 * width] + b[i + 2 * width]);
  const T out = math::sigmoid(a[i + 3 * width] + b[i + 3 * width]);
  const T cell = forget * state[size + at] + in * candidate;
  gates[i] = in;
  gates[i + width] = forget;
  gates[i + 2 * width] = candidate;
  gates[i + 3 * width] = out;
  next[size + at] = cell;
  next[at] = out * math::tanh(cell);
}

/// dgates [N, 4 D], the gradient of a + b, and dstate: zero for h, which enters through b, and dcell forget
/// for c. One thread per unit of a sequence; an ended one hands dnext on as dstate.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    lstm_back(Units units, const T* gates, const T* state, const T* next, const T* dnext, T* dgates,
              T* dstate) {
  const int64_t at = cuda::global_thread(), width = units.width, size = units.rows * width;
  if (at >= size) return;
  const int64_t row = at / width, i = row * 4 * width + at % width;
  const T dh = dnext[at], dc = dnext[size + at];
  if (units.ended(row)) {
    for (int g = 0; g < 4; ++g) dgates[i + g * width] = T(0);
    dstate[at] = dh;
    dstate[size + at] = dc;
    return;
  }
  const T in = gates[i], forget = gates[i + width], candidate = gates[i + 2 * width],
          open = gates[i + 3 * width];
  const T tanh_cell = math::tanh(next[size + at]);
  const T dcell = dc + dh * open * (1 - tanh_cell * tanh_cell);
  dgates[i] = dcell * candidate * in * (1 - in);
  dgates[i + width] = dcell * state[size + at] * forget * (1 - forget);
  dgates[i + 2 * width] = dcell * in * (1 - candidate * candidate);
  dgates[i + 3 * width] = dh * tanh_cell * open * (1 - open);
  dstate[at] = T(0);  // h comes in through b
  dstate[size + at] = dcell * forget;
}

/// reset, keep = sigmoid(a + b), candidate = tanh(a + reset b), h' = candidate + keep (h - candidate). One
/// thread per unit of a sequence; an ended one keeps its state.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    gru(Units units, const T* a, const T* b, const T* state, T* gates, T* next) {
  const int64_t at = cuda::global_thread(), width = units.width;
  if (at >= units.rows * width) return;
  const int64_t row = at / width, i = row * 3 * width + at % width;
  if (units.ended(row)) {
    for (int g = 0; g < 3; ++g) gates[i + g * width] = T(0);
    next[at] = state[at];
    return;
  }
  const T reset = math::sigmoid(a[i] + b[i]), keep = math::sigmoid(a[i + width] + b[i + width]);
  const T candidate = math::tanh(a[i + 2 * width] + reset * b[i + 2 * width]);
  gates[i] = reset;
  gates[i + width] = keep;
  gates[i + 2 * width] = candidate;
  next[at] = candidate + keep * (state[at] - candidate);
}

/// da and db [N, 3 D], which differ in the candidate's part only, where db has the factor reset; dstate = dh'
/// keep. One thread per unit of a sequence; an ended one hands dnext on as dstate.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    gru_back(Units units, const T* gates, const T* b, const T* state, const T* dnext, T* da, T* db,
             T* dstate) {
  const int64_t at = cuda::global_thread(), width = units.width;
  if (at >= units.rows * width) return;
  const int64_t row = at / width, i = row * 3 * width + at % width;
  const T dh = dnext[at];
  if (units.ended(row)) {
    for (int g = 0; g < 3; ++g) da[i + g * width] = db[i + g * width] = T(0);
    dstate[at] = dh;
    return;
  }
  const T reset = gates[i], keep = gates[i + width], candidate = gates[i + 2 * width];
  const T dcandidate = dh * (1 - keep) * (1 - candidate * candidate);
  const T dreset = dcandidate * b[i + 2 * width] * reset * (1 - reset);
  const T dkeep = dh * (state[at] - candidate) * keep * (1 - keep);
  da[i] = db[i] = dreset;
  da[i + width] = db[i + width] = dkeep;
  da[i + 2 * width] = dcandidate;
  db[i + 2 * width] = dcandidate * reset;
  dstate[at] = dh * keep;
}

cuda::Grid grid_of(const Units& units) { return cuda::blocks(ceil_div(units.size(), cuda::block)); }

}  // namespace

void LstmCell::cuda(const CellTensors& t, int64_t position) {
  const Units units(t.state, t.lengths, position);
  visit_float("lstm_cell", t.state.dtype(), [&]<class T>(Type<T>) {
    cuda::run(lstm<T>, grid_of(units), units, t.a.data<T>(), t.b.data<T>(), t.state.data<T>(),
              t.gates.data<T>(), t.next.data<T>());
  });
  Count::add(4 * t.state.size());
}

void LstmCellBack::cuda(const LstmBackTensors& t, int64_t position) {
  const Units units(t.state, t.lengths, position);
  visit_float("lstm_cell", t.state.dtype(), [&]<class T>(Type<T>) {
    cuda::run(lstm_back<T>, grid_of(units), units, t.gates.data<T>(), t.state.data<T>(), t.next.data<T>(),
              t.dnext.data<T>(), t.dgates.data<T>(), t.dstate.data<T>());
  });
  Count::add(4 * t.state.size());
}

void GruCell::cuda(const CellTensors& t, int64_t position) {
  const Units units(t.state, t.lengths, position);
  visit_float("gru_cell", t.state.dtype(), [&]<class T>(Type<T>) {
    cuda::run(gru<T>, grid_of(units), units, t.a.data<T>(), t.b.data<T>(), t.state.data<T>(),
              t.gates.data<T>(), t.next.data<T>());
  });
  Count::add(6 * t.state.size());
}

void GruCellBack::cuda(const GruBackTensors& t, int64_t position) {
  const Units units(t.state, t.lengths, position);
  visit_float("gru_cell", t.state.dtype(), [&]<class T>(Type<T>) {
    cuda::run(gru_back<T>, grid_of(units), units, t.gates.data<T>(), t.b.data<T>(), t.state.data<T>(),
              t.dnext.data<T>(), t.da.data<T>(), t.db.data<T>(), t.dstate.data<T>());
  });
  Count::add(6 * t.state.size());
}

}  // namespace heed::kernel
