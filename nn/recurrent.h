// Recurrent layers: LSTM and GRU, several of them, in one or both directions.
#pragma once

#include <vector>

#include "nn/linear.h"

namespace heed {

/// LSTM: Hochreiter and Schmidhuber 1997, with forget gates. GRU: Cho et al. 2014, arXiv 1406.1078; the reset
/// gate is applied after the product with the state.
enum class CellKind { lstm, gru };

/// Which end of a sequence comes first.
enum class Direction { forward, backward };

/// One step of one layer. Its state is [parts, B, width]: h and c of an LSTM, h of a GRU.
class RecurrentCell final : public Module {
 public:
  RecurrentCell(CellKind kind, int64_t in, int64_t width, Rng& rng);

  /// All zeros, for a batch of this many sequences, in the dtype and on the device of `x`.
  Tensor start(int64_t batch, const Tensor& x) const;
  /// h of a state, [B, width].
  Tensor hidden(const Tensor& state) const;
  /// The state after a step. from_input [B, gates width] is what input(x) gives, and anything added to it. A
  /// sequence whose length (i32 [B], or empty) is not above `position` keeps its state.
  Tensor step(const Tensor& from_input, const Tensor& state, const Tensor& lengths = {},
              int64_t position = 0) const;
  /// A whole sequence, x [T, B, in] -> h of each step [T, B, width]. `state` is where it begins (empty:
  /// zeros) and afterwards where it has ended. Backward it starts at each sequence's own end.
  Tensor sweep(const Tensor& x, Tensor& state, const Tensor& lengths, Direction direction) const;
  void fields(Fields& f) override;

  int64_t parts() const { return kind_ == CellKind::lstm ? 2 : 1; }
  int64_t gates() const { return kind_ == CellKind::lstm ? 4 : 3; }
  int64_t width() const { return width_; }

  Linear input;  ///< [gates width, in]: i, f, g, o of an LSTM, r, z, n of a GRU
  Linear inner;  ///< [gates width, width], from the state; a GRU's has a bias

 private:
  Tensor advance(const Tensor& from_input, const Tensor& h, const Tensor& state, const Tensor& lengths,
                 int64_t position) const;
  CellKind kind_;
  int64_t width_;
};

/// What a stack of recurrent layers is made with.
struct RecurrentOptions {
  CellKind cell = CellKind::lstm;
  int64_t layers = 1;
  bool bidirectional = false;  ///< half of the width looks back, half ahead
  double dropout = 0;          ///< between layers
};

/// Dropout of steps x [T, B, width] by the order of sequences, so that processes that share a batch draw for
/// their rows what one draws for all (core/share.h).
Tensor dropout_of_steps(const Tensor& x, double p, Rng* noise);

/// Layers over whole sequences, x [B, T, in] -> [B, T, width].
class Recurrent final : public Module {
 public:
  /// Fails on no layers, and on an odd width that two directions would share.
  Recurrent(int64_t in, int64_t width, const RecurrentOptions& options, Rng& rng);
  /// Past the end of a sequence the states that look back repeat the last one; those that look ahead are 0.
  Tensor operator()(const Tensor& x, const Tensor& lengths, Rng* noise) const;
  /// What the directions end with: [B, width], made of what operator() gave.
  Tensor last(const Tensor& states) const;
  void fields(Fields& f) override;

  std::vector<std::unique_ptr<RecurrentCell>> forward, backward;  ///< one a layer; no backward ones: one way

 private:
  double dropout_;
};

}  // namespace heed
