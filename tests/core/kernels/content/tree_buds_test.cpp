// Tests core/kernels/content/tree_buds.h: the nodes of each query, against a plain implementation.
#include "heed/core/kernels/content/tree_buds.h"

#include <cmath>
#include <functional>
#include <map>

#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/content/prefix_tree.h"
#include "heed/core/kernels/content/tree_attention.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/catch.h"
#include "heed/tests/core/kernels/arguments_on_device.h"
#include "heed/tests/core/kernels/attention_reference.h"

namespace heed {
namespace {

using kernel::BudMass;
using kernel::BudParams;
using kernel::TreeNode;
using Range = std::pair<int64_t, int64_t>;  // positions of a bud
using Ranges = std::vector<Range>;

Tensor nodes_of(const Tensor& leaves) {
  const Tensor nodes(
      Shape{leaves.extent(0), leaves.extent(1), kernel::tree_rows(leaves.extent(2)), leaves.extent(3)},
      leaves.dtype());
  launch_here<kernel::TreeSums>(leaves, 0, nodes);
  return nodes;
}

/// The buds of each query, [B Tq].
std::vector<Ranges> grown(const Tensor& q, const Tensor& k, int64_t batch, int64_t queries,
                          const BudParams& params) {
  const Tensor buds = Tensor::full(Shape{batch, queries, kernel::bud_capacity(params)}, 77, DType::i32);
  launch_here<kernel::TreeBuds>(q, k ? nodes_of(k) : Tensor(), params, buds);
  std::vector<Ranges> out;
  for (int64_t row = 0; row < batch * queries; ++row) {
    const int64_t leaves = params.visible.count(row / queries, row % queries);
    const int32_t* bud = buds.data<int32_t>() + row * buds.extent(2);
    out.emplace_back();
    bool ended = false;
    for (int64_t n = 0; n < buds.extent(2); ++n) {
      ended = ended || bud[n] == -1;
      if (ended) {
        CHECK(bud[n] == -1);
        continue;
      }
      const TreeNode node = TreeNode::at_row(bud[n]);
      out.back().emplace_back(node.begin(), std::min(node.end(), leaves));
    }
  }
  return out;
}

/// All positions before the query once, in order.
bool whole(const Ranges& buds, int64_t leaves) {
  int64_t at = 0;
  for (const auto& [begin, end] : buds) {
    if (begin != at || end <= begin) return false;
    at = end;
  }
  return at == leaves;
}

/// Mass of the positions first <= j < last.
using Mass = std::function<double(int64_t first, int64_t last)>;

/// The largest mass is split, the earlier of equals, until there are `wanted`; masses are made anew each
/// time.
Ranges greedily(int64_t leaves, int64_t wanted, const Mass& mass) {
  struct Part {
    int64_t begin, size;
  };
  int64_t root = 1;
  while (root < leaves) root *= 2;
  std::vector<Part> parts{{0, root}};
  while (static_cast<int64_t>(parts.size()) < wanted) {
    size_t best = 0;
    double maximum = -1;
    for (size_t n = 0; n < parts.size(); ++n) {
      const int64_t end = std::min(parts[n].begin + parts[n].size, leaves);
      if (end - parts[n].begin < 2) continue;
      const double own = mass(parts[n].begin, end);
      if (own > maximum) {
        maximum = own;
        best = n;
      }
    }
    Part& part = parts[best];
    part.size /= 2;
    const int64_t middle = part.begin + part.size;
    if (middle < leaves) parts.insert(parts.begin() + static_cast<int64_t>(best) + 1, {middle, part.size});
  }
  Ranges out;
  for (const Part& part : parts) out.emplace_back(part.begin, std::min(part.begin + part.size, leaves));
  return out;
}

}  // namespace

TEST_CASE("tree_buds: how many buds so many keys give") {
  CHECK(kernel::bud_count(0, 0.5) == 0);
  CHECK(kernel::bud_count(1, 0.5) == 1);
  CHECK(kernel::bud_count(17, 0) == 1);
  CHECK(kernel::bud_count(17, 1) == 17);
  CHECK(kernel::bud_count(16, 0.5) == 4);
  CHECK(kernel::bud_count(17, 0.5) == 5);
  CHECK(kernel::bud_count(1000, 1.0 / 3) == 10);  // the power is 9.999999999999998
  CHECK(kernel::bud_count(1000, 0.9) == 502);
}

TEST_CASE("tree_buds: masses of decay") {
  CHECK(kernel::decay_mass(0.5, 4, 0, 2) == 0.1875);
  CHECK(kernel::decay_mass(0.5, 4, 2, 2) == 0.75);
  for (const double base : {0.5, 0.9, 0.99}) {
    for (const int64_t leaves : {1, 7, 32, 100}) {
      const BudParams params{
          .visible = {.keys = leaves}, .mass = BudMass::decay, .base = base, .exponent = 0.7};
      double total = 0;
      const Ranges buds = grown({}, {}, 1, 1, params)[0];
      for (const auto& [begin, end] : buds) total += kernel::decay_mass(base, leaves, begin, end - begin);
      CHECK(total == Approx(1 - std::pow(base, leaves)).epsilon(1e-12));
    }
  }
}

TEST_CASE("tree_buds: greedy growth is the one that is written out") {
  const OnEachDevice here;
  const int64_t B = 2, H = 3, T = 37, w = 5;
  const Tensor q = test::heads(B, H, T, w, DType::f64, 1), k = test::heads(B, H, T, w, DType::f64, 2);
  const Tensor lengths = Tensor::of<int32_t>(std::vector<int32_t>{37, 21}, Shape{B});
  const std::vector<double> a = q.to_doubles(), x = k.to_doubles();
  struct Try {
    BudMass mass;
    bool by_sum, causal, self;
  };
  for (const Try& t :
       {Try{BudMass::exponential, false, true, true}, Try{BudMass::exponential, true, true, false},
        Try{BudMass::exponential, false, false, true}, Try{BudMass::positive, false, true, true},
        Try{BudMass::positive, true, true, true}, Try{BudMass::decay, false, true, true},
        Try{BudMass::uniform, false, true, false}}) {
    for (const double exponent : {0.0, 0.4, 0.5, 0.9, 1.0}) {
      CAPTURE(static_cast<int>(t.mass), t.by_sum, t.causal, t.self, exponent);
      const BudParams params{
          .visible = {.keys = T, .causal = t.causal, .self = t.self, .key_lengths = lengths},
          .mass = t.mass,
          .scale = 2.5,
          .base = 0.8,
          .by_sum = t.by_sum,
          .exponent = exponent};
      const bool looks = t.mass == BudMass::exponential || t.mass == BudMass::positive;
      const std::vector<Ranges> found = grown(looks ? q : Tensor(), looks ? k : Tensor(), B, T, params);
      for (int64_t b = 0; b < B; ++b) {
        for (int64_t i = 0; i < T; ++i) {
          const int64_t before = t.causal ? (t.self ? i + 1 : i) : T,
                        leaves = std::min<int64_t>(before, b == 0 ? 37 : 21);
          const Mass mass = [&](int64_t first, int64_t last) {
            if (t.mass == BudMass::uniform) return 1.0;
            if (t.mass == BudMass::decay) {
              double total = 0;
              for (int64_t j = first; j < last; ++j)
                total += 0.2 * std::pow(0.8, static_cast<double>(leaves - 1 - j));
              return total + 1e-10;
            }
            double total = 0;
            for (int64_t h = 0; h < H; ++h) {
              double along = 0;
              for (int64_t j = first; j < last; ++j) {
                for (int64_t c = 0; c < w; ++c)
                  along += a[static_cast<size_t>(((b * H + h) * T + i) * w + c)] *
                           x[static_cast<size_t>(((b * H + h) * T + j) * w + c)];
              }
              along /= static_cast<double>(last - first);
              total += t.mass == BudMass::exponential ? std::exp(2.5 * along) : std::max(along, 0.0);
            }
            return total * (t.by_sum ? static_cast<double>(last - first) : 1.0) + 1e-10;
          };
          const Ranges& own = found[static_cast<size_t>(b * T + i)];
          CHECK(whole(own, leaves));
          CHECK(static_cast<int64_t>(own.size()) == kernel::bud_count(leaves, exponent));
          if (leaves > 0) CHECK(own == greedily(leaves, kernel::bud_count(leaves, exponent), mass));
        }
      }
    }
  }
}

TEST_CASE("tree_buds: drawn buds are all positions once, of every number of keys") {
  const OnEachDevice here;
  const int64_t T = 70;
  const Tensor q = test::heads(1, 2, T, 3, DType::f32, 1), k = test::heads(1, 2, T, 3, DType::f32, 2);
  Rng rng(11);
  for (const int64_t parallel : {1, 2, 8}) {
    for (const double exponent : {0.2, 0.5, 1.0}) {
      const BudParams params{.visible = {.keys = T, .causal = true},
                             .scale = 3,
                             .exponent = exponent,
                             .parallel = parallel,
                             .greedy = false,
                             .draw = rng.next()};
      const std::vector<Ranges> found = grown(q, k, 1, T, params);
      for (int64_t i = 0; i < T; ++i) {
        CAPTURE(parallel, exponent, i);
        const Ranges& own = found[static_cast<size_t>(i)];
        const int64_t wanted = kernel::bud_count(i + 1, exponent);
        CHECK(whole(own, i + 1));
        CHECK(static_cast<int64_t>(own.size()) >= wanted);
        CHECK(static_cast<int64_t>(own.size()) <= wanted + parallel - 1);
      }
      CHECK(grown(q, k, 1, T, params) == found);
      const int before = threads();
      set_threads(before == 1 ? 3 : 1);
      CHECK(grown(q, k, 1, T, params) == found);
      set_threads(before);
    }
  }
}

TEST_CASE("tree_buds: given draws decide, by the masses of decay") {
  const OnEachDevice here;
  // Four keys give masses 0.1875 and 0.75 after the root is split: a fifth for the left one.
  const auto after = [](double u) {
    const std::vector<double> numbers{0.5, u, 0, 0, 0, 0, 0, 0};
    const BudParams params{.visible = {.keys = 4},
                           .mass = BudMass::decay,
                           .base = 0.5,
                           .exponent = 0.7,  // 4^0.7 = 2.64
                           .greedy = false,
                           .draws = Tensor::of<double>(numbers, Shape{1, 8})};
    REQUIRE(kernel::bud_draws(params) <= 8);
    return grown({}, {}, 1, 1, params)[0];
  };
  CHECK(after(0.1999) == Ranges{{0, 1}, {1, 2}, {2, 4}});
  CHECK(after(0.2001) == Ranges{{0, 2}, {2, 3}, {3, 4}});
}

TEST_CASE("tree_buds: frequencies follow the masses (chi-square)") {
  const OnEachDevice here;
  // 8 keys, 3 buds: the left half is split with probability (b^4 - b^8) / (1 - b^8).
  const int64_t queries = 20000;
  const double base = 0.7, left = (std::pow(base, 4) - std::pow(base, 8)) / (1 - std::pow(base, 8));
  Rng rng(13);
  const BudParams params{.visible = {.keys = 8},
                         .mass = BudMass::decay,
                         .base = base,
                         .exponent = 0.5,
                         .greedy = false,
                         .draw = rng.next()};
  double count = 0;
  for (const Ranges& buds : grown({}, {}, 1, queries, params)) {
    REQUIRE(buds.size() == 3);
    if (buds[0].second == 2) ++count;
  }
  const double expected = left * static_cast<double>(queries);
  CHECK((count - expected) * (count - expected) / (expected * (1 - left)) < 10.8);  // one in a thousand
}

TEST_CASE("tree_buds: a process draws for its rows of a batch what one process draws for them") {
  const OnEachDevice here;
  Rng rng(13);
  const BudParams params{.visible = {.keys = 40},
                         .mass = BudMass::uniform,
                         .exponent = 0.5,
                         .greedy = false,
                         .draw = rng.next()};
  const auto whole = grown({}, {}, 5, 6, params);
  const auto alone = grown({}, {}, 3, 6, params);
  const SharedRows shared({2, 3});
  const auto joined = grown({}, {}, 3, 6, params);
  CHECK(std::equal(joined.begin(), joined.end(), whole.begin() + 2 * 6));
  CHECK(alone != joined);
}

TEST_CASE("tree_buds: buds drawn together are different ones") {
  const OnEachDevice here;
  Rng rng(17);
  // Two starting nodes of four keys each, both drawn: never one of them twice.
  const BudParams params{.visible = {.keys = 8},
                         .mass = BudMass::uniform,
                         .exponent = 0.6,  // 8^0.6 = 3.48
                         .parallel = 2,
                         .greedy = false,
                         .draw = rng.next()};
  for (const Ranges& buds : grown({}, {}, 1, 300, params))
    CHECK(buds == Ranges{{0, 2}, {2, 4}, {4, 6}, {6, 8}});
}

TEST_CASE("tree_buds: masses that overflow or are no numbers still give buds") {
  const OnEachDevice here;
  Tensor q = Tensor::full(Shape{1, 1, 9, 1}, 1e3), k = Tensor::full(Shape{1, 1, 9, 1}, 1e3);
  k.data<float>()[3] = std::nanf("");
  Rng rng(19);
  for (const bool greedy : {true, false}) {
    const BudParams params{.visible = {.keys = 9, .causal = true}, .greedy = greedy, .draw = rng.next()};
    const std::vector<Ranges> found = grown(q, k, 1, 9, params);
    for (int64_t i = 0; i < 9; ++i) CHECK(whole(found[static_cast<size_t>(i)], i + 1));
  }
}

}  // namespace heed
