// LSTM and GRU layers.
#include "heed/nn/recurrent.h"

#include <algorithm>
#include <cmath>

namespace heed {
namespace {

/// A Linear [gates width, in] with weights uniform within +-1 / sqrt(width), the default of most libraries
/// for recurrent layers.
Linear gate_layer(int64_t gates, int64_t in, int64_t width, Rng& rng) {
  Linear layer;
  layer.weight = uniform_parameter(Shape{gates * width, in}, 1 / std::sqrt(static_cast<double>(width)), rng);
  return layer;
}

}  // namespace

RecurrentCell::RecurrentCell(CellKind kind, int64_t in, int64_t width, Rng& rng)
    : input(gate_layer(kind == CellKind::lstm ? 4 : 3, in, width, rng)),
      inner(gate_layer(kind == CellKind::lstm ? 4 : 3, width, width, rng)),
      kind_(kind),
      width_(width) {
  std::vector<float> bias(static_cast<size_t>(gates() * width), 0.0f);
  // An initially open forget gate passes gradients from the beginning: Jozefowicz et al. 2015.
  if (kind == CellKind::lstm) std::fill_n(bias.begin() + width, width, 1.0f);
  input.bias = leaf(Tensor::of<float>(bias, Shape{gates() * width}));
  if (kind == CellKind::gru) inner.bias = constant_parameter(Shape{gates() * width}, 0);
}

Tensor RecurrentCell::start(int64_t batch, const Tensor& x) const {
  return Tensor::zeros(Shape{parts(), batch, width_}, x.dtype(), x.device());
}

Tensor RecurrentCell::hidden(const Tensor& state) const {
  return reshape(parts() == 1 ? state : slice(state, 0, 0, 1), Shape{state.extent(1), width_});
}

Tensor RecurrentCell::step(const Tensor& from_input, const Tensor& state, const Tensor& lengths,
                           int64_t position) const {
  return advance(from_input, hidden(state), state, lengths, position);
}

Tensor RecurrentCell::advance(const Tensor& from_input, const Tensor& h, const Tensor& state,
                              const Tensor& lengths, int64_t position) const {
  const Tensor from_state = inner(h);
  return kind_ == CellKind::lstm ? lstm_cell(from_input, from_state, state, lengths, position)
                                 : gru_cell(from_input, from_state, state, lengths, position);
}

Tensor RecurrentCell::run(const Tensor& x, Tensor& state, const Tensor& lengths, Direction direction,
                          const Tensor& constant) const {
  const ModuleScope within(this);
  const int64_t steps = x.extent(0), batch = x.extent(1);
  if (steps < 1) fail("recurrent: a sequence without steps, ", x.shape(), ". Give at least one.");
  if (!state) state = start(batch, x);
  const Tensor from_input = input(x);
  const std::vector<Tensor> inputs = unstack(constant ? from_input + constant : from_input);
  std::vector<Tensor> outputs(inputs.size());
  Tensor h = hidden(state);
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = direction == Direction::forward ? i : steps - 1 - i;
    state = advance(inputs[static_cast<size_t>(t)], h, state, lengths, t);
    outputs[static_cast<size_t>(t)] = h = hidden(state);
  }
  return reshape(concat(outputs, 0), Shape{steps, batch, width_});
}

void RecurrentCell::fields(Fields& f) {
  f("input", input);
  f("inner", inner);
}

Recurrent::Recurrent(int64_t in, int64_t width, const RecurrentOptions& options, Rng& rng)
    : dropout_(options.dropout) {
  if (options.layers < 1) fail("recurrent: layers = ", options.layers, ". There must be at least 1.");
  if (width < 1 || (options.bidirectional && width % 2 != 0)) {
    fail("recurrent: a width of ", width, options.bidirectional ? " for two directions" : "",
         options.bidirectional ? ". Each takes half of it: use an even one." : ". It must be at least 1.");
  }
  const int64_t own = options.bidirectional ? width / 2 : width;
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    const int64_t input_width = layer == 0 ? in : width;
    forward.push_back(std::make_unique<RecurrentCell>(options.cell, input_width, own, rng));
    if (options.bidirectional)
      backward.push_back(std::make_unique<RecurrentCell>(options.cell, input_width, own, rng));
  }
}

Tensor dropout_of_steps(const Tensor& x, double p, Rng* rng) {
  if (rng == nullptr || p == 0) return x;
  return transpose(dropout(transpose(x, 0, 1), p, rng), 0, 1);
}

Tensor Recurrent::operator()(const Tensor& x, const Tensor& lengths, Rng* rng) const {
  const ModuleScope within(this);
  Tensor y = transpose(x, 0, 1);  // [T, B, in]: each step is contiguous
  for (size_t layer = 0; layer < forward.size(); ++layer) {
    if (layer > 0) y = dropout_of_steps(y, dropout_, rng);
    Tensor forward_state, backward_state;
    Tensor states = forward[layer]->run(y, forward_state, lengths, Direction::forward);
    if (!backward.empty()) {
      const Tensor reverse = backward[layer]->run(y, backward_state, lengths, Direction::backward);
      states = concat(std::vector<Tensor>{states, reverse}, 2);
    }
    y = states;
  }
  return transpose(y, 0, 1);
}

Tensor Recurrent::last(const Tensor& states) const {
  const int64_t batch = states.extent(0), steps = states.extent(1), width = states.extent(2);
  const Tensor end = slice(states, 1, steps - 1, steps);
  if (backward.empty()) return reshape(end, Shape{batch, width});
  const Tensor both = concat(
      std::vector<Tensor>{slice(end, 2, 0, width / 2), slice(slice(states, 1, 0, 1), 2, width / 2, width)},
      2);
  return reshape(both, Shape{batch, width});
}

void Recurrent::fields(Fields& f) {
  f("forward", forward);
  f("backward", backward);
}

}  // namespace heed
