// Op table: fused attention, against explicit maps.
#include <algorithm>
#include <cmath>
#include <memory>

#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/core/sparse_pattern.h"
#include "heed/tests/autograd/op_case.h"

namespace heed::plain {
namespace {

/// What a plain attention does with one score: -inf hides the key.
using Score = std::function<double(int64_t b, int64_t h, int64_t i, int64_t j, double dot)>;
/// What a modifier makes of one weight of the map.
using Weight = std::function<double(int64_t b, int64_t h, int64_t i, int64_t j, double weight)>;

Plain attended(const Plains& x, const Score& score, const Weight& weight = {}) {
  const Plain &q = x[0], &k = x[1], &v = x[2];
  const int64_t B = q.extent(0), H = q.extent(1), Tq = q.extent(2), Tk = k.extent(2), d = q.extent(3),
                dv = v.extent(3);
  Plain y(Shape{B, H, Tq, dv});
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t i = 0; i < Tq; ++i) {
        std::vector<double> map(static_cast<size_t>(Tk));
        double maximum = -HUGE_VAL, total = 0;
        for (int64_t j = 0; j < Tk; ++j) {
          double dot = 0;
          for (int64_t c = 0; c < d; ++c)
            dot += q[((b * H + h) * Tq + i) * d + c] * k[((b * H + h) * Tk + j) * d + c];
          map[static_cast<size_t>(j)] = score(b, h, i, j, dot);
          maximum = std::max(maximum, map[static_cast<size_t>(j)]);
        }
        if (maximum == -HUGE_VAL) continue;
        for (double& value : map) total += value = std::exp(value - maximum);
        for (int64_t j = 0; j < Tk; ++j) {
          double share = map[static_cast<size_t>(j)] / total;
          if (weight) share = weight(b, h, i, j, share);
          for (int64_t c = 0; c < dv; ++c)
            y[((b * H + h) * Tq + i) * dv + c] += share * v[((b * H + h) * Tk + j) * dv + c];
        }
      }
    }
  }
  return y;
}

/// Key lengths 1, then all but one, then all, and so on; the fourth sequence has none.
int32_t keys_of(int64_t b, int64_t Tk) {
  const int64_t lengths[] = {1, std::max<int64_t>(Tk - 1, 1), Tk, 0};
  return static_cast<int32_t>(lengths[b % 4]);
}

Tensor lengths_for(const Tensor& q, const Tensor& k) {
  std::vector<int32_t> lengths;
  for (int64_t b = 0; b < q.extent(0); ++b) lengths.push_back(keys_of(b, k.extent(2)));
  return Tensor::of<int32_t>(lengths, Shape{q.extent(0)}, q.device());
}

double bias_at(int64_t h, int64_t i, int64_t j) {
  return 0.3 * static_cast<double>(h) - 0.125 * static_cast<double>((i + 2 * j) % 7);
}

/// [1, H, Tq, Tk]
Tensor bias_for(const Tensor& q, const Tensor& k) {
  std::vector<double> values;
  for (int64_t h = 0; h < q.extent(1); ++h) {
    for (int64_t i = 0; i < q.extent(2); ++i) {
      for (int64_t j = 0; j < k.extent(2); ++j) values.push_back(bias_at(h, i, j));
    }
  }
  return cast(Tensor::of<double>(values, Shape{1, q.extent(1), q.extent(2), k.extent(2)}, q.device()),
              q.dtype());
}

/// Each query sees the keys up to 2 behind it, every fifth key of those before, and in odd heads key 0 only
/// when i is odd.
bool kept(int64_t heads, int64_t h, int64_t i, int64_t j) {
  if (heads > 1 && h % 2 == 1 && j == 0) return i % 2 == 1;
  return (j <= i && j >= i - 2) || (j < i && j % 5 == 0);
}

std::shared_ptr<const kernel::Pattern> pattern_for(int64_t heads, int64_t Tq, int64_t Tk) {
  auto out = std::make_shared<kernel::Pattern>();
  out->heads = heads;
  out->queries = Tq;
  out->keys = Tk;
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < Tq; ++i) {
      out->first.push_back(static_cast<int64_t>(out->runs.size()));
      for (int64_t j = 0; j < Tk; ++j) {
        if (!kept(heads, h, i, j)) continue;
        if (j > 0 && kept(heads, h, i, j - 1)) {
          out->runs.back().end = static_cast<int32_t>(j + 1);
        } else {
          out->runs.push_back({static_cast<int32_t>(j), static_cast<int32_t>(j + 1)});
        }
      }
    }
  }
  out->first.push_back(static_cast<int64_t>(out->runs.size()));
  return out;
}

Shapes heads(int64_t B, int64_t H, int64_t Tq, int64_t Tk, int64_t d, int64_t dv) {
  return {{B, H, Tq, d}, {B, H, Tk, d}, {B, H, Tk, dv}};
}

