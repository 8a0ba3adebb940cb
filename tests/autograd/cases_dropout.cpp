// Op table: dropout fused with activations, additions and norms.
#include <cmath>

#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/tests/autograd/op_case.h"

namespace heed::plain {
namespace {

/// A source whose next draw is that of dropped().
Rng noise_for(const Tensor& x) {
  Rng rng(17, x.device());
  rng.restore(5, 3);
  return rng;
}

/// Dropout of 1/4 of the elements i of x. Their numbers are i, or with `place` place(i / W) W + i % W.
Plain dropped(const Plain& x, const std::function<int64_t(int64_t row)>& place = {}) {
  Plain y(x.shape);
  const int64_t W = place ? x.shape[-1] : 1;
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t number = place ? place(i / W) * W + i % W : i;
    const uint32_t bits = kernel::dropout_bits(17, Draw::high(3, 5), static_cast<uint64_t>(number));
    y[i] = bits >= 16384 ? x[i] / 0.75 : 0;
  }
  return y;
}

/// The places of two sequences in rows of `rows` + 1: the first with one row.
int64_t place_of(int64_t n, int64_t rows) { return n == 0 ? 0 : rows + n; }
PaddedPlaces places_for(const Tensor& x) {
  std::vector<int32_t> places;
  for (int64_t n = 0; n < x.extent(1); ++n) places.push_back(static_cast<int32_t>(place_of(n, x.extent(1))));
  return {.places = Tensor::of<int32_t>(places, Shape{x.extent(1)}, x.device()),
          .padded_rows = 2 * x.extent(1) + 2};
}

Plain sum_of_both(const Plain& x, const Plain& branch) {
  Plain y = x;
  for (int64_t i = 0; i < y.size(); ++i) y[i] += branch[i];
  return y;
}

/// x and its layer norm, one after the other along the first axis.
Plain with_norm(const Plain& x, const Plain& gain, const Plain* bias, double epsilon) {
  Shape shape = x.shape;
  shape[0] *= 2;
  Plain y(shape);
  const int64_t W = gain.size();
  for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i];
  for (int64_t first = 0; first < x.size(); first += W) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < W; ++i) mean += x[first + i] / static_cast<double>(W);
    for (int64_t i = 0; i < W; ++i) squares += (x[first + i] - mean) * (x[first + i] - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(W) + epsilon);
    for (int64_t i = 0; i < W; ++i)
      y[x.size() + first + i] =
          gain[i] * (x[first + i] - mean) / deviation + (bias != nullptr ? (*bias)[i] : 0);
  }
  return y;
}

Tensor joined(const NormalisedSum& both) { return concat({both.sum, both.normalised}, 0); }

OpCase activation_case(const char* op, Tensor (*run)(const Tensor&, double, Rng*, const PaddedPlaces&),
                       double (*function)(double), Kind kind) {
  return {.op = op,
          .shapes = {{{2, 3, 5}}, {{7}}, {{}}, {{1, 1}}, {{0, 3}}, {{3, 33}}},
          .large = {{211, 353}},
          .kinds = {kind},
          .apply =
              [run](Inputs x) {
                Rng rng = noise_for(x[0]);
                return run(x[0], 0.25, &rng, {});
              },
          .reference =
              [function](const Plains& x) {
                Plain y = x[0];
                for (int64_t i = 0; i < y.size(); ++i) y[i] = function(y[i]);
                return dropped(y);
              },
          .looser = 4,
          .looser_gradient = 20};
}

double plain_relu(double x) { return x > 0 ? x : 0; }
double plain_gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double plain_gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979324) * (x + 0.044715 * x * x * x)));
}
double plain_silu(double x) { return x / (1 + std::exp(-x)); }

std::vector<OpCase> activations() {
  std::vector<OpCase> cases{
      activation_case("relu_dropout(x, p, rng, places)", relu_dropout, plain_relu, away_from_zero(0.05)),
      activation_case("gelu_dropout(x, p, rng, places)", gelu_dropout, plain_gelu, {}),
      activation_case("gelu_tanh_dropout(x, p, rng, places)", gelu_tanh_dropout, plain_gelu_tanh, {}),
      activation_case("silu_dropout(x, p, rng, places)", silu_dropout, plain_silu, {})};
  OpCase packed = cases[3];
  packed.note = "packed: the mask of padded rows";
  packed.shapes = {{{1, 5, 3}}, {{1, 1, 1}}, {{1, 2, 32}}, {{1, 0, 4}}};
  packed.large = {{1, 601, 70}};
  packed.apply = [](Inputs x) {
    Rng rng = noise_for(x[0]);
    return silu_dropout(x[0], 0.25, &rng, places_for(x[0]));
  };
  packed.reference = [](const Plains& x) {
    Plain y = x[0];
    for (int64_t i = 0; i < y.size(); ++i) y[i] = plain_silu(y[i]);
    return dropped(y, [&](int64_t n) { return place_of(n, x[0].extent(1)); });
  };
  OpCase none = cases[0];
  none.note = "none";
  none.apply = [](Inputs x) { return relu_dropout(x[0], 0.25, nullptr); };
  none.reference = [](const Plains& x) {
    Plain y = x[0];
    for (int64_t i = 0; i < y.size(); ++i) y[i] = plain_relu(y[i]);
    return y;
  };
  cases.push_back(packed);
  cases.push_back(none);
  return cases;
}

