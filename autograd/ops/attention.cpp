// Fused attention ops over dense, patterned and local kernels; none materialises the map [B, H, Tq, Tk].
#include "heed/core/kernels/attention/attention.h"

#include "heed/autograd/mixed_precision.h"
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/fused_op_heads.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/content/tree.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/core/sparse_pattern.h"

namespace heed {
namespace {

/// `shared`: several heads of q may use one head of k and v.
void check(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, bool shared = false) {
  const bool heads_agree =
      q.rank() == 4 && k.rank() == 4 &&
      (q.extent(1) == k.extent(1) || (shared && k.extent(1) > 0 && q.extent(1) % k.extent(1) == 0));
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || q.extent(0) != k.extent(0) || !heads_agree ||
      q.extent(3) != k.extent(3) || k.extent(0) != v.extent(0) || k.extent(1) != v.extent(1) ||
      k.extent(2) != v.extent(2)) {
    fail(op, ": q ", q.shape(), ", k ", k.shape(), ", v ", v.shape(),
         "; they must be [B, H, Tq, d], [B, H, Tk, d], [B, H, Tk, dv]",
         shared ? ", and heads of k and v may be fewer if they divide H." : ".");
  }
  agree(op, q, k);
  agree(op, q, v);
}

void check_lengths(const char* op, const Tensor& lengths, const Tensor& q) {
  if (!lengths) return;
  if (lengths.dtype() != DType::i32 || !(lengths.shape() == Shape{q.extent(0)})) {
    fail(op, ": key lengths ", lengths.dtype(), " ", lengths.shape(), "; they must be i32 [", q.extent(0),
         "], one a sequence.");
  }
}

void check_dropout(const char* op, double dropout, const Draw& draw) {
  if (dropout < 0 || dropout >= 1) fail(op, ": dropout ", dropout, ". It must be at least 0 and below 1.");
  if (dropout > 0 && !draw.tick) fail(op, ": dropout needs a draw. Take one from Rng::next().");
}

/// The terms detached from the graph, checked against q and k.
kernel::AttentionTerms settled(const char* op, const Tensor& q, const Tensor& k,
                               kernel::AttentionTerms terms) {
  check_lengths(op, terms.key_lengths, q);
  if (terms.key_lengths) terms.key_lengths = contiguous(terms.key_lengths.detach());
  check_dropout(op, terms.dropout, terms.draw);
  terms.rounding = product_rounding();
  if (!(terms.softcap >= 0)) fail(op, ": softcap ", terms.softcap, ". It must be above 0, or 0 for none.");
  const int64_t H = q.extent(1), span = q.extent(2) + k.extent(2) - 1;
  if (terms.relative) {
    agree(op, q, terms.relative);
    if (!(terms.relative.shape() == Shape{H, span})) {
      fail(op, ": a relative bias ", terms.relative.shape(), " for q ", q.shape(), " and k ", k.shape(),
           ". It must be ", Shape{H, span}, ": one number for each distance.");
    }
    if (terms.softcap > 0 && terms.relative.node() && recording()) {
      fail(op,
           ": with a softcap the relative bias gets no gradient. Use matmul and softmax, or detach() it.");
    }
    terms.relative = contiguous(terms.relative.detach());
  }
  if (terms.sink) {
    agree(op, q, terms.sink);
    if (!(terms.sink.shape() == Shape{H})) {
      fail(op, ": a sink ", terms.sink.shape(), " for ", H, " heads. It must be ", Shape{H}, ".");
    }
    terms.sink = contiguous(terms.sink.detach());
  }
  if (terms.bias) {
    agree(op, q, terms.bias);
    const Shape scores{q.extent(0), q.extent(1), q.extent(2), k.extent(2)};
    bool fits = terms.bias.rank() == 4;
    for (int64_t axis = 0; fits && axis < 4; ++axis) {
      fits = terms.bias.extent(axis) == 1 || terms.bias.extent(axis) == scores[axis];
    }
    if (!fits)
      fail(op, ": a bias ", terms.bias.shape(), " for scores ", scores, ". Its extents must be those, or 1.");
    if (terms.bias.node() && recording()) {
      fail(op,
           ": the bias wants a gradient, which this fused op does not give. Use matmul and softmax, or "
           "detach() it.");
    }
    terms.bias = terms.bias.detach();
  }
  return terms;
}

kernel::PatternTerms settled(const char* op, const Tensor& q, const Tensor& k, kernel::PatternTerms terms) {
  check_lengths(op, terms.key_lengths, q);
  if (terms.key_lengths) terms.key_lengths = contiguous(terms.key_lengths.detach());
  check_dropout(op, terms.dropout, terms.draw);
  terms.rounding = product_rounding();
  if (!terms.pattern) fail(op, ": there is no pattern. Give one, or use attention().");
  const kernel::Pattern& pattern = *terms.pattern;
  if ((pattern.heads != 1 && pattern.heads != q.extent(1)) || pattern.queries != q.extent(2) ||
      pattern.keys != k.extent(2)) {
    fail(op, ": a pattern of ", pattern.heads, " heads, ", pattern.queries, " queries and ", pattern.keys,
         " keys for q ", q.shape(), " and k ", k.shape(), ".");
  }
  return terms;
}

/// dL/dz [H] of a sink z, which takes the weight exp(z - lse) of each row and has no value.
Tensor sink_gradient(const Tensor& sink, const Tensor& out, const Tensor& lse, const Tensor& dout) {
  const Shape per_row{lse.extent(1), lse.extent(2), lse.extent(3), 1};
  const Tensor share =
      exp(reshape(sink, Shape{1, sink.extent(0), 1, 1}) - reshape(slice(lse, 0, 0, 1), per_row));
  const Tensor lost = sum(dout * out, -1) * share;  // [B, H, Tq, 1]
  return -reshape(sum_to(lost, Shape{1, sink.extent(0), 1, 1}), sink.shape());
}

/// log-sum-exp of all rows, followed by their rounding errors: see kernel::RowLog.
Tensor room_for_logs(const Tensor& q) {
  return empty_like(q, Shape{2, q.extent(0), q.extent(1), q.extent(2)});
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const kernel::AttentionTerms& terms) {
  check("attention", q, k, v, true);
  const kernel::AttentionTerms settled_terms = settled("attention", q, k, terms);
  const Tensor rq = rows(q), rk = rows(k), rv = rows(v);
  const Tensor out = heads_like(q, q.extent(2), v.extent(3));
  const Tensor lse = room_for_logs(q);
  launch<kernel::Attention>(q.device(), rq, rk, rv, settled_terms, out, lse);
  const bool slanted = terms.relative && terms.relative.node();
  return record("attention", out, {&q, &k, &v, &terms.relative, &terms.sink},
                [rq, rk, rv, settled_terms, out, lse, slanted](const Tensor& given) -> Gradients {
                  const Tensor dout = rows(given);
                  const Tensor dq = gradient_like(rq);
                  const Tensor dk = gradient_like(rk);
                  const Tensor dv = gradient_like(rv);
                  const Tensor drelative = slanted ? empty_like(settled_terms.relative) : Tensor();
                  const kernel::AttentionBackTensors t{.q = rq,
                                                       .k = rk,
                                                       .v = rv,
                                                       .out = out,
                                                       .lse = lse,
                                                       .dout = dout,
                                                       .dq = dq,
                                                       .dk = dk,
                                                       .dv = dv,
                                                       .drelative = drelative};
                  launch<kernel::AttentionBack>(rq.device(), t, settled_terms);
                  const Tensor& sink = settled_terms.sink;
                  return {dq, dk, dv, drelative, sink ? sink_gradient(sink, out, lse, dout) : Tensor()};
                });
}

namespace {

template <class Forward, class Backward, class Terms>
Tensor with_sums(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, const Terms& given) {
  check(op, q, k, v);
  const Terms terms = settled(op, q, k, given);
  const Tensor rq = rows(q), rk = rows(k);
  const int64_t dv = v.extent(3);
  // One more column of values, all zero: the kernel leaves room for the sums behind its output.
  const Tensor rv = empty_like(v, Shape{v.extent(0), v.extent(1), v.extent(2), dv + 1});
  launch<kernel::Copy>(v.device(), v.detach(), view::slice(rv, 3, 0, dv));
  launch<kernel::Fill>(v.device(), view::slice(rv, 3, dv, dv + 1), 0.0);
  const Tensor out = empty_like(q, Shape{q.extent(0), q.extent(1), q.extent(2), dv + 1});
  const Tensor lse = room_for_logs(q);
  launch<Forward>(q.device(), rq, rk, rv, terms, out, lse);
  const Tensor last = view::slice(out, 3, dv, dv + 1);
  launch<kernel::Copy>(q.device(), view::reshape(view::slice(lse, 0, 0, 1), last.shape()), last);
  return record(op, out, {&q, &k, &v}, [rq, rk, rv, terms, out, lse, dv](const Tensor& dout) -> Gradients {
    // d lse_i / d s_ij is the weight itself: a value of 0 whose output counts as -1 adds it.
    const Tensor output = empty_like(out);
    launch<kernel::Copy>(out.device(), view::slice(out, 3, 0, dv), view::slice(output, 3, 0, dv));
    launch<kernel::Fill>(out.device(), view::slice(output, 3, dv, dv + 1), -1.0);
    const Tensor dq = empty_like(rq), dk = empty_like(rk), dv_wide = empty_like(rv);
    const kernel::AttentionBackTensors t{.q = rq,
                                         .k = rk,
                                         .v = rv,
                                         .out = output,
                                         .lse = lse,
                                         .dout = rows(dout),
                                         .dq = dq,
                                         .dk = dk,
                                         .dv = dv_wide};
    launch<Backward>(rq.device(), t, terms);
    return {dq, dk, contiguous(view::slice(dv_wide, 3, 0, dv))};
  });
}

}  // namespace

Tensor attention_with_sums(const Tensor& q, const Tensor& k, const Tensor& v,
                           const kernel::AttentionTerms& terms) {
  return with_sums<kernel::Attention, kernel::AttentionBack>("attention_with_sums", q, k, v, terms);
}

Tensor pattern_attention_with_sums(const Tensor& q, const Tensor& k, const Tensor& v,
                                   const kernel::PatternTerms& terms) {
  return with_sums<kernel::PatternAttention, kernel::PatternAttentionBack>("block_attention_with_sums", q, k,
                                                                           v, terms);
}

Tensor pattern_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                         const kernel::PatternTerms& terms) {
  check("block_attention", q, k, v);
  const kernel::PatternTerms settled_terms = settled("block_attention", q, k, terms);
  const Tensor rq = rows(q), rk = rows(k), rv = rows(v);
  const Tensor out = heads_like(q, q.extent(2), v.extent(3));
  const Tensor lse = room_for_logs(q);
  launch<kernel::PatternAttention>(q.device(), rq, rk, rv, settled_terms, out, lse);
  return record("block_attention", out, {&q, &k, &v},
                [rq, rk, rv, settled_terms, out, lse](const Tensor& dout) -> Gradients {
                  const Tensor dq = gradient_like(rq);
                  const Tensor dk = gradient_like(rk);
                  const Tensor dv = gradient_like(rv);
                  const kernel::AttentionBackTensors t{.q = rq,
                                                       .k = rk,
                                                       .v = rv,
                                                       .out = out,
                                                       .lse = lse,
                                                       .dout = rows(dout),
                                                       .dq = dq,
                                                       .dk = dk,
                                                       .dv = dv};
                  launch<kernel::PatternAttentionBack>(rq.device(), t, settled_terms);
                  return {dq, dk, dv};
                });
}