std::vector<OpCase> whole_cases() {
  const double hidden = -HUGE_VAL;
  return {
      {.op = "attention(q, k, v, params)",
       .shapes = {heads(2, 2, 3, 5, 4, 4), heads(1, 1, 1, 1, 1, 1), heads(1, 2, 7, 3, 3, 5),
                  heads(2, 1, 2, 2, 1, 2), heads(0, 1, 2, 2, 3, 3)},
       .large = heads(2, 3, 141, 135, 24, 17),
       .apply = [](Inputs x) { return attention(x[0], x[1], x[2], {.scale = 0.5}); },
       .reference =
           [](const Plains& x) {
             return attended(x, [](auto, auto, auto, auto, double dot) { return 0.5 * dot; });
           },
       .looser = 4,
       .looser_gradient = 20},
      {.op = "attention(q, k, v, params)",
       .note = "causal",
       .shapes = {heads(1, 2, 5, 5, 3, 3), heads(1, 1, 1, 1, 2, 2)},
       .large = heads(2, 2, 150, 150, 16, 16),
       .apply = [](Inputs x) { return attention(x[0], x[1], x[2], {.scale = 0.7, .causal = true}); },
       .reference =
           [hidden](const Plains& x) {
             return attended(x, [hidden](auto, auto, int64_t i, int64_t j, double dot) {
               return j <= i ? 0.7 * dot : hidden;
             });
           },
       .looser = 4,
       .looser_gradient = 20},
      {.op = "attention(q, k, v, params)",
       .note = "causal from a later query, with key lengths and bias",
       .shapes = {heads(4, 2, 3, 5, 3, 2), heads(3, 1, 1, 4, 2, 2)},
       .large = heads(4, 2, 90, 133, 9, 12),
       .apply =
           [](Inputs x) {
             return attention(x[0], x[1], x[2],
                              {.scale = 0.7,
                               .causal = true,
                               .first_query = x[1].extent(2) - x[0].extent(2),
                               .key_lengths = lengths_for(x[0], x[1]),
                               .bias = bias_for(x[0], x[1])});
           },
       .reference =
           [hidden](const Plains& x) {
             const int64_t Tq = x[0].extent(2), Tk = x[1].extent(2);
             return attended(x, [=](int64_t b, int64_t h, int64_t i, int64_t j, double dot) {
               return j <= i + Tk - Tq && j < keys_of(b, Tk) ? 0.7 * dot + bias_at(h, i, j) : hidden;
             });
           },
       .looser = 4,
       .looser_gradient = 20},
      {.op = "attention(q, k, v, params)",
       .note = "dropout",
       .shapes = {heads(2, 2, 3, 5, 4, 3)},
       .large = heads(1, 3, 101, 77, 8, 8),
       .apply =
           [](Inputs x) {
             Rng rng(23, x[0].device());
             rng.restore(2, 9);
             return attention(x[0], x[1], x[2], {.scale = 0.5, .dropout = 0.25, .draw = rng.next()});
           },
       .reference =
           [](const Plains& x) {
             const int64_t H = x[0].extent(1), Tq = x[0].extent(2), Tk = x[1].extent(2);
             return attended(
                 x, [](auto, auto, auto, auto, double dot) { return 0.5 * dot; },
                 [=](int64_t b, int64_t h, int64_t i, int64_t j, double weight) {
                   const auto element = static_cast<uint64_t>(((b * H + h) * Tq + i) * Tk + j);
                   return kernel::dropout_bits(23, Draw::high(9, 2), element) >= 16384 ? weight / 0.75 : 0;
                 });
           },
       .looser = 4,
       .looser_gradient = 20},
  };
}

/// `attended`, with the log of each row's sum of exp(0.5 q k) over the keys j <= i + 1 as a last column.
Plain with_sums(const Plains& x, const Score& score) {
  const Plain out = attended(x, score);
  const int64_t Tq = x[0].extent(2), Tk = x[1].extent(2), d = x[0].extent(3), dv = x[2].extent(3);
  Plain y(Shape{out.extent(0), out.extent(1), Tq, dv + 1});
  for (int64_t row = 0; row < rows(out); ++row) {
    double total = 0;
    for (int64_t j = 0; j < Tk; ++j) {
      double dot = 0;
      for (int64_t c = 0; c < d; ++c) dot += x[0][row * d + c] * x[1][(row / Tq * Tk + j) * d + c];
      total += std::exp(score(0, 0, row % Tq, j, dot));
    }
    for (int64_t c = 0; c < dv; ++c) y[row * (dv + 1) + c] = out[row * dv + c];
    y[row * (dv + 1) + dv] = std::log(total);
  }
  return y;
}

