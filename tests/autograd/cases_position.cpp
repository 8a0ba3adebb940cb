// Op table: positions and modifiers in fused attention, and rotary pairs.
#include <cmath>

#include "heed/tests/autograd/op_case.h"

namespace heed::plain {
namespace {

/// q, k and v with fewer heads of keys, and then whatever `more` holds.
Shapes shared(int64_t B, int64_t H, int64_t Hk, int64_t Tq, int64_t Tk, int64_t d, int64_t dv,
              Shapes more = {}) {
  Shapes out{{B, H, Tq, d}, {B, Hk, Tk, d}, {B, Hk, Tk, dv}};
  for (const Shape& shape : more) out.push_back(shape);
  return out;
}

struct Ways {
  bool causal = false, relative = false, sink = false;
  double softcap = 0;
};

/// Causal queries are the last ones. After q, k, v come the bias by distance and the sink, where there are
/// any.
Plain attended(const Plains& x, const Ways& ways) {
  const Plain &q = x[0], &k = x[1], &v = x[2];
  const Plain* relative = ways.relative ? &x[3] : nullptr;
  const Plain* sink = ways.sink ? &x[ways.relative ? 4 : 3] : nullptr;
  const int64_t B = q.extent(0), H = q.extent(1), Hk = k.extent(1), Tq = q.extent(2), Tk = k.extent(2),
                d = q.extent(3), dv = v.extent(3);
  Plain y(Shape{B, H, Tq, dv});
  for (int64_t row = 0; row < B * H * Tq; ++row) {
    const int64_t b = row / Tq / H, h = row / Tq % H, i = row % Tq, shared_head = b * Hk + h * Hk / H;
    double total = sink ? std::exp((*sink)[h]) : 0;
    std::vector<double> weights(static_cast<size_t>(Tk));
    for (int64_t j = 0; j < (ways.causal ? i + Tk - Tq + 1 : Tk); ++j) {
      double score = 0;
      for (int64_t c = 0; c < d; ++c) score += 0.6 * q[row * d + c] * k[(shared_head * Tk + j) * d + c];
      if (ways.softcap > 0) score = ways.softcap * std::tanh(score / ways.softcap);
      if (relative) score += (*relative)[h * (Tq + Tk - 1) + i - j + Tk - 1];
      total += weights[static_cast<size_t>(j)] = std::exp(score);
    }
    for (int64_t j = 0; j < Tk; ++j) {
      for (int64_t c = 0; c < dv; ++c)
        y[row * dv + c] += weights[static_cast<size_t>(j)] / total * v[(shared_head * Tk + j) * dv + c];
    }
  }
  return y;
}

OpCase attention_case(const char* note, Ways ways, std::vector<Shapes> shapes, Shapes large) {
  return {.op = "attention(q, k, v, params)",
          .note = note,
          .shapes = std::move(shapes),
          .large = std::move(large),
          .apply =
              [ways](Inputs x) {
                return attention(x[0], x[1], x[2],
                                 {.scale = 0.6,
                                  .causal = ways.causal,
                                  .first_query = x[1].extent(2) - x[0].extent(2),
                                  .relative = ways.relative ? x[3] : Tensor(),
                                  .sink = ways.sink ? x[ways.relative ? 4 : 3] : Tensor(),
                                  .softcap = ways.softcap});
              },
          .reference = [ways](const Plains& x) { return attended(x, ways); },
          .looser = 4,
          .looser_gradient = 30};
}

constexpr int64_t turned = 6;

double angle(int64_t t, int64_t p) { return 0.3 * static_cast<double>(t) / static_cast<double>(p + 1) + 0.1; }

Tensor angles(const Tensor& x) {
  const int64_t length = x.extent(2), n = std::min(turned, x.extent(3) / 2 * 2);
  std::vector<double> values(static_cast<size_t>(length * n));
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t p = 0; p < n / 2; ++p) {
      values[static_cast<size_t>(t * n + p)] = std::cos(angle(t, p));
      values[static_cast<size_t>(t * n + n / 2 + p)] = std::sin(angle(t, p));
    }
  }
  return cast(Tensor::of<double>(values, Shape{length, n}, x.device()), x.dtype());
}