namespace {

Tensor tree_of(const Tensor& leaves) {
  const Tensor nodes = empty_like(leaves, Shape{leaves.extent(0), leaves.extent(1),
                                                kernel::tree_rows(leaves.extent(2)), leaves.extent(3)});
  launch<kernel::TreeSums>(leaves.device(), rows(leaves), 0, nodes);
  return nodes;
}

}  // namespace

Tensor tree_attention(const Tensor& q, const Tensor& k, const Tensor& v, kernel::TreeTerms terms) {
  check("tree_attention", q, k, v);
  check_lengths("tree_attention", terms.reach.key_lengths, q);
  const Tensor& buds = terms.buds;
  if (!buds || buds.dtype() != DType::i32 || buds.rank() != 3 || buds.extent(0) != q.extent(0) ||
      buds.extent(1) != q.extent(2) || terms.reach.keys != k.extent(2)) {
    fail("tree_attention: buds ", buds.dtype(), " ", buds.shape(), " of ", terms.reach.keys, " leaves for q ",
         q.shape(), " and k ", k.shape(), "; they must be i32 [B, Tq, most], of as many leaves as keys.");
  }
  const Tensor rq = rows(q);
  if (!terms.key_nodes) terms.key_nodes = tree_of(k);
  if (!terms.value_nodes) terms.value_nodes = tree_of(v);
  const Tensor out = heads_like(q, q.extent(2), v.extent(3));
  const Tensor lse = empty_like(q, Shape{q.extent(0), q.extent(1), q.extent(2)});
  launch<kernel::TreeAttention>(q.device(), rq, terms, out, lse);
  return record("tree_attention", out, {&q, &k, &v}, [rq, terms, out, lse](const Tensor& dout) -> Gradients {
    const Tensor dq = gradient_like(rq);
    const Tensor dk = heads_like(rq, terms.reach.keys, rq.extent(3));
    const Tensor dv = heads_like(rq, terms.reach.keys, out.extent(3));
    launch<kernel::TreeAttentionBack>(
        rq.device(),
        kernel::TreeAttentionBackTensors{
            .q = rq, .out = out, .lse = lse, .dout = rows(dout), .dq = dq, .dk = dk, .dv = dv},
        terms);
    return {dq, dk, dv};
  });
}

}  // namespace heed
