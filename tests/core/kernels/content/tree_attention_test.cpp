// Tests core/kernels/content/tree_attention.h: node sums, and attention over buds, against plain double
// loops.
#include "heed/core/kernels/content/tree_attention.h"

#include <cmath>
#include <cstring>

#include "heed/core/kernels/content/prefix_tree.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/catch.h"
#include "heed/tests/core/kernels/arguments_on_device.h"
#include "heed/tests/core/kernels/attention_reference.h"

namespace heed {
namespace {

using kernel::TreeNode;
using kernel::TreeParams;
using kernel::VisibleLeaves;
using Numbers = std::vector<double>;

struct Sizes {
  int64_t B, H, Tq, Tk, d, dv;
};

/// Nodes of one level over the keys of each query: the last is cut where they do not fill it. `high`: level 2
/// for even queries and 1 for odd ones.
Tensor level_buds(const Sizes& s, const VisibleLeaves& visible) {
  const Tensor buds = Tensor::full(Shape{s.B, s.Tq, (s.Tk + 1) / 2 + 1}, -1, DType::i32);
  for (int64_t row = 0; row < s.B * s.Tq; ++row) {
    const int64_t leaves = visible.count(row / s.Tq, row % s.Tq);
    int32_t* to = buds.data<int32_t>() + row * buds.extent(2);
    for (TreeNode node{row % 2 == 0 ? 2 : 1, 0}; node.begin() < leaves; ++node.index)
      *to++ = static_cast<int32_t>(node.row());
  }
  return buds;
}

Tensor nodes_of(const Tensor& leaves) {
  const Tensor nodes = Tensor::full(
      Shape{leaves.extent(0), leaves.extent(1), kernel::tree_rows(leaves.extent(2)), leaves.extent(3)},
      std::nan(""), leaves.dtype());
  launch_here<kernel::TreeSums>(leaves, 0, nodes);
  return nodes;
}

struct Run {
  Tensor out, lse, dq, dk, dv;
};

Run run(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dout, TreeParams params) {
  params.key_nodes = nodes_of(k);
  params.value_nodes = nodes_of(v);
  Run r{.out = test::blank_like(dout),
        .lse = Tensor(Shape{q.extent(0), q.extent(1), q.extent(2)}, q.dtype()),
        .dq = test::blank_like(q),
        .dk = test::blank_like(k),
        .dv = test::blank_like(v)};
  launch_here<kernel::TreeAttention>(q, params, r.out, r.lse);
  launch_here<kernel::TreeAttentionBack>(
      kernel::TreeAttentionBackTensors{
          .q = q, .out = r.out, .lse = r.lse, .dout = dout, .dq = r.dq, .dk = r.dk, .dv = r.dv},
      params);
  return r;
}

struct Plain {
  Numbers out, lse, dq, dk, dv;
};

Plain plainly(const Sizes& s, const Tensor& tq, const Tensor& tk, const Tensor& tv, const Tensor& tdout,
              const TreeParams& params) {
  const Numbers q = tq.to_doubles(), k = tk.to_doubles(), v = tv.to_doubles(), g = tdout.to_doubles();
  Plain r{Numbers(g.size()), Numbers(static_cast<size_t>(s.B * s.H * s.Tq), -HUGE_VAL), Numbers(q.size()),
          Numbers(k.size()), Numbers(v.size())};
  for (int64_t head = 0; head < s.B * s.H; ++head) {
    for (int64_t i = 0; i < s.Tq; ++i) {
      const int64_t b = head / s.H, leaves = params.visible.count(b, i), row = head * s.Tq + i;
      const int32_t* bud = params.buds.data<int32_t>() + (b * s.Tq + i) * params.buds.extent(2);
      struct Part {
        int64_t begin, end;
        double e, along;
      };
      std::vector<Part> parts;
      double total = 0;
      for (; leaves > 0 && *bud >= 0; ++bud) {
        const TreeNode node = TreeNode::at_row(*bud);
        Part part{node.begin(), std::min(node.end(), leaves), 0, 0};
        double score = 0;
        for (int64_t j = part.begin; j < part.end; ++j) {
          for (int64_t c = 0; c < s.d; ++c) score += q[row * s.d + c] * k[(head * s.Tk + j) * s.d + c];
          for (int64_t c = 0; c < s.dv; ++c)
            part.along += g[row * s.dv + c] * v[(head * s.Tk + j) * s.dv + c];
        }
        const auto size = static_cast<double>(part.end - part.begin);
        part.e = std::exp(params.scale * score / size);
        total += part.e * (params.counts_leaves ? size : 1);
        parts.push_back(part);
      }
      if (parts.empty()) continue;
      r.lse[row] = std::log(total);
      double mean = 0;
      for (const Part& part : parts) mean += part.e / total * part.along;
      for (const Part& part : parts) {
        const auto size = static_cast<double>(part.end - part.begin);
        const double weight = part.e / total;
        const double dscore =
            weight * (part.along - (params.counts_leaves ? size : 1) * mean) * params.scale / size;
        for (int64_t j = part.begin; j < part.end; ++j) {
          const int64_t key = head * s.Tk + j;
          for (int64_t c = 0; c < s.dv; ++c) {
            r.out[row * s.dv + c] += weight * v[key * s.dv + c];
            r.dv[key * s.dv + c] += weight * g[row * s.dv + c];
          }
          for (int64_t c = 0; c < s.d; ++c) {
            r.dq[row * s.d + c] += dscore * k[key * s.d + c];
            r.dk[key * s.d + c] += dscore * q[row * s.d + c];
          }
        }
      }
    }
  }
  return r;
}

}  // namespace

TEST_CASE("tree: nodes lie in order, and rows tell which") {
  for (int64_t level = 0; level < 5; ++level) {
    for (int64_t index = 0; index < 9; ++index) {
      const TreeNode node{level, index}, back = TreeNode::at_row(node.row());
      CHECK(back.level == level);
      CHECK(back.index == index);
      CHECK(node.end() - node.begin() == int64_t{1} << level);
      if (level == 0) continue;
      CHECK(node.left().begin() == node.begin());
      CHECK(node.right().end() == node.end());
      CHECK(node.left().row() < node.row());
      CHECK(node.right().row() > node.row());
    }
  }
  CHECK(kernel::tree_rows(0) == 0);
  CHECK(kernel::tree_rows(5) == 9);
  CHECK(kernel::tree_height(1) == 0);
  CHECK(kernel::tree_height(4) == 2);
  CHECK(kernel::tree_height(5) == 3);
}

TEST_CASE("tree_attention: full nodes are sums of their leaves, however they came") {
  const OnEachDevice here;
  const int64_t T = 45, w = 7;
  const Tensor x = test::heads(2, 3, T, w, DType::f64, 1);
  const Tensor nodes = nodes_of(x);
  const Numbers leaves = x.to_doubles();
  for (int64_t head = 0; head < 6; ++head) {
    for (int64_t row = 0; row < kernel::tree_rows(T); ++row) {
      const TreeNode node = TreeNode::at_row(row);
      if (node.end() > T) continue;
      for (int64_t c = 0; c < w; ++c) {
        double sum = 0;
        for (int64_t j = node.begin(); j < node.end(); ++j) sum += leaves[(head * T + j) * w + c];
        CHECK(nodes.data<double>()[(head * kernel::tree_rows(T) + row) * w + c] == Approx(sum).margin(1e-12));
      }
    }
  }
  // In portions, into more room than is needed.
  const Tensor grown = Tensor::full(Shape{2, 3, 2 * T, w}, std::nan(""), DType::f64);
  for (int64_t at = 0, next = 1; at < T; at += next, next = std::min(next % 7 + 1, T - at)) {
    launch_here<kernel::TreeSums>(view::slice(x, 2, at, at + std::min(next, T - at)), at, grown);
  }
  for (int64_t row = 0; row < kernel::tree_rows(T); ++row) {
    if (TreeNode::at_row(row).end() > T) continue;
    CHECK(view::slice(grown, 2, row, row + 1).to_doubles() ==
          view::slice(nodes, 2, row, row + 1).to_doubles());
  }
}

TEST_CASE("tree_attention: outputs and gradients are those of plain loops") {
  const OnEachDevice here;
  for (const DType dtype : {DType::f64, DType::f32}) {
    for (const Sizes& s : {Sizes{1, 1, 1, 1, 1, 1}, Sizes{2, 2, 2, 2, 3, 1}, Sizes{3, 2, 17, 17, 5, 9},
                           Sizes{2, 1, 5, 23, 1, 4}, Sizes{1, 1, 301, 301, 18, 33}}) {
      for (const bool causal : {false, true}) {
        for (const bool counted : {false, true}) {
          CAPTURE(to_string(dtype), s.B, s.H, s.Tq, s.Tk, s.d, s.dv, causal, counted);
          VisibleLeaves visible{.keys = s.Tk, .causal = causal, .self = !counted, .first_query = s.Tk - s.Tq};
          if (s.B == 3)
            visible.key_lengths =
                Tensor::of<int32_t>(std::vector<int32_t>{static_cast<int32_t>(s.Tk), 6, 0}, Shape{3});
          const Tensor q = test::heads(s.B, s.H, s.Tq, s.d, dtype, 1),
                       k = test::heads(s.B, s.H, s.Tk, s.d, dtype, 2),
                       v = test::heads(s.B, s.H, s.Tk, s.dv, dtype, 3),
                       dout = test::heads(s.B, s.H, s.Tq, s.dv, dtype, 4);
          const TreeParams params{
              .scale = 0.8, .counts_leaves = counted, .visible = visible, .buds = level_buds(s, visible)};
          const Run found = run(q, k, v, dout, params);
          const Plain expected = plainly(s, q, k, v, dout, params);
          const double tolerance = dtype == DType::f64 ? 1e-12 : 2e-5;
          CHECK(test::distance(found.out, expected.out) < tolerance);
          CHECK(test::distance(found.lse, expected.lse) < tolerance);
          CHECK(test::distance(found.dq, expected.dq) < tolerance);
          CHECK(test::distance(found.dk, expected.dk) < 5 * tolerance);
          CHECK(test::distance(found.dv, expected.dv) < 5 * tolerance);
        }
      }
    }
  }
}

TEST_CASE("tree_attention: the same bits for any number of threads") {
  const OnEachDevice here;
  const Sizes s{1, 1, 600, 600, 8, 8};
  const VisibleLeaves visible{.keys = s.Tk, .causal = true};
  const auto made = [&](uint64_t seed) { return test::heads(s.B, s.H, s.Tq, s.d, DType::f32, seed); };
  const TreeParams params{.visible = visible, .buds = level_buds(s, visible)};
  const auto all = [&] {
    const Run r = run(made(1), made(2), made(3), made(4), params);
    return std::vector<Numbers>{r.out.to_doubles(), r.dq.to_doubles(), r.dk.to_doubles(), r.dv.to_doubles()};
  };
  const int before = threads();
  const auto expected = all();
  for (const int count : {1, 2, 5}) {
    set_threads(count);
    CHECK(all() == expected);
  }
  set_threads(before);
}

TEST_CASE("tree_attention: operations follow the buds, not the pairs") {
  const OnEachDevice here;
  const auto counted = [](int64_t T) {
    const Sizes s{1, 2, T, T, 16, 16};
    const VisibleLeaves visible{.keys = T, .causal = true};
    const Tensor buds = Tensor::full(Shape{1, T, 1}, -1, DType::i32);
    for (int64_t i = 0; i < T; ++i)
      buds.data<int32_t>()[i] = static_cast<int32_t>(TreeNode{kernel::tree_height(i + 1), 0}.row());
    const auto made = [&](uint64_t seed) { return test::heads(s.B, s.H, T, 16, DType::f32, seed); };
    Count::reset();
    run(made(1), made(2), made(3), made(4), {.visible = visible, .buds = buds});
    return static_cast<double>(Count::flops().load());
  };
  CHECK(counted(1024) / counted(512) < 2.4);  // one bud a query: n log n
}

}  // namespace heed
