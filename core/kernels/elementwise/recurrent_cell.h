// One step of a recurrent network in one pass: the cells of LSTM and GRU.
#pragma once

#include "core/isa.h"
#include "core/tensor.h"

namespace heed::kernel {

/// A step of LSTM. Hochreiter and Schmidhuber 1997; with forget gates, Gers et al. 2000.
///
///   i, f, g, o = a + b,  both [N, 4 D];  c' = sigmoid(f) c + sigmoid(i) tanh(g);  h' = sigmoid(o) tanh(c')
///
/// state and next [2, N, D] hold h and c. Where `lengths` (i32 [N], or empty) is not above `position`, a
/// sequence has ended and keeps its state. `gates` [N, 4 D] keeps the gates for the gradient.
struct LstmCell {
  template <Isa>
  static void cpu(const Tensor& a, const Tensor& b, const Tensor& state, const Tensor& lengths,
                  int64_t position, const Tensor& gates, const Tensor& next);
  static void cuda(const Tensor& a, const Tensor& b, const Tensor& state, const Tensor& lengths,
                   int64_t position, const Tensor& gates, const Tensor& next);
};

/// From dnext [2, N, D]: `slope` [N, 4 D], the gradient of a and of b, and dstate [2, N, D].
struct LstmCellBack {
  template <Isa>
  static void cpu(const Tensor& gates, const Tensor& state, const Tensor& next, const Tensor& lengths,
                  int64_t position, const Tensor& dnext, const Tensor& slope, const Tensor& dstate);
  static void cuda(const Tensor& gates, const Tensor& state, const Tensor& next, const Tensor& lengths,
                   int64_t position, const Tensor& dnext, const Tensor& slope, const Tensor& dstate);
};

/// A step of GRU, Cho et al. 2014, in the form whose products with h are one: the reset gate is applied after
/// the product, not before.
///
///   r, z = sigmoid(a + b) of the first 2 D;  n = tanh(a + r b) of the last D;  h' = (1 - z) n + z h
///
/// a and b [N, 3 D], state and next [1, N, D], lengths as in LstmCell. `gates` [N, 3 D] keeps r, z and n.
struct GruCell {
  template <Isa>
  static void cpu(const Tensor& a, const Tensor& b, const Tensor& state, const Tensor& lengths,
                  int64_t position, const Tensor& gates, const Tensor& next);
  static void cuda(const Tensor& a, const Tensor& b, const Tensor& state, const Tensor& lengths,
                   int64_t position, const Tensor& gates, const Tensor& next);
};

/// From dnext [1, N, D]: da and db [N, 3 D], dstate [1, N, D].
struct GruCellBack {
  template <Isa>
  static void cpu(const Tensor& gates, const Tensor& b, const Tensor& state, const Tensor& lengths,
                  int64_t position, const Tensor& dnext, const Tensor& da, const Tensor& db,
                  const Tensor& dstate);
  static void cuda(const Tensor& gates, const Tensor& b, const Tensor& state, const Tensor& lengths,
                   int64_t position, const Tensor& dnext, const Tensor& da, const Tensor& db,
                   const Tensor& dstate);
};

}  // namespace heed::kernel
