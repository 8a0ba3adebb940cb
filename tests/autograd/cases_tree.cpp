// Op table: attention over the buds of a tree, with buds of four keys.
#include <algorithm>
#include <cmath>

#include "heed/tests/autograd/op_case.h"

namespace heed::plain {
namespace {

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

Shapes heads(int64_t B, int64_t H, int64_t Tq, int64_t Tk, int64_t d, int64_t dv) {
  return {{B, H, Tq, d}, {B, H, Tk, d}, {B, H, Tk, dv}};
}

/// Four keys a bud, the last of a query cut where it has fewer.
kernel::TreeParams tree_for(const Tensor& q, const Tensor& k, bool causal, bool counted) {
  const int64_t B = q.extent(0), Tq = q.extent(2), Tk = k.extent(2);
  kernel::VisibleLeaves visible{.keys = Tk,
                                .causal = causal,
                                .self = counted,
                                .first_query = causal ? Tk - Tq : 0,
                                .key_lengths = causal ? Tensor() : lengths_for(q, k).to(Device::cpu)};
  std::vector<int32_t> buds;
  for (int64_t row = 0; row < B * Tq; ++row) {
    for (int64_t n = 0; n < (Tk + 3) / 4; ++n)
      buds.push_back(4 * n < visible.count(row / Tq, row % Tq) ? static_cast<int32_t>(8 * n + 3) : -1);
  }
  visible.key_lengths = visible.key_lengths.to(q.device());
  return {.scale = 0.5,
          .counts_leaves = counted,
          .visible = visible,
          .buds = Tensor::of<int32_t>(buds, Shape{B, Tq, (Tk + 3) / 4}, q.device())};
}

Plain by_fours(const Plains& x, bool causal, bool counted) {
  const Plain &q = x[0], &k = x[1], &v = x[2];
  const int64_t B = q.extent(0), H = q.extent(1), Tq = q.extent(2), Tk = k.extent(2), d = q.extent(3),
                dv = v.extent(3);
  Plain y(Shape{B, H, Tq, dv});
  for (int64_t row = 0; row < B * H * Tq; ++row) {
    const int64_t head = row / Tq, i = row % Tq;
    const int64_t leaves = causal ? i + Tk - Tq + (counted ? 1 : 0) : keys_of(head / H, Tk);
    double total = 0;
    for (int64_t first = 0; first < leaves; first += 4) {
      const int64_t last = std::min(first + 4, leaves);
      double along = 0;
      for (int64_t j = first; j < last; ++j)
        for (int64_t c = 0; c < d; ++c) along += q[row * d + c] * k[(head * Tk + j) * d + c];
      const double e = std::exp(0.5 * along / static_cast<double>(last - first));
      total += counted ? e * static_cast<double>(last - first) : e;
      for (int64_t j = first; j < last; ++j)
        for (int64_t c = 0; c < dv; ++c) y[row * dv + c] += e * v[(head * Tk + j) * dv + c];
    }
    for (int64_t c = 0; c < dv && total > 0; ++c) y[row * dv + c] /= total;
  }
  return y;
}

}  // namespace

std::vector<OpCase> tree_cases() {
  return {
      {.op = "tree_attention(q, k, v, params)",
       .shapes = {heads(4, 2, 3, 7, 4, 3), heads(1, 1, 1, 1, 1, 1), heads(0, 1, 2, 2, 3, 3)},
       .large = heads(2, 3, 130, 133, 18, 9),
       .apply = [](Inputs x) { return tree_attention(x[0], x[1], x[2], tree_for(x[0], x[1], false, true)); },
       .reference = [](const Plains& x) { return by_fours(x, false, true); },
       .looser = 4,
       .looser_gradient = 20},
      {.op = "tree_attention(q, k, v, params)",
       .note = "causal, each bud counted once, the own key left out",
       .shapes = {heads(2, 2, 6, 6, 3, 2), heads(1, 1, 3, 5, 2, 2)},
       .large = heads(1, 1, 300, 300, 8, 8),
       .apply = [](Inputs x) { return tree_attention(x[0], x[1], x[2], tree_for(x[0], x[1], true, false)); },
       .reference = [](const Plains& x) { return by_fours(x, true, false); },
       .looser = 4,
       .looser_gradient = 20},
  };
}

}  // namespace heed::plain
