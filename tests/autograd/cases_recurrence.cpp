// Op table: cells of recurrent networks, and the depthwise convolution.
#include <cmath>

#include "heed/tests/autograd/op_case.h"

namespace heed::plain {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Lengths 0, 1, 2, 3, 0, ...: at position 1 the first two of four sequences have ended.
int32_t length_of(int64_t row) { return static_cast<int32_t>(row % 4); }

Tensor lengths_for(const Tensor& state) {
  std::vector<int32_t> lengths;
  for (int64_t row = 0; row < state.extent(1); ++row) lengths.push_back(length_of(row));
  return Tensor::of<int32_t>(lengths, Shape{state.extent(1)}, state.device());
}

/// x = {a, b, state}: h and c after a step, one after the other.
Plain lstm(const Plains& x, bool padded) {
  const Plain &a = x[0], &b = x[1], &state = x[2];
  const int64_t N = state.extent(1), D = state.extent(2);
  Plain y(state.shape);
  for (int64_t n = 0; n < N; ++n) {
    for (int64_t d = 0; d < D; ++d) {
      const int64_t h = n * D + d, c = (N + n) * D + d;
      const auto gate = [&](int64_t which) {
        const int64_t at = n * 4 * D + which * D + d;
        return a[at] + b[at];
      };
      const bool ended = padded && length_of(n) <= 1;
      y[c] = ended ? state[c] : sigmoid(gate(1)) * state[c] + sigmoid(gate(0)) * std::tanh(gate(2));
      y[h] = ended ? state[h] : sigmoid(gate(3)) * std::tanh(y[c]);
    }
  }
  return y;
}

Plain gru(const Plains& x, bool padded) {
  const Plain &a = x[0], &b = x[1], &state = x[2];
  const int64_t N = state.extent(1), D = state.extent(2);
  Plain y(state.shape);
  for (int64_t n = 0; n < N; ++n) {
    for (int64_t d = 0; d < D; ++d) {
      const int64_t h = n * D + d, r = n * 3 * D + d, z = r + D, fresh = z + D;
      const double reset = sigmoid(a[r] + b[r]), keep = sigmoid(a[z] + b[z]);
      const double made = std::tanh(a[fresh] + reset * b[fresh]);
      y[h] = padded && length_of(n) <= 1 ? state[h] : (1 - keep) * made + keep * state[h];
    }
  }
  return y;
}

std::vector<Shapes> shapes_of(int64_t gates, int64_t parts) {
  const auto call = [&](int64_t n, int64_t d) {
    return Shapes{{n, gates * d}, {n, gates * d}, {parts, n, d}};
  };
  return {call(3, 5), call(1, 1), call(5, 1), call(2, 17), call(0, 3)};
}

/// x = {sequences [B, T, C], taps [C, k]}.
Plain convolved(const Plains& x, bool causal) {
  const int64_t T = x[0].extent(1), C = x[0].extent(2), k = x[1].extent(1);
  const int64_t before = causal ? k - 1 : (k - 1) / 2;
  Plain y(x[0].shape);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t c = i % C, t = i / C % T;
    for (int64_t j = 0; j < k; ++j) {
      const int64_t place = t + j - before;
      if (place >= 0 && place < T) y[i] += x[1][c * k + j] * x[0][i + (place - t) * C];
    }
  }
  return y;
}

}  // namespace

std::vector<OpCase> recurrence_cases() {
  const char* lstm_name = "lstm_cell(from_input, from_state, state, lengths, position)";
  const std::vector<Shapes> convolution_shapes = {{{2, 5, 3}, {3, 4}}, {{1, 2, 3}, {3, 3}},
                                                  {{2, 3, 1}, {1, 1}}, {{1, 1, 2}, {2, 16}},
                                                  {{0, 4, 3}, {3, 2}}, {{2, 0, 3}, {3, 4}}};
  const char* gru_name = "gru_cell(from_input, from_state, state, lengths, position)";
  return {{.op = lstm_name,
           .shapes = shapes_of(4, 2),
           .large = {{300, 4 * 67}, {300, 4 * 67}, {2, 300, 67}},
           .apply = [](Inputs x) { return lstm_cell(x[0], x[1], x[2]); },
           .reference = [](const Plains& x) { return lstm(x, false); }},
          {.op = lstm_name,
           .note = "some sequences have ended",
           .shapes = shapes_of(4, 2),
           .large = {{300, 4 * 67}, {300, 4 * 67}, {2, 300, 67}},
           .apply = [](Inputs x) { return lstm_cell(x[0], x[1], x[2], lengths_for(x[2]), 1); },
           .reference = [](const Plains& x) { return lstm(x, true); }},
          {.op = gru_name,
           .shapes = shapes_of(3, 1),
           .large = {{300, 3 * 67}, {300, 3 * 67}, {1, 300, 67}},
           .apply = [](Inputs x) { return gru_cell(x[0], x[1], x[2]); },
           .reference = [](const Plains& x) { return gru(x, false); }},
          {.op = gru_name,
           .note = "some sequences have ended",
           .shapes = shapes_of(3, 1),
           .large = {{300, 3 * 67}, {300, 3 * 67}, {1, 300, 67}},
           .apply = [](Inputs x) { return gru_cell(x[0], x[1], x[2], lengths_for(x[2]), 1); },
           .reference = [](const Plains& x) { return gru(x, true); }},
          {.op = "depthwise_convolution(x, weight, causal)",
           .note = "causal",
           .shapes = convolution_shapes,
           .large = {{5, 403, 70}, {70, 4}},
           .apply = [](Inputs x) { return depthwise_convolution(x[0], x[1], true); },
           .reference = [](const Plains& x) { return convolved(x, true); },
           .looser_gradient = 10},
          {.op = "depthwise_convolution(x, weight, causal)",
           .note = "around each position",
           .shapes = convolution_shapes,
           .large = {{5, 403, 70}, {70, 5}},
           .apply = [](Inputs x) { return depthwise_convolution(x[0], x[1], false); },
           .reference = [](const Plains& x) { return convolved(x, false); },
           .looser_gradient = 10}};
}

}  // namespace heed::plain
