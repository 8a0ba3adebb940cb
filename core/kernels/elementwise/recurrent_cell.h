// One step of a recurrent network in one pass: the cells of LSTM and GRU.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Number of gates of a unit, G: i, f, g and o of LSTM; r, z and n of GRU.
inline constexpr int lstm_gates = 4, gru_gates = 3;

/// Tensors of one step of LSTM (state [2, N, D]: h and c) or GRU (state [1, N, D]: h).
struct CellTensors {
  Tensor a, b;     ///< [N, G D]: matrix products of the input and of the state with their weights
  Tensor state;    ///< before the step
  Tensor lengths;  ///< i32 [N] or empty: a sequence whose length is not above the position keeps its state
  Tensor gates;    ///< written: [N, G D], for the gradient
  Tensor next;     ///< written: the state after the step
};

/// A step of LSTM. Hochreiter and Schmidhuber 1997; with forget gates, Gers et al. 2000.
///
///   i, f, g, o = a + b,  both [N, 4 D];  c' = sigmoid(f) c + sigmoid(i) tanh(g);  h' = sigmoid(o) tanh(c')
struct LstmCell {
  template <Isa>
  static void cpu(const CellTensors& t, int64_t position);
  static void cuda(const CellTensors& t, int64_t position);
};

/// Tensors of LstmCellBack.
struct LstmBackTensors {
  Tensor gates, state, next, lengths;  ///< as LstmCell read and wrote them
  Tensor dnext;                        ///< [2, N, D]
  Tensor dgates;                       ///< written: [N, 4 D], the gradient of a, and of b as well
  Tensor dstate;                       ///< written: [2, N, D]
};

/// Gradients of LstmCell.
struct LstmCellBack {
  template <Isa>
  static void cpu(const LstmBackTensors& t, int64_t position);
  static void cuda(const LstmBackTensors& t, int64_t position);
};

/// A step of GRU, Cho et al. 2014, in the form with one matrix product with h: the reset gate is applied
/// after the product, not before.
///
///   r, z = sigmoid(a + b) of the first 2 D;  n = tanh(a + r b) of the last D;  h' = (1 - z) n + z h
///
/// `gates` keeps r, z and n.
struct GruCell {
  template <Isa>
  static void cpu(const CellTensors& t, int64_t position);
  static void cuda(const CellTensors& t, int64_t position);
};

/// Tensors of GruCellBack.
struct GruBackTensors {
  Tensor gates, b, state, lengths;  ///< as GruCell read and wrote them
  Tensor dnext;                     ///< [1, N, D]
  Tensor da, db;                    ///< written: [N, 3 D]
  Tensor dstate;                    ///< written: [1, N, D]
};

/// Gradients of GruCell.
struct GruCellBack {
  template <Isa>
  static void cpu(const GruBackTensors& t, int64_t position);
  static void cuda(const GruBackTensors& t, int64_t position);
};

}  // namespace heed::kernel
