// Op table: packed sequences, and attention on them, against one sequence whose pairs of rows from different
// sequences are hidden.
#include <algorithm>
#include <cmath>

#include "heed/core/packed_sequences.h"
#include "heed/tests/autograd/op_case.h"

namespace heed::plain {
namespace {

Tensor whole_numbers(const std::vector<int64_t>& values, Device device) {
  return Tensor::of<int32_t>(std::vector<int32_t>(values.begin(), values.end()),
                             Shape{static_cast<int64_t>(values.size())}, device);
}

/// Three sequences of N rows in all, the second without rows, the last the longest.
PackedSequences three_sequences(int64_t N, Device device) {
  return {.starts = whole_numbers({0, N / 2, N / 2, N}, device), .longest = N - N / 2};
}
/// First row of the sequence that row t of N belongs to.
int64_t first_of_sequence(int64_t t, int64_t N) { return t < N / 2 ? 0 : N / 2; }

/// Two sequences with all T rows, then one with T - 1.
PackedSequences long_sequences(int64_t T, Device device) {
  return {.starts = whole_numbers({0, T, 2 * T, 3 * T - 1}, device), .longest = T};
}

std::vector<OpCase> copies_of_rows() {
  return {
      {.op = "pad_packed(x, sequences, batch)",
       .shapes = {{{1, 7, 3}}, {{1, 1, 1}}, {{1, 2, 4}}},
       .large = {{1, 601, 70}},
       .apply = [](Inputs x) { return pad_packed(x[0], three_sequences(x[0].extent(1), x[0].device())); },
       .reference =
           [](const Plains& x) {
             const int64_t N = x[0].extent(1), W = x[0].extent(2), T = N - N / 2;
             Plain y(Shape{3, T, W});
             for (int64_t t = 0; t < N; ++t) {
               const int64_t first = first_of_sequence(t, N), b = t < N / 2 ? 0 : 2;
               for (int64_t c = 0; c < W; ++c) y[(b * T + t - first) * W + c] = x[0][t * W + c];
             }
             return y;
           }},
      {.op = "pad_packed(x, sequences, batch)",
       .note = "the first of them",
       .shapes = {{{1, 7, 3}}, {{1, 2, 4}}},
       .large = {{1, 601, 70}},
       .apply = [](Inputs x) { return pad_packed(x[0], three_sequences(x[0].extent(1), x[0].device()), 1); },
       .reference =
           [](const Plains& x) {
             const int64_t N = x[0].extent(1), W = x[0].extent(2);
             Plain y(Shape{1, N - N / 2, W});
             for (int64_t n = 0; n < N / 2 * W; ++n) y[n] = x[0][n];
             return y;
           }},
      {.op = "pack_padded(x, sequences, rows)",
       .shapes = {{{3, 4, 3}}, {{3, 1, 1}}, {{2, 3, 2}}},
       .large = {{3, 300, 70}},
       .apply =
           [](Inputs x) {
             const int64_t T = x[0].extent(1);
             return pack_padded(x[0], long_sequences(T, x[0].device()), 3 * T + 2);
           },
       .reference =
           [](const Plains& x) {
             const int64_t T = x[0].extent(1), W = x[0].extent(2);
             Plain y(Shape{1, 3 * T + 2, W});
             for (int64_t n = 0; n < std::min(x[0].extent(0) * T, 3 * T - 1) * W; ++n) y[n] = x[0][n];
             return y;
           }},
      {.op = "sum_sequences(x, sequences, step)",
       .shapes = {{{1, 7, 3}}, {{1, 1, 1}}, {{1, 2, 40}}},
       .large = {{1, 601, 70}},
       .apply = [](Inputs x) { return sum_sequences(x[0], three_sequences(x[0].extent(1), x[0].device())); },
       .reference =
           [](const Plains& x) {
             const int64_t N = x[0].extent(1), W = x[0].extent(2);
             Plain y(Shape{3, W});
             for (int64_t n = 0; n < N * W; ++n) y[(n / W < N / 2 ? 0 : 2) * W + n % W] += x[0][n];
             return y;
           },
       .looser = 10},
      {.op = "sum_sequences(x, sequences, step)",
       .note = "every other one",
       .shapes = {{{1, 7, 3}}, {{1, 1, 1}}, {{1, 2, 40}}},
       .large = {{1, 601, 70}},
       .apply =
           [](Inputs x) {
             const int64_t N = x[0].extent(1);
             return sum_sequences(
                 x[0], {.starts = whole_numbers({0, N / 3, N / 2, N / 2, N}, x[0].device()), .longest = N},
                 2);
           },
       .reference =
           [](const Plains& x) {
             const int64_t N = x[0].extent(1), W = x[0].extent(2);
             Plain y(Shape{2, W});
             for (int64_t n = 0; n < N / 3 * W; ++n) y[n % W] += x[0][n];
             return y;
           },
       .looser = 10},
      {.op = "add_positions(x, table, sequences)",
       .shapes = {{{1, 7, 3}, {5, 3}}, {{1, 1, 1}, {1, 1}}, {{1, 2, 40}, {1, 40}}},
       .large = {{1, 601, 70}, {301, 70}},
       .apply =
           [](Inputs x) { return add_positions(x[0], x[1], three_sequences(x[0].extent(1), x[0].device())); },
       .reference =
           [](const Plains& x) {
             const int64_t N = x[0].extent(1), W = x[0].extent(2);
             Plain y = x[0];
             for (int64_t n = 0; n < N; ++n)
               for (int64_t c = 0; c < W; ++c) y[n * W + c] += x[1][(n - first_of_sequence(n, N)) * W + c];
             return y;
           }},
      {.op = "dropout(x, p, rng, places)",
       .note = "packed: the mask of padded rows",
       .shapes = {{{1, 5, 3}}, {{1, 1, 1}}, {{1, 2, 32}}},
       .large = {{1, 601, 70}},
       .apply =
           [](Inputs x) {
             Rng rng(3, x[0].device());
             const int64_t rows = x[0].extent(1);
             std::vector<int64_t> places;  // two sequences of 2 rows + 1 places, the first with one row
             for (int64_t n = 0; n < rows; ++n) places.push_back(n == 0 ? 0 : 2 * rows + n);
             return dropout(x[0], 0.25, &rng,
                            {.places = whole_numbers(places, x[0].device()), .padded_rows = 4 * rows + 2});
           },
       .reference =
           [](const Plains& x) {
             const int64_t rows = x[0].extent(1), W = x[0].extent(2);
             Rng rng(3, Device::cpu);
             const Tensor ones = Tensor::full(Shape{2, 2 * rows + 1, W}, 1, DType::f64, Device::cpu);
             const std::vector<double> mask = dropout(ones, 0.25, &rng).to_doubles();
             Plain y(x[0].shape);
             for (int64_t n = 0; n < rows; ++n) {
               const int64_t place = n == 0 ? 0 : 2 * rows + n;
               for (int64_t c = 0; c < W; ++c)
                 y[n * W + c] = x[0][n * W + c] * mask[static_cast<size_t>(place * W + c)];
             }
             return y;
           }},
  };
}

/// y[h, i, :] = sum_j weight_ij v_j / sum_j weight_ij over the rows j of the sequence of row i, for heads
/// q, k, v [1, H, N, d]. `length`: no row of a sequence from this one on is a key; `weigh` makes a weight of
/// q . k.
Plain averaged(const Plains& x, int64_t length, bool causal, const std::function<double(double)>& weigh) {
  const int64_t H = x[0].extent(1), N = x[0].extent(2), d = x[0].extent(3), dv = x[2].extent(3);
  Plain y(Shape{1, H, N, dv});
  for (int64_t row = 0; row < H * N; ++row) {
    const int64_t h = row / N, i = row % N, first = first_of_sequence(i, N);
    const int64_t end = std::min(first == 0 && i < N / 2 ? N / 2 : N, first + length);
    double total = 0;
    for (int64_t j = first; j < (causal ? std::min(end, i + 1) : end); ++j) {
      double dot = 0;
      for (int64_t c = 0; c < d; ++c) dot += x[0][row * d + c] * x[1][(h * N + j) * d + c];
      const double weight = weigh(dot);
      total += weight;
      for (int64_t c = 0; c < dv; ++c) y[row * dv + c] += weight * x[2][(h * N + j) * dv + c];
    }
    for (int64_t c = 0; c < dv; ++c) y[row * dv + c] = total == 0 ? 0 : y[row * dv + c] / total;
  }
  return y;
}

/// q, k and v of packed heads.
Shapes packed_heads(int64_t H, int64_t N, int64_t d, int64_t dv) {
  return {{1, H, N, d}, {1, H, N, d}, {1, H, N, dv}};
}

constexpr int64_t all_rows = int64_t{1} << 40;

/// Attention and fastmax where keys are all rows of their sequence, or the first `length`.
OpCase attention_case(const char* note, bool causal, int64_t length) {
  return {.op = "attention(q, k, v, params)",
          .note = note,
          .shapes = {packed_heads(2, 9, 3, 4), packed_heads(1, 1, 1, 1), packed_heads(2, 4, 2, 1)},
          .large = packed_heads(2, 301, 16, 12),
          .apply =
              [=](Inputs x) {
                const PackedSequences rows = three_sequences(x[0].extent(2), x[0].device());
                kernel::AttentionParams params{.scale = 0.5, .causal = causal, .queries = rows, .keys = rows};
                if (length < all_rows) params.key_lengths = whole_numbers({length, 0, length}, x[0].device());
                return attention(x[0], x[1], x[2], params);
              },
          .reference =
              [=](const Plains& x) {
                return averaged(x, length, causal, [](double dot) { return std::exp(0.5 * dot); });
              },
          .looser = 4,
          .looser_gradient = 20};
}

OpCase fastmax_case(const char* note, bool causal, int64_t length, kernel::PolynomialPath path) {
  return {.op = "polynomial_attention(q, k, v, params, start)",
          .note = note,
          .shapes = {packed_heads(2, 9, 3, 4), packed_heads(1, 1, 1, 1), packed_heads(2, 4, 2, 1)},
          .large = packed_heads(2, 301, 6, 5),
          .apply =
              [=](Inputs x) {
                const PackedSequences rows = three_sequences(x[0].extent(2), x[0].device());
                kernel::PolynomialParams params{.coefficients = {1, 1, 0.5},
                                                .scale = 0.4,
                                                .causal = causal,
                                                .path = path,
                                                .queries = rows,
                                                .keys = rows};
                if (length < all_rows) params.key_lengths = whole_numbers({length, 0, length}, x[0].device());
                return polynomial_attention(x[0], x[1], x[2], params);
              },
          .reference =
              [=](const Plains& x) {
                return averaged(x, length, causal,
                                [](double dot) { return 1 + 0.4 * dot + 0.5 * 0.4 * dot * 0.4 * dot; });
              },
          .looser = 20,
          .looser_gradient = 100};
}

}  // namespace

std::vector<OpCase> packed_cases() {
  using kernel::PolynomialPath;
  std::vector<OpCase> all = copies_of_rows();
  all.push_back(attention_case("packed", false, all_rows));
  all.push_back(attention_case("packed, causal, with key lengths", true, 2));
  all.push_back(fastmax_case("packed", false, 3, PolynomialPath::factored));
  all.push_back(fastmax_case("packed, causal", true, all_rows, PolynomialPath::factored));
  all.push_back(fastmax_case("packed, pair by pair", false, 2, PolynomialPath::dense));
  return all;
}

}  // namespace heed::plain
