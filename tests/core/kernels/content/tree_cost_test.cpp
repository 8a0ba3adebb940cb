// Counted operations of a token under tree attention: T (D + R) for masses and values, T log T for the heap.
#include <cmath>

#include "heed/core/kernels/content/prefix_tree.h"
#include "heed/core/kernels/content/tree_attention.h"
#include "heed/core/kernels/content/tree_moments.h"
#include "heed/core/operation_count.h"
#include "heed/tests/catch.h"
#include "heed/tests/core/kernels/arguments_on_device.h"
#include "heed/tests/core/kernels/attention_reference.h"

namespace heed {
namespace {

using kernel::BudMass;

/// What one token costs, by terms.
struct TokenCost {
  double heap, masses, attention, buds;
};

/// A token after a history of `keys` whose l^E buds are drawn by masses of features of width `d`.
TokenCost cost_of(int64_t keys, double exponent, int64_t heads, int64_t d, bool greedy = false) {
  const Tensor q = test::heads(1, heads, 1, d, DType::f32, 1),
               k = test::heads(1, heads, keys, d, DType::f32, 2);
  const Tensor nodes(Shape{1, heads, kernel::tree_rows(keys), d});
  launch_here<kernel::TreeSums>(k, 0, nodes);
  kernel::BudParams params{.visible = {.keys = keys, .causal = true, .first_query = keys - 1},
                           .mass = BudMass::uniform,
                           .exponent = exponent,
                           .parallel = greedy ? 1 : 8,
                           .greedy = greedy,
                           .draw = {.seed = 1, .stream = 0, .tick = {}}};
  const Tensor buds(Shape{1, 1, kernel::bud_capacity(params)}, DType::i32);
  const auto counted = [](const auto& work) {
    Count::reset();
    work();
    return static_cast<double>(Count::flops());
  };
  TokenCost out{};
  out.heap = counted([&] { launch_here<kernel::TreeBuds>(q, Tensor(), params, buds); });
  params.mass = BudMass::exponential;
  out.masses = counted([&] { launch_here<kernel::TreeBuds>(q, nodes, params, buds); }) - out.heap;
  for (int64_t n = 0; n < buds.size(); ++n) out.buds += buds.data<int32_t>()[n] >= 0 ? 1 : 0;
  const kernel::TreeParams tree{
      .visible = params.visible, .buds = buds, .key_nodes = nodes, .value_nodes = nodes};
  const Tensor y(q.shape()), lse(Shape{1, heads, 1});
  out.attention = counted([&] { launch_here<kernel::TreeAttention>(q, tree, y, lse); });
  return out;
}

}  // namespace

TEST_CASE("tree cost: each term grows as it should, and none with the history") {
  const TokenCost one = cost_of(4096, 0.5, 4, 64);
  CHECK(one.buds == Approx(64).margin(7));
  // Masses and attention: T D, and heads count.
  CHECK(cost_of(4096, 0.5, 4, 128).masses / one.masses == Approx(2).epsilon(0.1));
  CHECK(cost_of(4096, 0.5, 4, 128).attention / one.attention == Approx(2).epsilon(0.1));
  CHECK(cost_of(4096, 0.5, 8, 64).masses / one.masses == Approx(2).epsilon(0.1));
  // Four times the buds of the same history.
  const TokenCost more = cost_of(4096, 0.5 + 2 * std::log(2.0) / std::log(4096.0), 4, 64);
  const double buds = more.buds / one.buds;
  CHECK(buds == Approx(4).epsilon(0.1));
  CHECK(more.attention / one.attention == Approx(buds).epsilon(0.15));
  CHECK(more.masses / one.masses == Approx(buds).epsilon(0.25));
  // The heap is shared by heads, does not depend on D, and grows as T log T.
  CHECK(cost_of(4096, 0.5, 8, 128).heap == one.heap);
  const double log_growth = std::log2(more.buds) / std::log2(one.buds);
  CHECK(more.heap / one.heap > buds);
  CHECK(more.heap / one.heap < 1.2 * buds * log_growth);
  // Sixteen times the history at as many buds: the path that the last key cuts is longer, nothing else.
  const TokenCost longer = cost_of(65536, 0.375, 4, 64);
  CHECK(longer.buds == Approx(one.buds).margin(8));
  CHECK(longer.masses / one.masses < 1.25);
  CHECK(longer.attention / one.attention < 1.35);
  // Exact attention: 4 D of each key of each head.
  CHECK(one.heap + one.masses + one.attention < 0.1 * 4 * 64 * 4096 * 4);
}

TEST_CASE("tree cost: the heap of the largest mass is as cheap as that of draws") {
  const TokenCost drawn = cost_of(4096, 0.5, 4, 64), largest = cost_of(4096, 0.5, 4, 64, true);
  CHECK(largest.heap < 1.5 * drawn.heap);
  CHECK(largest.buds == 64);
}

}  // namespace heed
