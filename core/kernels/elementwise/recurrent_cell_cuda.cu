// The cells of LSTM and GRU on a GPU: a thread for each unit of each sequence.
#include "core/kernels/recurrence.h"

#include "core/count.h"
#include "core/cuda/head_rows.h"
#include "core/cuda/team.h"
#include "core/kernels/math.h"

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

template <class T>
__global__ void __launch_bounds__(cuda::block)
    lstm(Units units, const T* a, const T* b, const T* state, T* gates, T* next) {
  const int64_t at = cuda::here(), width = units.width, size = units.rows * width;
  if (at >= size) return;
  const int64_t row = at / width, i = row * 4 * width + at % width;
  if (units.ended(row)) {
    for (int g = 0; g < 4; ++g) gates[i + g * width] = T(0);
    next[at] = state[at];
    next[size + at] = state[size + at];
    return;
  }
  const T in = math::sigmoid(a[i] + b[i]), forget = math::sigmoid(a[i + width] + b[i + width]);
  const T fresh = math::tanh(a[i + 2 * width] + b[i + 2 * width]);
  const T out = math::sigmoid(a[i + 3 * width] + b[i + 3 * width]);
  const T cell = forget * state[size + at] + in * fresh;
  gates[i] = in;
  gates[i + width] = forget;
  gates[i + 2 * width] = fresh;
  gates[i + 3 * width] = out;
  next[size + at] = cell;
  next[at] = out * math::tanh(cell);
}

template <class T>
__global__ void __launch_bounds__(cuda::block) lstm_back(Units units, const T* gates, const T* state,
                                                         const T* next, const T* dnext, T* slope, T* dstate) {
  const int64_t at = cuda::here(), width = units.width, size = units.rows * width;
  if (at >= size) return;
  const int64_t row = at / width, i = row * 4 * width + at % width;
  const T dh = dnext[at], dc = dnext[size + at];
  if (units.ended(row)) {
    for (int g = 0; g < 4; ++g) slope[i + g * width] = T(0);
    dstate[at] = dh;
    dstate[size + at] = dc;
    return;
  }
  const T in = gates[i], forget = gates[i + width], fresh = gates[i + 2 * width], open = gates[i + 3 * width];
  const T bent = math::tanh(next[size + at]);
  const T slope_c = dc + dh * open * (1 - bent * bent);
  slope[i] = slope_c * fresh * in * (1 - in);
  slope[i + width] = slope_c * state[size + at] * forget * (1 - forget);
  slope[i + 2 * width] = slope_c * in * (1 - fresh * fresh);
  slope[i + 3 * width] = dh * bent * open * (1 - open);
  dstate[at] = T(0);  // h comes in through b
  dstate[size + at] = slope_c * forget;
}

template <class T>
__global__ void __launch_bounds__(cuda::block)
    gru(Units units, const T* a, const T* b, const T* state, T* gates, T* next) {
  const int64_t at = cuda::here(), width = units.width;
  if (at >= units.rows * width) return;
  const int64_t row = at / width, i = row * 3 * width + at % width;
  if (units.ended(row)) {
    for (int g = 0; g < 3; ++g) gates[i + g * width] = T(0);
    next[at] = state[at];
    return;
  }
  const T reset = math::sigmoid(a[i] + b[i]), keep = math::sigmoid(a[i + width] + b[i + width]);
  const T fresh = math::tanh(a[i + 2 * width] + reset * b[i + 2 * width]);
  gates[i] = reset;
  gates[i + width] = keep;
  gates[i + 2 * width] = fresh;
  next[at] = fresh + keep * (state[at] - fresh);
}

template <class T>
__global__ void __launch_bounds__(cuda::block)
    gru_back(Units units, const T* gates, const T* b, const T* state, const T* dnext, T* da, T* db,
             T* dstate) {
  const int64_t at = cuda::here(), width = units.width;
  if (at >= units.rows * width) return;
  const int64_t row = at / width, i = row * 3 * width + at % width;
  const T dh = dnext[at];
  if (units.ended(row)) {
    for (int g = 0; g < 3; ++g) da[i + g * width] = db[i + g * width] = T(0);
    dstate[at] = dh;
    return;
  }
  const T reset = gates[i], keep = gates[i + width], fresh = gates[i + 2 * width];
  const T dfresh = dh * (1 - keep) * (1 - fresh * fresh);
  const T dreset = dfresh * b[i + 2 * width] * reset * (1 - reset);
  const T dkeep = dh * (state[at] - fresh) * keep * (1 - keep);
  da[i] = db[i] = dreset;
  da[i + width] = db[i + width] = dkeep;
  da[i + 2 * width] = dfresh;
  db[i + 2 * width] = dfresh * reset;
  dstate[at] = dh * keep;
}

cuda::Grid grid_of(const Units& units) { return cuda::blocks(cuda::pieces(units.size(), cuda::block)); }

}  // namespace

void LstmCell::cuda(const Tensor& a, const Tensor& b, const Tensor& state, const Tensor& lengths,
                    int64_t position, const Tensor& gates, const Tensor& next) {
  const Units units(state, lengths, position);
  visit_float("lstm_cell", state.dtype(), [&]<class T>(Type<T>) {
    cuda::run(lstm<T>, grid_of(units), units, a.data<T>(), b.data<T>(), state.data<T>(), gates.data<T>(),
              next.data<T>());
  });
  Count::add(4 * state.size());
}

void LstmCellBack::cuda(const Tensor& gates, const Tensor& state, const Tensor& next, const Tensor& lengths,
                        int64_t position, const Tensor& dnext, const Tensor& slope, const Tensor& dstate) {
  const Units units(state, lengths, position);
  visit_float("lstm_cell", state.dtype(), [&]<class T>(Type<T>) {
    cuda::run(lstm_back<T>, grid_of(units), units, gates.data<T>(), state.data<T>(), next.data<T>(),
              dnext.data<T>(), slope.data<T>(), dstate.data<T>());
  });
  Count::add(4 * state.size());
}

void GruCell::cuda(const Tensor& a, const Tensor& b, const Tensor& state, const Tensor& lengths,
                   int64_t position, const Tensor& gates, const Tensor& next) {
  const Units units(state, lengths, position);
  visit_float("gru_cell", state.dtype(), [&]<class T>(Type<T>) {
    cuda::run(gru<T>, grid_of(units), units, a.data<T>(), b.data<T>(), state.data<T>(), gates.data<T>(),
              next.data<T>());
  });
  Count::add(6 * state.size());
}

void GruCellBack::cuda(const Tensor& gates, const Tensor& b, const Tensor& state, const Tensor& lengths,
                       int64_t position, const Tensor& dnext, const Tensor& da, const Tensor& db,
                       const Tensor& dstate) {
  const Units units(state, lengths, position);
  visit_float("gru_cell", state.dtype(), [&]<class T>(Type<T>) {
    cuda::run(gru_back<T>, grid_of(units), units, gates.data<T>(), b.data<T>(), state.data<T>(),
              dnext.data<T>(), da.data<T>(), db.data<T>(), dstate.data<T>());
  });
  Count::add(6 * state.size());
}

}  // namespace heed::kernel
