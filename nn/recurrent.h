// Recurrent layers: stacks of LSTMs or GRUs, in one or both directions.
#pragma once

#include <vector>

#include "heed/nn/linear.h"

namespace heed {

/// LSTM: Hochreiter and Schmidhuber 1997, with forget gates. GRU: Cho et al. 2014, arXiv 1406.1078; the reset
/// gate is applied after the product with the state.
enum class CellKind { lstm, gru };

/// The order in which a recurrent layer reads a sequence.
enum class Direction { forward, backward };

/// One recurrent layer. Its state is [parts, B, width]: h and c of an LSTM, h of a GRU.
class RecurrentCell final : public Module {
 public:
  /// [gates width, in] and [gates width, width], drawn from `rng`.
  RecurrentCell(CellKind kind, int64_t in, int64_t width, Rng& rng);

  /// The zero state for a batch of this many sequences, in the dtype and on the device of `x`.
  Tensor start(int64_t batch, const Tensor& x) const;
  /// The hidden state h [B, width] of a state.
  Tensor hidden(const Tensor& state) const;
  /// The state after one step. from_input [B, gates width]: input(x), plus whatever else feeds the gates. A
  /// sequence whose length (i32 [B], or empty) is at most `position` keeps its state.
  Tensor step(const Tensor& from_input, const Tensor& state, const Tensor& lengths = {},
              int64_t position = 0) const;
  /// All steps of a sequence: x [T, B, in] -> h of each step [T, B, width]. `state` is the initial state
  /// (empty: zeros) and becomes the final one. Backward starts at the end of each sequence. `constant`
  /// [B, gates width], or empty, is added to what enters the gates at every step.
  Tensor run(const Tensor& x, Tensor& state, const Tensor& lengths, Direction direction,
             const Tensor& constant = {}) const;
  void fields(Fields& f) override;

  /// Tensors of a state: 2 of an LSTM, 1 of a GRU.
  int64_t parts() const { return kind_ == CellKind::lstm ? 2 : 1; }
  /// Gates of a step: 4 of an LSTM, 3 of a GRU.
  int64_t gates() const { return kind_ == CellKind::lstm ? 4 : 3; }
  int64_t width() const { return width_; }  ///< width of h

  Linear input;  ///< [gates width, in]: i, f, g, o of an LSTM, r, z, n of a GRU
  Linear inner;  ///< [gates width, width], applied to h; a GRU's has a bias

 private:
  Tensor advance(const Tensor& from_input, const Tensor& h, const Tensor& state, const Tensor& lengths,
                 int64_t position) const;
  CellKind kind_;
  int64_t width_;
};

/// Options of a stack of recurrent layers.
struct RecurrentOptions {
  CellKind cell = CellKind::lstm;  ///< kind of cell in every layer
  int64_t layers = 1;              ///< one above the other, at least 1
  bool bidirectional = false;      ///< half of the width reads forward, half backward
  double dropout = 0;              ///< between layers
};

/// Dropout of steps x [T, B, width], drawn sequence by sequence: processes that share a batch then draw the
/// same numbers as one process with the whole batch (core/distributed/batch_shard.h).
Tensor dropout_of_steps(const Tensor& x, double p, Rng* rng);

/// A stack of recurrent layers over whole sequences: x [B, T, in] -> [B, T, width].
class Recurrent final : public Module {
 public:
  /// Fails when there are no layers, and on an odd width with two directions.
  Recurrent(int64_t in, int64_t width, const RecurrentOptions& options, Rng& rng);
  /// Beyond the end of a sequence, forward states repeat the last one and backward states are 0.
  Tensor operator()(const Tensor& x, const Tensor& lengths, Rng* rng) const;
  /// The final states of both directions, [B, width], from the result of operator() [B, T, width].
  Tensor last(const Tensor& states) const;
  void fields(Fields& f) override;

  std::vector<std::unique_ptr<RecurrentCell>> forward;   ///< one per layer
  std::vector<std::unique_ptr<RecurrentCell>> backward;  ///< one per layer; empty with one direction

 private:
  double dropout_;
};

}  // namespace heed
