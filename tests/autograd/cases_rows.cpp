// Op table: ops on rows of the last axis, losses, tables, dropout.
#include <cmath>

#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/tests/autograd/op_case.h"

namespace heed::plain {
namespace {

Plain soft(const Plain& x) {
  Plain y(x.shape);
  for (int64_t row = 0; row < rows(x); ++row) {
    const int64_t at = row * width(x);
    double maximum = -HUGE_VAL, total = 0;
    for (int64_t i = 0; i < width(x); ++i) maximum = std::max(maximum, x[at + i]);
    for (int64_t i = 0; i < width(x); ++i) total += y[at + i] = std::exp(x[at + i] - maximum);
    for (int64_t i = 0; i < width(x); ++i) y[at + i] /= total;
  }
  return y;
}

Plain normed(const Plains& x, double epsilon, kernel::NormScale scale) {
  Plain y(x[0].shape);
  const int64_t d = width(x[0]);
  for (int64_t row = 0; row < rows(x[0]); ++row) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < d; ++i) mean += x[0][row * d + i] / static_cast<double>(d);
    if (scale == kernel::NormScale::rms) mean = 0;
    for (int64_t i = 0; i < d; ++i) squares += std::pow(x[0][row * d + i] - mean, 2);
    const double deviation = scale != kernel::NormScale::deviation
                                 ? std::sqrt(squares / static_cast<double>(d) + epsilon)
                                 : std::sqrt(squares / static_cast<double>(d - 1)) + epsilon;
    for (int64_t i = 0; i < d; ++i) {
      y[row * d + i] = x[1][i] * (x[0][row * d + i] - mean) / deviation + (x.size() > 2 ? x[2][i] : 0);
    }
  }
  return y;
}

Plain entropy(const Plains& x, double smoothing, int64_t ignore) {
  const Plain chances = soft(x[0]);
  const int64_t classes = width(x[0]);
  double total = 0, counted = 0;
  for (int64_t row = 0; row < rows(x[0]); ++row) {
    const auto target = static_cast<int64_t>(x[1][row]);
    if (target == ignore) continue;
    ++counted;
    for (int64_t i = 0; i < classes; ++i) {
      const double wanted = (i == target ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
      total -= wanted * std::log(chances[row * classes + i]);
    }
  }
  return Plain(Shape{}, counted > 0 ? total / counted : 0);
}

/// Logits of x [..., in] by weight [V, in] and bias [V], if there is one; then the targets: what entropy()
/// takes.
Plains with_logits(const Plains& x, bool has_bias) {
  const int64_t in = width(x[0]), classes = x[1].extent(0);
  Shape shape = x[0].shape;
  shape[-1] = classes;
  Plain logits(shape);
  for (int64_t i = 0; i < logits.size(); ++i) {
    const int64_t row = i / classes, c = i % classes;
    if (has_bias) logits[i] = x[2][c];
    for (int64_t j = 0; j < in; ++j) logits[i] += x[0][row * in + j] * x[1][c * in + j];
  }
  return {logits, x.back()};
}

/// Where row i of head h goes or comes from, among `length`; every fifth goes nowhere.
int32_t id_of(int64_t h, int64_t i, int64_t length) {
  const int64_t mixed = i * 7 + h * 3 + i / 4;
  return mixed % 5 == 4 ? -1 : static_cast<int32_t>(mixed % length);
}

/// [1, H, n]: all batch rows share them.
Tensor ids_for(const Tensor& x, int64_t count, int64_t length) {
  std::vector<int32_t> ids;
  for (int64_t h = 0; h < x.extent(1); ++h) {
    for (int64_t i = 0; i < count; ++i) ids.push_back(id_of(h, i, length));
  }
  return Tensor::of<int32_t>(ids, Shape{1, x.extent(1), count}, x.device());
}

/// Calls f(element of the rows, element of the places) for all pairs that ids join.
template <class F>
void each_pair(const Shape& rows, int64_t length, F&& f) {
  for (int64_t i = 0; i < rows.size(); ++i) {
    const auto at = indices(rows, i);
    const int32_t id = id_of(at[1], at[2], length);
    if (id >= 0) f(i, ((at[0] * rows[1] + at[1]) * length + id) * rows[3] + at[3]);
  }
}

}  // namespace

