// The cells of LSTM and GRU for one unit of one sequence, for the CPU and the device. `a`, `b` and `gates`
// point to the unit in gate 0; each following gate is `width` numbers further. All functions are always
// inlined, so that the compiler fuses multiplications and additions alike everywhere.
#pragma once

#include "heed/core/host_device.h"
#include "heed/core/kernels/simd/math.h"

namespace heed::kernel {

/// in, forget, out = sigmoid and candidate = tanh of a + b; c' = forget c + in candidate, h' = out tanh(c').
/// gates = in, forget, candidate, out.
template <class T>
[[gnu::always_inline]] HEED_BOTH inline void lstm_unit(const T* a, const T* b, int64_t width, const T& c,
                                                       T* gates, T& next_h, T& next_c) {
  const T in = math::sigmoid(a[0] + b[0]), forget = math::sigmoid(a[width] + b[width]);
  const T candidate = math::tanh(a[2 * width] + b[2 * width]);
  const T out = math::sigmoid(a[3 * width] + b[3 * width]);
  const T cell = forget * c + in * candidate;
  gates[0] = in;
  gates[width] = forget;
  gates[2 * width] = candidate;
  gates[3 * width] = out;
  next_c = cell;
  next_h = out * math::tanh(cell);
}

/// Writes dgates, the gradient of a + b, and dc = forget times the gradient of c', from the gradients of h'
/// and c'. h gets its gradient through b.
template <class T>
[[gnu::always_inline]] HEED_BOTH inline void lstm_unit_back(const T* gates, int64_t width, const T& c,
                                                            const T& next_c, const T& dnext_h,
                                                            const T& dnext_c, T* dgates, T& dc) {
  const T in = gates[0], forget = gates[width], candidate = gates[2 * width], out = gates[3 * width];
  const T tanh_cell = math::tanh(next_c);
  const T dcell = dnext_c + dnext_h * out * (1 - tanh_cell * tanh_cell);
  dgates[0] = dcell * candidate * in * (1 - in);
  dgates[width] = dcell * c * forget * (1 - forget);
  dgates[2 * width] = dcell * in * (1 - candidate * candidate);
  dgates[3 * width] = dnext_h * tanh_cell * out * (1 - out);
  dc = dcell * forget;
}

/// reset, update = sigmoid(a + b), candidate = tanh(a + reset b), h' = candidate + update (h - candidate).
/// gates = reset, update, candidate.
template <class T>
[[gnu::always_inline]] HEED_BOTH inline void gru_unit(const T* a, const T* b, int64_t width, const T& h,
                                                      T* gates, T& next_h) {
  const T reset = math::sigmoid(a[0] + b[0]), update = math::sigmoid(a[width] + b[width]);
  const T candidate = math::tanh(a[2 * width] + reset * b[2 * width]);
  gates[0] = reset;
  gates[width] = update;
  gates[2 * width] = candidate;
  next_h = candidate + update * (h - candidate);
}

/// Writes da and db, which differ in the candidate alone, where db has the factor reset, and dh = dh' update,
/// the part of the gradient of h that does not pass through b.
template <class T>
[[gnu::always_inline]] HEED_BOTH inline void gru_unit_back(const T* gates, const T* b, int64_t width,
                                                           const T& h, const T& dnext_h, T* da, T* db,
                                                           T& dh) {
  const T reset = gates[0], update = gates[width], candidate = gates[2 * width];
  const T dcandidate = dnext_h * (1 - update) * (1 - candidate * candidate);
  const T dreset = dcandidate * b[2 * width] * reset * (1 - reset);
  const T dupdate = dnext_h * (h - candidate) * update * (1 - update);
  da[0] = db[0] = dreset;
  da[width] = db[width] = dupdate;
  da[2 * width] = dcandidate;
  db[2 * width] = dcandidate * reset;
  dh = dnext_h * update;
}

}  // namespace heed::kernel