std::vector<OpCase> sums() {
  return {
      {.op = "narrowed_dropout(x, p, rng, places)",
       .shapes = {{{2, 3, 5}}, {{}}, {{0, 3}}, {{3, 33}}},
       .large = {{211, 353}},
       .apply =
           [](Inputs x) {
             Rng rng = noise_for(x[0]);
             return narrowed_dropout(x[0], 0.25, &rng);
           },
       .reference = [](const Plains& x) { return dropped(x[0]); }},
      {.op = "add_dropout(x, branch, p, rng, places)",
       .shapes = {{{2, 3, 5}, {2, 3, 5}}, {{7}, {7}}, {{}, {}}, {{0, 3}, {0, 3}}, {{3, 33}, {3, 33}}},
       .large = {{211, 353}, {211, 353}},
       .apply =
           [](Inputs x) {
             Rng rng = noise_for(x[0]);
             return add_dropout(x[0], x[1], 0.25, &rng);
           },
       .reference = [](const Plains& x) { return sum_of_both(x[0], dropped(x[1])); }},
      {.op = "add_dropout(x, branch, p, rng, places)",
       .note = "packed: the mask of padded rows",
       .shapes = {{{1, 5, 3}, {1, 5, 3}}, {{1, 2, 32}, {1, 2, 32}}, {{1, 0, 4}, {1, 0, 4}}},
       .large = {{1, 601, 70}, {1, 601, 70}},
       .apply =
           [](Inputs x) {
             Rng rng = noise_for(x[0]);
             return add_dropout(x[0], x[1], 0.25, &rng, places_for(x[0]));
           },
       .reference =
           [](const Plains& x) {
             return sum_of_both(x[0], dropped(x[1], [&](int64_t n) { return place_of(n, x[0].extent(1)); }));
           }},
      {.op = "add_dropout(x, branch, p, rng, places)",
       .note = "none",
       .shapes = {{{2, 3}, {2, 3}}},
       .large = {{211, 353}, {211, 353}},
       .apply = [](Inputs x) { return add_dropout(x[0], x[1], 0.25, nullptr); },
       .reference = [](const Plains& x) { return sum_of_both(x[0], x[1]); }},
  };
}

std::vector<OpCase> norms_of_sums() {
  constexpr const char* op = "add_dropout_norm(x, branch, p, rng, places, gain, bias, epsilon, scale)";
  return {
      {.op = op,
       .shapes = {{{2, 3, 5}, {2, 3, 5}, {5}, {5}},
                  {{7}, {7}, {7}, {7}},
                  {{3, 33}, {3, 33}, {33}, {33}},
                  {{0, 3}, {0, 3}, {3}, {3}}},
       .large = {{9, 101, 130}, {9, 101, 130}, {130}, {130}},
       .apply =
           [](Inputs x) {
             Rng rng = noise_for(x[0]);
             return joined(add_dropout_norm(x[0], x[1], 0.25, &rng, {}, x[2], x[3], 1e-3));
           },
       .reference =
           [](const Plains& x) { return with_norm(sum_of_both(x[0], dropped(x[1])), x[2], &x[3], 1e-3); },
       .looser = 4,
       .looser_gradient = 40},
      {.op = op,
       .note = "packed: the mask of padded rows, without bias",
       .shapes = {{{1, 5, 3}, {1, 5, 3}, {3}}, {{1, 2, 32}, {1, 2, 32}, {32}}},
       .large = {{1, 601, 70}, {1, 601, 70}, {70}},
       .apply =
           [](Inputs x) {
             Rng rng = noise_for(x[0]);
             const auto places = places_for(x[0]);
             return joined(add_dropout_norm(x[0], x[1], 0.25, &rng, places, x[2], Tensor(), 1e-3));
           },
       .reference =
           [](const Plains& x) {
             const Plain branch = dropped(x[1], [&](int64_t n) { return place_of(n, x[0].extent(1)); });
             return with_norm(sum_of_both(x[0], branch), x[2], nullptr, 1e-3);
           },
       .looser = 4,
       .looser_gradient = 40},
      {.op = op,
       .note = "without dropout",
       .shapes = {{{3, 6}, {3, 6}, {6}, {6}}},
       .large = {{909, 64}, {909, 64}, {64}, {64}},
       .apply =
           [](Inputs x) { return joined(add_dropout_norm(x[0], x[1], 0.25, nullptr, {}, x[2], x[3], 1e-3)); },
       .reference = [](const Plains& x) { return with_norm(sum_of_both(x[0], x[1]), x[2], &x[3], 1e-3); },
       .looser = 4,
       .looser_gradient = 40},
  };
}

}  // namespace

std::vector<OpCase> dropout_cases() {
  std::vector<OpCase> all = activations();
  for (const auto& more : {sums(), norms_of_sums()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace heed::plain
