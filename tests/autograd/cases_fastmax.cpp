// Op table: polynomial attention, against explicit pairs and features.
#include <algorithm>
#include <cmath>

#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/tests/autograd/op_case.h"

namespace heed::plain {
namespace {

using kernel::FeatureMap;
using kernel::PolynomialParams;
using kernel::PolynomialPath;
using Row = std::vector<double>;

Shapes heads(int64_t B, int64_t H, int64_t Tq, int64_t Tk, int64_t d, int64_t dv) {
  return {{B, H, Tq, d}, {B, H, Tk, d}, {B, H, Tk, dv}};
}
Shapes with_start(Shapes shapes, int64_t features) {
  shapes.push_back({shapes[0][0], shapes[0][1], features, shapes[2][3] + 1});
  return shapes;
}

/// Row `row` of all rows of x, prepared.
Row prepared(const Plain& x, int64_t row, const PolynomialParams& params) {
  const int64_t d = x.extent(3);
  Row out;
  double mean = 0, square = 0;
  for (int64_t a = 0; a < d; ++a) {
    out.push_back(x[row * d + a]);
    mean += out.back() / static_cast<double>(d);
  }
  if (params.prepare == FeatureMap::unit) mean = 0;
  for (const double value : out) square += (value - mean) * (value - mean);
  const double e = params.prepare_epsilon;
  for (double& value : out) {
    if (params.prepare == FeatureMap::positive) value = value > 0 ? value + 1 : std::exp(value);
    if (params.prepare == FeatureMap::standard)
      value = (value - mean) / std::sqrt(square / static_cast<double>(d) + e);
    if (params.prepare == FeatureMap::unit) value /= std::sqrt(square + e * e);
  }
  return out;
}

/// 1, x_a, and x_a x_b for a <= b.
Row squares(const Row& x) {
  Row out{1};
  out.insert(out.end(), x.begin(), x.end());
  for (size_t a = 0; a < x.size(); ++a) {
    for (size_t b = a; b < x.size(); ++b) out.push_back(x[a] * x[b]);
  }
  return out;
}

/// Features of a query so that their product with squares() of a key is a_0 + a_1 s + a_2 s^2.
Row query_squares(const Row& x, const PolynomialParams& params) {
  Row out = squares(x);
  size_t at = 1 + x.size();
  for (size_t c = 0; c < at; ++c)
    out[c] *= c == 0 ? params.coefficients[0] : params.coefficients[1] * params.scale;
  for (size_t a = 0; a < x.size(); ++a) {
    for (size_t b = a; b < x.size(); ++b)
      out[at++] *= (a == b ? 1 : 2) * params.coefficients[2] * params.scale * params.scale;
  }
  return out;
}

constexpr double rate = 0.25;
constexpr uint64_t seed = 31, stream = 4, tick = 3;

/// What dropout leaves of the monomials of degree 2 of token `row`; keys draw far from queries.
Row dropped(Row features, size_t first, int64_t row, bool key) {
  const uint64_t step = (features.size() + 15) / 16 * 16;
  const uint64_t begin = (key ? uint64_t{1} << 62 : 0) + static_cast<uint64_t>(row) * step;
  for (size_t f = first; f < features.size(); ++f) {
    const bool kept = kernel::dropout_bits(seed, Draw::high(stream, tick), begin + f) >= 16384;
    features[f] = kept ? features[f] / (1 - rate) : 0;
  }
  return features;
}

/// Drops entries of a mapped row: each by itself, or all at once.
Row dropped_row(Row x, kernel::PolynomialDropout drops, int64_t row, bool key) {
  const bool tokens = drops == kernel::PolynomialDropout::tokens;
  const uint64_t step = tokens ? 16 : (x.size() + 15) / 16 * 16;
  const uint64_t begin = (key ? uint64_t{1} << 62 : 0) + static_cast<uint64_t>(row) * step;
  for (size_t c = 0; c < x.size(); ++c) {
    const uint64_t element = begin + (tokens ? 0 : c);
    x[c] = kernel::dropout_bits(seed, Draw::high(stream, tick), element) >= 16384 ? x[c] / (1 - rate) : 0;
  }
  return x;
}

double product(const Row& a, const Row& b) {
  double total = 0;
  for (size_t c = 0; c < a.size(); ++c) total += a[c] * b[c];
  return total;
}

int32_t keys_of(int64_t b, int64_t Tk) {
  return static_cast<int32_t>(b % 3 == 0 ? Tk : b % 3 == 1 ? Tk / 2 : 0);
}
Tensor lengths_for(const Tensor& q, int64_t Tk) {
  std::vector<int32_t> lengths;
  for (int64_t b = 0; b < q.extent(0); ++b) lengths.push_back(keys_of(b, Tk));
  return Tensor::of<int32_t>(lengths, Shape{q.extent(0)}, q.device());
}

Plain attended(const Plains& x, const PolynomialParams& params, bool padded, bool drops) {
  const int64_t H = x[0].extent(1), Tq = x[0].extent(2), Tk = x[1].extent(2), dv = x[2].extent(3);
  Plain y(Shape{x[0].extent(0), H, Tq, dv});
  for (int64_t row = 0; row < x[0].extent(0) * H * Tq; ++row) {
    const int64_t head = row / Tq, i = row % Tq, keys = padded ? keys_of(head / H, Tk) : Tk;
    const bool drops_rows = drops && params.drops != kernel::PolynomialDropout::monomials;
    Row q = prepared(x[0], row, params);
    if (drops_rows) q = dropped_row(q, params.drops, row, false);
    Row sums(static_cast<size_t>(dv) + 1);
    for (int64_t j = 0; j < (params.causal ? std::min(keys, i + 1) : keys); ++j) {
      Row k = prepared(x[1], head * Tk + j, params);
      if (drops_rows) k = dropped_row(k, params.drops, head * Tk + j, true);
      double weight = 0, power = 1;
      for (const double a : params.coefficients) {
        weight += a * power;
        power *= params.scale * product(q, k);
      }
      if (drops && !drops_rows) {
        weight = product(dropped(query_squares(q, params), 1 + q.size(), row, false),
                         dropped(squares(k), 1 + k.size(), head * Tk + j, true));
      }
      for (int64_t c = 0; c < dv; ++c)
        sums[static_cast<size_t>(c)] += weight * x[2][(head * Tk + j) * dv + c];
      sums.back() += weight;
    }
    if (x.size() > 3) {
      const Row phi = query_squares(q, params);
      for (size_t n = 0; n < phi.size() * sums.size(); ++n)
        sums[n % sums.size()] +=
            phi[n / sums.size()] *
            x[3][head * static_cast<int64_t>(phi.size() * sums.size()) + static_cast<int64_t>(n)];
    }
    for (int64_t c = 0; c < dv; ++c) {
      const double total = sums.back() + params.epsilon;
      y[row * dv + c] = total == 0 ? 0 : sums[static_cast<size_t>(c)] / total;
    }
  }
  return y;
}

struct Look {
  const char* note;
  PolynomialParams params;
  std::vector<Shapes> shapes;
  Shapes large;
  bool padded = false, drops = false;
};

OpCase row_of(const Look& look) {
  return {.op = "polynomial_attention(q, k, v, params, start)",
          .note = look.note,
          .shapes = look.shapes,
          .large = look.large,
          .kinds = {{}, {}, {}, between(0, 1)},
          .apply =
              [look](Inputs x) {
                PolynomialParams params = look.params;
                if (look.padded) params.key_lengths = lengths_for(x[0], x[1].extent(2));
                if (look.drops) {
                  Rng rng(seed, x[0].device());
                  rng.restore(tick, stream);
                  params.dropout = rate;
                  params.draw = rng.next();
                }
                return polynomial_attention(x[0], x[1], x[2], params, x.size() > 3 ? x[3] : Tensor());
              },
          .reference = [look](const Plains& x) { return attended(x, look.params, look.padded, look.drops); },
          .looser = 20,
          .looser_gradient = 100};
}

}  // namespace

std::vector<OpCase> fastmax_cases() {
  const std::vector<double> two{1, 1, 0.5}, three{1, 1, 0.5, 1.0 / 6};
  const Shapes small = heads(2, 2, 5, 5, 3, 4), one = heads(1, 1, 1, 1, 1, 1),
               cross = heads(3, 1, 3, 7, 3, 2);
  std::vector<OpCase> all;
  for (const Look& look :
       {Look{"standard",
             {.coefficients = two, .prepare = FeatureMap::standard},
             {small, one, cross, heads(0, 1, 2, 2, 3, 3)},
             heads(2, 2, 150, 170, 6, 5)},
        Look{
            "pairs",
            {.coefficients = two, .prepare = FeatureMap::unit, .causal = true, .path = PolynomialPath::dense},
            {small, one},
            heads(2, 2, 150, 150, 6, 5)},
        Look{"causal, of degree 3, with key lengths",
             {.coefficients = three,
             .scale = 0.2,
             .causal = true,
             .epsilon = 2,
             .path = PolynomialPath::factored},
             {heads(3, 1, 6, 6, 2, 3), one},
             heads(3, 2, 150, 150, 5, 7),
             true},
        Look{"elu + 1",
             {.coefficients = {0, 1}, .prepare = FeatureMap::positive, .causal = true, .epsilon = 1e-6},
             {small, one},
             heads(2, 3, 150, 150, 17, 16)},
        Look{"after earlier keys",
             {.coefficients = two, .scale = 0.4, .causal = true},
             {with_start(small, 10), with_start(one, 3)},
             with_start(heads(2, 2, 150, 150, 6, 5), 28)},
        Look{"monomials dropped, causal",
             {.coefficients = two, .scale = 0.3, .causal = true, .epsilon = 3},
             {small, one},
             heads(2, 2, 90, 90, 5, 6),
             false,
             true},
        Look{"monomials dropped",
             {.coefficients = two, .scale = 0.3, .epsilon = 3},
             {cross},
             heads(2, 2, 90, 70, 5, 6),
             false,
             true},
        Look{"monomials of several blocks dropped, causal, with key lengths",
             {.coefficients = two, .scale = 0.1, .causal = true, .epsilon = 30},
             {heads(3, 1, 6, 6, 10, 3)},
             heads(3, 1, 150, 150, 11, 9),
             true,
             true},
        Look{"monomials dropped, causal, all tokens in one chunk of more than 64",
             {.coefficients = two, .prepare = FeatureMap::unit, .causal = true, .epsilon = 3},
             {heads(1, 2, 6, 6, 3, 3)},
             heads(2, 2, 90, 90, 6, 32),
             true,
             true},
        Look{"entries dropped",
             {.coefficients = two,
             .prepare = FeatureMap::standard,
             .scale = 0.3,
             .drops = kernel::PolynomialDropout::entries},
             {small, cross},
             heads(2, 2, 90, 70, 35, 6),
             false,
             true},
        Look{"entries dropped, of degree 1, causal",
             {.coefficients = {1, 1},
             .prepare = FeatureMap::unit,
             .causal = true,
             .epsilon = 3,
             .drops = kernel::PolynomialDropout::entries},
             {small},
             heads(2, 2, 90, 90, 5, 6),
             false,
             true},
        Look{"tokens dropped",
             {.coefficients = two,
             .prepare = FeatureMap::positive,
             .scale = 0.3,
             .epsilon = 3,
             .drops = kernel::PolynomialDropout::tokens,
             .path = PolynomialPath::factored},
             {small, cross},
             heads(2, 2, 90, 70, 5, 6),
             false,
             true},
        Look{"tokens dropped, causal",
             {.coefficients = two,
             .prepare = FeatureMap::standard,
             .scale = 0.3,
             .causal = true,
             .drops = kernel::PolynomialDropout::tokens},
             {small},
             heads(2, 2, 90, 90, 5, 6),
             false,
             true}}) {
    all.push_back(row_of(look));
  }
  all.push_back({.op = "polynomial_sums(k, v, params)",
                 .shapes = {{{2, 2, 5, 3}, {2, 2, 5, 4}}, {{1, 1, 1, 1}, {1, 1, 1, 1}}},
                 .large = {{2, 2, 170, 6}, {2, 2, 170, 5}},
                 .apply = [two](Inputs x) { return polynomial_sums(x[0], x[1], {.coefficients = two}); },
                 .reference =
                     [](const Plains& x) {
                       const int64_t T = x[0].extent(2), d = x[0].extent(3), dv = x[1].extent(3);
                       const int64_t features = (d + 1) * (d + 2) / 2;
                       Plain y(Shape{x[0].extent(0), x[0].extent(1), features, dv + 1});
                       for (int64_t row = 0; row < x[0].size() / d; ++row) {
                         const Row phi = squares(prepared(x[0], row, {}));
                         for (int64_t n = 0; n < features * (dv + 1); ++n) {
                           const int64_t c = n % (dv + 1);
                           y[row / T * features * (dv + 1) + n] +=
                               phi[static_cast<size_t>(n / (dv + 1))] * (c < dv ? x[1][row * dv + c] : 1);
                         }
                       }
                       return y;
                     },
                 .looser = 20,
                 .looser_gradient = 50});
  return all;
}

}  // namespace heed::plain