std::vector<OpCase> pattern_cases() {
  const double hidden = -HUGE_VAL;
  return {
      {.op = "attention_with_sums(q, k, v, params)",
       .shapes = {heads(2, 2, 5, 6, 3, 2), heads(1, 1, 1, 1, 1, 1), heads(0, 1, 2, 2, 3, 3)},
       .large = heads(2, 3, 141, 135, 24, 17),
       .apply =
           [](Inputs x) {
             return attention_with_sums(x[0], x[1], x[2], {.scale = 0.5, .causal = true, .first_query = 1});
           },
       .reference =
           [hidden](const Plains& x) {
             return with_sums(x, [hidden](auto, auto, int64_t i, int64_t j, double dot) {
               return j <= i + 1 ? 0.5 * dot : hidden;
             });
           },
       .looser = 4,
       .looser_gradient = 20},
      {.op = "pattern_attention(q, k, v, params)",
       .note = "dropout",
       .shapes = {heads(2, 2, 3, 5, 4, 3)},
       .large = heads(1, 3, 101, 77, 8, 8),
       .apply =
           [](Inputs x) {
             Rng rng(23, x[0].device());
             rng.restore(2, 9);
             return pattern_attention(x[0], x[1], x[2],
                                      {.scale = 0.5,
                                       .pattern = pattern_for(1, x[0].extent(2), x[1].extent(2)),
                                       .dropout = 0.25,
                                       .draw = rng.next()});
           },
       .reference =
           [hidden](const Plains& x) {
             const int64_t H = x[0].extent(1), Tq = x[0].extent(2), Tk = x[1].extent(2);
             return attended(
                 x,
                 [=](auto, auto, int64_t i, int64_t j, double dot) {
                   return kept(1, 0, i, j) ? 0.5 * dot : hidden;
                 },
                 [=](int64_t b, int64_t h, int64_t i, int64_t j, double weight) {
                   const auto element = static_cast<uint64_t>(((b * H + h) * Tq + i) * Tk + j);
                   return kernel::dropout_bits(23, Draw::high(9, 2), element) >= 16384 ? weight / 0.75 : 0;
                 });
           },
       .looser = 4,
       .looser_gradient = 20},
      {.op = "pattern_attention(q, k, v, params)",
       .shapes = {heads(2, 2, 7, 7, 3, 2), heads(1, 1, 1, 1, 1, 1), heads(1, 3, 4, 9, 2, 3)},
       .large = heads(2, 2, 150, 150, 16, 12),
       .apply =
           [](Inputs x) {
             return pattern_attention(
                 x[0], x[1], x[2],
                 {.scale = 0.5, .pattern = pattern_for(x[0].extent(1), x[0].extent(2), x[1].extent(2))});
           },
       .reference =
           [hidden](const Plains& x) {
             const int64_t H = x[0].extent(1);
             return attended(x, [=](auto, int64_t h, int64_t i, int64_t j, double dot) {
               return kept(H, h, i, j) ? 0.5 * dot : hidden;
             });
           },
       .looser = 4,
       .looser_gradient = 20},
      {.op = "pattern_attention(q, k, v, params)",
       .note = "one pattern for all heads, with key lengths",
       .shapes = {heads(4, 2, 7, 7, 3, 2)},
       .large = heads(4, 2, 130, 130, 8, 8),
       .apply =
           [](Inputs x) {
             return pattern_attention(x[0], x[1], x[2],
                                      {.scale = 0.5,
                                       .pattern = pattern_for(1, x[0].extent(2), x[1].extent(2)),
                                       .key_lengths = lengths_for(x[0], x[1])});
           },
       .reference =
           [hidden](const Plains& x) {
             const int64_t Tk = x[1].extent(2);
             return attended(x, [=](int64_t b, auto, int64_t i, int64_t j, double dot) {
               return kept(1, 0, i, j) && j < keys_of(b, Tk) ? 0.5 * dot : hidden;
             });
           },
       .looser = 4,
       .looser_gradient = 20},
      {.op = "pattern_attention_with_sums(q, k, v, params)",
       .shapes = {heads(1, 2, 5, 6, 3, 2), heads(1, 1, 1, 1, 1, 1)},
       .large = heads(2, 3, 141, 141, 24, 17),
       .apply =
           [](Inputs x) {
             return pattern_attention_with_sums(
                 x[0], x[1], x[2], {.scale = 0.5, .pattern = pattern_for(1, x[0].extent(2), x[1].extent(2))});
           },
       .reference =
           [hidden](const Plains& x) {
             return with_sums(x, [hidden](auto, auto, int64_t i, int64_t j, double dot) {
               return kept(1, 0, i, j) ? 0.5 * dot : hidden;
             });
           },
       .looser = 4,
       .looser_gradient = 20},
  };
}

}  // namespace

std::vector<OpCase> attention_cases() {
  std::vector<OpCase> all = whole_cases();
  for (OpCase& row : pattern_cases()) all.push_back(std::move(row));
  return all;
}

}  // namespace heed::plain
