// One step of a recurrent network in one pass: the cells of LSTM and GRU.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Tensors of one step of LSTM or GRU. G is 4 for LSTM and 3 for GRU, S is 2 and 1.
struct CellTensors {
  Tensor a, b;     ///< [N, G D]: products of the input and of the state
  Tensor state;    ///< [S, N, D]
  Tensor lengths;  ///< i32 [N] or empty: a sequence whose length is not above the position keeps its state
  Tensor gates;    ///< written: [N, G D], for the gradient
  Tensor next;     ///< written: [S, N, D]
};

/// A step of LSTM. Hochreiter and Schmidhuber 1997; with forget gates, Gers et al. 2000.
///
///   i, f, g, o = a + b,  both [N, 4 D];  c' = sigmoid(f) c + sigmoid(i) tanh(g);  h' = sigmoid(o) tanh(c')
///
/// The state holds h and c.
struct LstmCell {
  template <Isa>
  static void cpu(const CellTensors& t, int64_t position);
  static void cuda(const CellTensors& t, int64_t position);
};

/// Tensors of LstmCellBack.
struct LstmBackTensors {
  Tensor gates, state, next, lengths;  ///< as LstmCell read and wrote them
  Tensor dnext;                        ///< [2, N, D]
  Tensor dgates;                       ///< written: [N, 4 D], the gradient of a and of b alike
  Tensor dstate;                       ///< written: [2, N, D]
};

/// Gradients of LstmCell.
struct LstmCellBack {
  template <Isa>
  static void cpu(const LstmBackTensors& t, int64_t position);
  static void cuda(const LstmBackTensors& t, int64_t position);
};

/// A step of GRU, Cho et al. 2014, in the form whose products with h are one: the reset gate is applied after
/// the product, not before.
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