OpCase rotary_case(const char* note, kernel::RotaryPairs pairs) {
  return {.op = "rotary(x, table, pairs)",
          .note = note,
          .shapes = {{{2, 2, 3, 6}}, {{1, 1, 1, 2}}, {{1, 3, 4, 9}}, {{1, 1, 2, 1}}},
          .large = {{3, 5, 401, 24}},
          .apply = [pairs](Inputs x) { return rotary(x[0], angles(x[0]), pairs); },
          .reference =
              [pairs](const Plains& x) {
                Plain y = x[0];
                const int64_t d = y.extent(3), n = std::min(turned, d / 2 * 2);
                for (int64_t row = 0; row < y.size() / std::max<int64_t>(d, 1); ++row) {
                  for (int64_t p = 0; p < n / 2; ++p) {
                    const bool halves = pairs == kernel::RotaryPairs::halves;
                    const int64_t a = row * d + (halves ? p : 2 * p), b = a + (halves ? n / 2 : 1);
                    const double by = angle(row % y.extent(2), p);
                    y[a] = x[0][a] * std::cos(by) - x[0][b] * std::sin(by);
                    y[b] = x[0][a] * std::sin(by) + x[0][b] * std::cos(by);
                  }
                }
                return y;
              },
          .looser = 2,
          .looser_gradient = 2};
}

}  // namespace

std::vector<OpCase> position_cases() {
  return {
      attention_case("heads that share keys", {.causal = true},
                     {shared(2, 4, 2, 3, 5, 4, 3), shared(1, 3, 1, 2, 2, 1, 2), shared(1, 2, 2, 5, 5, 3, 3)},
                     shared(2, 6, 2, 140, 141, 9, 12)),
      attention_case("one key head and long keys", {}, {shared(1, 4, 1, 7, 3, 3, 5)},
                     shared(1, 4, 1, 131, 700, 8, 8)),
      attention_case("a bias for each distance", {.causal = true, .relative = true},
                     {shared(2, 2, 2, 3, 5, 3, 2, {{2, 7}}), shared(1, 1, 1, 1, 1, 2, 2, {{1, 1}}),
                      shared(1, 2, 1, 5, 5, 2, 3, {{2, 9}})},
                     shared(2, 2, 1, 133, 150, 8, 9, {{2, 282}})),
      attention_case("a bias for each distance, both ways", {.relative = true},
                     {shared(1, 2, 2, 7, 4, 3, 2, {{2, 10}})}, shared(1, 2, 2, 70, 600, 8, 8, {{2, 669}})),
      attention_case("a sink", {.causal = true, .sink = true},
                     {shared(2, 2, 2, 3, 5, 3, 2, {{2}}), shared(1, 4, 2, 5, 5, 2, 3, {{4}})},
                     shared(2, 2, 2, 140, 140, 8, 9, {{2}})),
      attention_case("a sink and a bias for each distance", {.relative = true, .sink = true},
                     {shared(1, 2, 2, 2, 5, 3, 2, {{2, 6}, {2}})},
                     shared(1, 2, 1, 90, 66, 8, 9, {{2, 155}, {2}})),
      attention_case("scores capped", {.causal = true, .softcap = 0.8},
                     {shared(2, 2, 2, 3, 5, 4, 2), shared(1, 2, 1, 5, 5, 3, 3)},
                     shared(2, 2, 2, 140, 140, 8, 9)),
      attention_case("scores capped, and a sink", {.sink = true, .softcap = 2},
                     {shared(1, 2, 1, 4, 5, 3, 2, {{2}})}, shared(1, 2, 1, 70, 80, 8, 9, {{2}})),
      rotary_case("halves", kernel::RotaryPairs::halves),
      rotary_case("neighbours", kernel::RotaryPairs::neighbours),
  };
}

}  // namespace heed::plain