std::vector<OpCase> row_cases() {
  const std::vector<Shapes> any = {{{2, 3, 5}}, {{7}}, {{1, 1}}, {{4, 1}}, {{0, 3}}};
  return {
      {.op = "softmax(x)",
       .shapes = any,
       .large = {{7, 31, 517}},
       .apply = [](Inputs x) { return softmax(x[0]); },
       .reference = [](const Plains& x) { return soft(x[0]); }},
      {.op = "softmax(x)",
       .note = "far from zero",
       .shapes = {{{3, 5}}},
       .large = {{31, 1100}},
       .kinds = {between(-90, 90)},
       .apply = [](Inputs x) { return softmax(x[0] * 2.0 + 300.0); },
       .reference = [](const Plains& x) { return soft(map(x[0], [](double a) { return a * 2; })); },
       .looser = 40,  // 300 is added in float
       .looser_gradient = 100},
      {.op = "log_softmax(x)",
       .shapes = any,
       .large = {{7, 31, 517}},
       .apply = [](Inputs x) { return log_softmax(x[0]); },
       .reference = [](const Plains& x) { return map(soft(x[0]), [](double a) { return std::log(a); }); },
       .looser_gradient = 10},
      {.op = "layer_norm(x, gain, bias, epsilon, scale)",
       .shapes = {{{2, 3, 5}, {5}, {5}},
                  {{7}, {7}, {7}},
                  {{4, 1}, {1}, {1}},
                  {{3, 17}, {17}, {17}},
                  {{0, 3}, {3}, {3}}},
       .large = {{9, 101, 130}, {130}, {130}},
       .apply = [](Inputs x) { return layer_norm(x[0], x[1], x[2], 1e-3); },
       .reference = [](const Plains& x) { return normed(x, 1e-3, kernel::NormScale::variance); },
       .looser = 4,
       .looser_gradient = 40},
      {.op = "layer_norm(x, gain, bias, epsilon, scale)",
       .note = "without bias",
       .shapes = {{{3, 6}, {6}}},
       .large = {{909, 64}, {64}},
       .apply = [](Inputs x) { return layer_norm(x[0], x[1], Tensor()); },
       .reference = [](const Plains& x) { return normed(x, 1e-5, kernel::NormScale::variance); },
       .looser = 4,
       .looser_gradient = 40},
      {.op = "layer_norm(x, gain, bias, epsilon, scale)",
       .note = "by the sample deviation",
       .shapes = {{{3, 6}, {6}, {6}}, {{2, 2, 3}, {3}, {3}}},
       .large = {{909, 64}, {64}, {64}},
       .apply = [](Inputs x) { return layer_norm(x[0], x[1], x[2], 0.1, kernel::NormScale::deviation); },
       .reference = [](const Plains& x) { return normed(x, 0.1, kernel::NormScale::deviation); },
       .looser = 4,
       .looser_gradient = 40},
      {.op = "layer_norm(x, gain, bias, epsilon, scale)",
       .note = "by the root mean square, with a bias",
       .shapes = {{{3, 6}, {6}, {6}}},
       .large = {{909, 64}, {64}, {64}},
       .apply = [](Inputs x) { return layer_norm(x[0], x[1], x[2], 1e-3, kernel::NormScale::rms); },
       .reference = [](const Plains& x) { return normed(x, 1e-3, kernel::NormScale::rms); },
       .looser = 4,
       .looser_gradient = 40},
      {.op = "rms_norm(x, gain, epsilon)",
       .shapes = {{{2, 3, 5}, {5}}, {{7}, {7}}, {{4, 1}, {1}}, {{3, 17}, {17}}, {{0, 3}, {3}}},
       .large = {{9, 101, 130}, {130}},
       .apply = [](Inputs x) { return rms_norm(x[0], x[1], 1e-3); },
       .reference = [](const Plains& x) { return normed(x, 1e-3, kernel::NormScale::rms); },
       .looser = 4,
       .looser_gradient = 40},
      {.op = "cross_entropy(logits, targets, smoothing, ignore)",
       .shapes = {{{4, 5}, {4}}, {{2, 3, 3}, {2, 3}}, {{5}, {}}, {{1, 4}, {1}}},
       .large = {{301, 1101}, {301}},
       .kinds = {between(-4, 4), ids_below(3)},
       .apply = [](Inputs x) { return cross_entropy(x[0], x[1]); },
       .reference = [](const Plains& x) { return entropy(x, 0, -1); },
       .looser_gradient = 10},
      {.op = "cross_entropy(logits, targets, smoothing, ignore)",
       .note = "smoothed, some ignored",
       .shapes = {{{6, 5}, {6}}, {{3, 3, 4}, {3, 3}}},
       .large = {{301, 1101}, {301}},
       .kinds = {between(-4, 4), ids_below(4)},
       .apply = [](Inputs x) { return cross_entropy(x[0], x[1], 0.1, 1); },
       .reference = [](const Plains& x) { return entropy(x, 0.1, 1); },
       .looser_gradient = 10},
      {.op = "linear_cross_entropy(x, weight, bias, targets, smoothing, ignore, chunk_rows)",
       .note = "chunks that do not divide the rows",
       .shapes = {{{7, 3}, {5, 3}, {5}, {7}}, {{2, 3, 2}, {4, 2}, {4}, {2, 3}}, {{3}, {4, 3}, {4}, {}}},
       .large = {{301, 35}, {401, 35}, {401}, {301}},
       .kinds = {between(-1, 1), between(-1, 1), {}, ids_below(3)},
       .apply =
           [](Inputs x) {
             return linear_cross_entropy(x[0], x[1], x[2], x[3], 0, -1, 2 + x[1].extent(0) / 4);
           },
       .reference = [](const Plains& x) { return entropy(with_logits(x, true), 0, -1); },
       .looser = 10,
       .looser_gradient = 10},
      {.op = "linear_cross_entropy(x, weight, bias, targets, smoothing, ignore, chunk_rows)",
       .note = "without bias, smoothed, some ignored, a row at a time",
       .shapes = {{{7, 3}, {5, 3}, {7}}, {{1, 1}, {3, 1}, {1}}, {{0, 3}, {4, 3}, {0}}},
       .large = {{31, 35}, {1101, 35}, {31}},
       .kinds = {between(-1, 1), between(-1, 1), ids_below(3)},
       .apply = [](Inputs x) { return linear_cross_entropy(x[0], x[1], {}, x[2], 0.1, 1, 1); },
       .reference = [](const Plains& x) { return entropy(with_logits(x, false), 0.1, 1); },
       .looser = 10,
       .looser_gradient = 10},
      {.op = "linear_cross_entropy(x, weight, bias, targets, smoothing, ignore, chunk_rows)",
       .note = "by size",
       .shapes = {{{4, 3}, {5, 3}, {5}, {4}}},
       .large = {{517, 9}, {8201, 9}, {8201}, {517}},
       .kinds = {between(-1, 1), between(-1, 1), {}, ids_below(3)},
       .apply = [](Inputs x) { return linear_cross_entropy(x[0], x[1], x[2], x[3]); },
       .reference = [](const Plains& x) { return entropy(with_logits(x, true), 0, -1); },
       .looser = 10,
       .looser_gradient = 10},
      {.op = "embedding(weight, ids)",
       .shapes = {{{5, 3}, {2, 4}}, {{5, 1}, {6}}, {{5, 3}, {}}, {{5, 3}, {1, 1}}, {{5, 3}, {0}}},
       .large = {{40, 150}, {31, 29}},
       .kinds = {{}, ids_below(5)},
       .apply = [](Inputs x) { return embedding(x[0], x[1]); },
       .reference =
           [](const Plains& x) {
             Shape shape = x[1].shape;
             shape.push_back(width(x[0]));
             Plain y(shape);
             for (int64_t i = 0; i < y.size(); ++i) {
               const auto id = static_cast<int64_t>(x[1][i / width(x[0])]);
               y[i] = x[0][id * width(x[0]) + i % width(x[0])];
             }
             return y;
           },
       .looser_gradient = 10},
      {.op = "gather_rows(x, ids)",
       .shapes = {{{2, 3, 5, 4}}, {{1, 1, 1, 1}}, {{1, 2, 7, 1}}, {{0, 1, 2, 2}}},
       .large = {{2, 3, 150, 33}},
       .apply = [](Inputs x) { return gather_rows(x[0], ids_for(x[0], 2 * x[0].extent(2), x[0].extent(2))); },
       .reference =
           [](const Plains& x) {
             Shape shape = x[0].shape;
             shape[2] *= 2;
             Plain y(shape);
             each_pair(shape, x[0].extent(2), [&](int64_t row, int64_t place) { y[row] = x[0][place]; });
             return y;
           },
       .looser_gradient = 10},
      {.op = "scatter_add_rows(x, ids, length)",
       .shapes = {{{2, 3, 5, 4}}, {{1, 1, 1, 1}}, {{1, 2, 7, 1}}, {{0, 1, 2, 2}}},
       .large = {{2, 3, 150, 33}},
       .apply = [](Inputs x) { return scatter_add_rows(x[0], ids_for(x[0], x[0].extent(2), 4), 4); },
       .reference =
           [](const Plains& x) {
             Shape shape = x[0].shape;
             shape[2] = 4;
             Plain y(shape);
             each_pair(x[0].shape, 4, [&](int64_t row, int64_t place) { y[place] += x[0][row]; });
             return y;
           },
       .looser = 10},
      {.op = "segment_mean(x, count, lengths, counts)",
       .shapes = {{{2, 3, 5, 4}}, {{1, 1, 1, 1}}, {{3, 2, 7, 1}}, {{0, 1, 2, 2}}},
       .large = {{4, 3, 150, 33}},
       .apply =
           [](Inputs x) {
             std::vector<int32_t> lengths, maximum;
             for (int64_t b = 0; b < x[0].extent(0); ++b) {
               lengths.push_back(static_cast<int32_t>(x[0].extent(2) / (b + 1)));
               maximum.push_back(b % 2 == 0 ? 3 : 2);
             }
             const Shape batch{x[0].extent(0)};
             const Device device = x[0].device();
             return segment_mean(x[0], 3, Tensor::of<int32_t>(lengths, batch, device),
                                 Tensor::of<int32_t>(maximum, batch, device));
           },
       .reference =
           [](const Plains& x) {
             Shape shape = x[0].shape;
             shape[2] = 3;
             Plain y(shape);
             for (int64_t i = 0; i < y.size(); ++i) {
               const auto at = indices(shape, i);
               const int64_t T = x[0].extent(2), n = T / (at[0] + 1);
               const int64_t runs = std::min<int64_t>(at[0] % 2 == 0 ? 3 : 2, n);
               if (at[2] >= runs) continue;
               const int64_t first = at[2] * n / runs, last = (at[2] + 1) * n / runs;
               for (int64_t t = first; t < last; ++t)
                 y[i] += x[0][((at[0] * shape[1] + at[1]) * T + t) * shape[3] + at[3]] /
                         static_cast<double>(last - first);
             }
             return y;
           }},
      {.op = "dropout(x, p, rng, places)",
       .shapes = {{{2, 3, 5}}, {{7}}, {{}}, {{1, 1}}, {{0, 3}}},
       .large = {{211, 353}},
       .apply =
           [](Inputs x) {
             Rng rng(17, x[0].device());
             rng.restore(5, 3);
             return dropout(x[0], 0.25, &rng);
           },
       .reference =
           [](const Plains& x) {
             Plain y(x[0].shape);
             for (int64_t i = 0; i < y.size(); ++i) {
               const uint32_t bits = kernel::dropout_bits(17, Draw::high(3, 5), static_cast<uint64_t>(i));
               y[i] = bits >= 16384 ? x[0][i] / 0.75 : 0;
             }
             return y;
           }},
      {.op = "dropout(x, p, rng, places)",
       .note = "none",
       .shapes = {{{2, 3}}},
       .large = {{211, 353}},
       .apply = [](Inputs x) { return dropout(x[0], 0.25, nullptr); },
       .reference = [](const Plains& x) { return x[0]; }},
  };
}

}  // namespace heed::plain
