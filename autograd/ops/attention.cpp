// Fused attention ops over dense, patterned and local kernels; none materialises the map [B, H, Tq, Tk].
#include "heed/core/kernels/attention/attention.h"

#include "heed/autograd/autocast.h"
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/column_parts.h"
#include "heed/autograd/ops/fused_op_heads.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/content/tree_node.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/core/sparse_pattern.h"

namespace heed {
namespace {

/// Checks the key lengths of `batch` sequences and the dropout, which all forms of attention have, detaches
/// the lengths from the graph, and sets the rounding of products.
template <class Params>
void settle_common(const char* op, int64_t batch, Params& params) {
  check_lengths(op, params.key_lengths, batch);
  if (params.key_lengths) params.key_lengths = contiguous(params.key_lengths.detach());
  check_dropout(op, params.dropout, params.draw);
  params.rounding = product_rounding();
}

/// Returns the parameters detached from the graph. Fails on those that do not fit q and k.
kernel::AttentionParams settled(const char* op, const Tensor& q, const Tensor& k,
                                kernel::AttentionParams params) {
  const int64_t batch = batch_of(op, q, params.queries),
                Tq = params.queries ? params.queries.longest : q.extent(2),
                Tk = params.keys ? params.keys.longest : k.extent(2);
  settle_common(op, batch, params);
  if (!(params.softcap >= 0)) fail(op, ": softcap ", params.softcap, ". It must be above 0, or 0 for none.");
  check_formulas(op, q, params.formulas);
  if (params.formulas.score && params.softcap > 0) {
    fail(op, ": a softcap of ", params.softcap,
         " and a formula of scores. Write the cap into the formula: softcap * tanh(score / softcap).");
  }
  const int64_t H = q.extent(1), span = Tq + Tk - 1;
  if (params.relative) {
    agree(op, q, params.relative);
    if (!(params.relative.shape() == Shape{H, span})) {
      fail(op, ": a relative bias ", params.relative.shape(), " for q ", q.shape(), " and k ", k.shape(),
           ". It must be ", Shape{H, span}, ": one number for each distance.");
    }
    if (params.softcap > 0 && params.relative.node() && recording()) {
      fail(op,
           ": with a softcap the relative bias gets no gradient. Use matmul and softmax, or detach() it.");
    }
    params.relative = contiguous(params.relative.detach());
  }
  if (params.sink) {
    agree(op, q, params.sink);
    if (!(params.sink.shape() == Shape{H})) {
      fail(op, ": a sink ", params.sink.shape(), " for ", H, " heads. It must be ", Shape{H}, ".");
    }
    if (params.queries && params.sink.node() && recording())
      fail(op,
           ": with packed queries the sink gets no gradient. Pad them with pad_packed(), or detach() it.");
    params.sink = contiguous(params.sink.detach());
  }
  if (params.bias) {
    agree(op, q, params.bias);
    const Shape scores{batch, H, Tq, Tk};
    bool fits = params.bias.rank() == 4;
    for (int64_t axis = 0; fits && axis < 4; ++axis) {
      fits = params.bias.extent(axis) == 1 || params.bias.extent(axis) == scores[axis];
    }
    if (!fits)
      fail(op, ": a bias ", params.bias.shape(), " for scores ", scores,
           ". Its extents must be those, or 1.");
    if (params.bias.node() && recording()) {
      fail(op,
           ": the bias wants a gradient, which this fused op does not give. Use matmul and softmax, or "
           "detach() it.");
    }
    params.bias = params.bias.detach();
  }
  return params;
}

kernel::PatternParams settled(const char* op, const Tensor& q, const Tensor& k,
                              kernel::PatternParams params) {
  settle_common(op, q.extent(0), params);
  if (!params.pattern) fail(op, ": there is no pattern. Give one, or use attention().");
  const kernel::Pattern& pattern = *params.pattern;
  if ((pattern.heads != 1 && pattern.heads != q.extent(1)) || pattern.queries != q.extent(2) ||
      pattern.keys != k.extent(2)) {
    fail(op, ": a pattern of ", pattern.heads, " heads, ", pattern.queries, " queries and ", pattern.keys,
         " keys for q ", q.shape(), " and k ", k.shape(), ".");
  }
  return params;
}

/// dL/dz [H] of a sink z, which takes the weight exp(z - lse) of each row and has no value.
Tensor sink_gradient(const Tensor& sink, const Tensor& out, const Tensor& lse, const Tensor& dout) {
  const Shape per_row{lse.extent(1), lse.extent(2), lse.extent(3), 1};
  const Tensor share =
      exp(reshape(sink, Shape{1, sink.extent(0), 1, 1}) - reshape(slice(lse, 0, 0, 1), per_row));
  const Tensor lost = sum(dout * out, -1) * share;  // [B, H, Tq, 1]
  return -reshape(sum_to(lost, Shape{1, sink.extent(0), 1, 1}), sink.shape());
}

/// A new tensor [2, B, H, Tq] for the log-sum-exp of all rows and then their rounding errors: see
/// kernel::RowLse. Packed sequences have as many rows there as the longest of them.
Tensor empty_row_logs(const Tensor& q, const PackedSequences& packed = {}) {
  if (packed) return empty_like(q, Shape{2, packed.count(), q.extent(1), packed.longest});
  return empty_like(q, Shape{2, q.extent(0), q.extent(1), q.extent(2)});
}

/// The op of two kernels. `grouped`: several heads of q may use one head of k and v.
template <class Forward, class Backward, class Params>
Tensor fused(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, const Params& given,
             bool grouped) {
  constexpr bool is_dense = std::is_same_v<Params, kernel::AttentionParams>;
  PackedSequences queries, keys;
  if constexpr (is_dense) queries = given.queries, keys = given.keys;
  check_heads(op, q, k, v, grouped, queries, keys);
  const Params params = settled(op, q, k, given);
  const Tensor rq = rows(q), rk = rows(k), rv = rows(v);
  const Tensor out = heads_like(q, q.extent(2), v.extent(3)), lse = empty_row_logs(q, queries);
  launch<Forward>(q.device(), rq, rk, rv, params, out, lse);
  std::vector<Tensor> inputs{q, k, v};
  bool has_relative_gradient = false, has_sink_gradient = false;
  if constexpr (is_dense) {
    inputs.insert(inputs.end(), {given.relative, given.sink});
    has_relative_gradient = given.relative && given.relative.node();
    has_sink_gradient = given.sink && given.sink.node();
  }
  const auto vjp = [rq, rk, rv, params, out, lse, has_relative_gradient,
                    has_sink_gradient](const Tensor& dy) -> Gradients {
    const Tensor dout = rows(dy);
    Gradients gradients = gradients_like({{rq, rk, rv}});
    kernel::AttentionBackTensors t{.q = rq,
                                   .k = rk,
                                   .v = rv,
                                   .out = out,
                                   .lse = lse,
                                   .dout = dout,
                                   .dq = gradients[0],
                                   .dk = gradients[1],
                                   .dv = gradients[2]};
    if constexpr (is_dense) {
      if (has_relative_gradient) t.drelative = empty_like(params.relative);
    }
    launch<Backward>(rq.device(), t, params);
    if constexpr (is_dense) {
      gradients.insert(
          gradients.end(),
          {t.drelative, has_sink_gradient ? sink_gradient(params.sink, out, lse, dout) : Tensor()});
    }
    return gradients;
  };
  return record(op, out, inputs, vjp);
}

/// The op with the log-sum-exp of each row as last column of the result.
template <class Forward, class Backward, class Params>
Tensor with_sums(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, const Params& given) {
  check_heads(op, q, k, v);
  const Params params = settled(op, q, k, given);
  const Tensor rq = rows(q), rk = rows(k);
  const int64_t dv = v.extent(3);
  // One more column of values, all zero: the kernel leaves room for the sums behind its output.
  const Tensor rv = empty_like(v, Shape{v.extent(0), v.extent(1), v.extent(2), dv + 1});
  launch<kernel::Copy>(v.device(), v.detach(), view::slice(rv, 3, 0, dv));
  launch<kernel::Fill>(v.device(), view::slice(rv, 3, dv, dv + 1), 0.0);
  const Tensor out = empty_like(q, Shape{q.extent(0), q.extent(1), q.extent(2), dv + 1});
  const Tensor lse = empty_row_logs(q);
  launch<Forward>(q.device(), rq, rk, rv, params, out, lse);
  const Tensor last = view::slice(out, 3, dv, dv + 1);
  launch<kernel::Copy>(q.device(), view::reshape(view::slice(lse, 0, 0, 1), last.shape()), last);
  return record(op, out, {&q, &k, &v}, [rq, rk, rv, params, out, lse, dv](const Tensor& dout) -> Gradients {
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
    launch<Backward>(rq.device(), t, params);
    return {dq, dk, contiguous(view::slice(dv_wide, 3, 0, dv))};
  });
}

}  // namespace

Tensor attention_with_sums(const Tensor& q, const Tensor& k, const Tensor& v,
                           const kernel::AttentionParams& params) {
  return with_sums<kernel::Attention, kernel::AttentionBack>("attention_with_sums", q, k, v, params);
}

Tensor pattern_attention_with_sums(const Tensor& q, const Tensor& k, const Tensor& v,
                                   const kernel::PatternParams& params) {
  return with_sums<kernel::PatternAttention, kernel::PatternAttentionBack>("pattern_attention_with_sums", q,
                                                                           k, v, params);
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const kernel::AttentionParams& params) {
  return fused<kernel::Attention, kernel::AttentionBack>("attention", q, k, v, params, true);
}

Tensor pattern_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                         const kernel::PatternParams& params) {
  return fused<kernel::PatternAttention, kernel::PatternAttentionBack>("pattern_attention", q, k, v, params,
                                                                       false);
}

namespace {

/// Sums of the leaves [B, H, T, d] below each node of their tree.
Tensor tree_sums(const Tensor& leaves) {
  const Tensor nodes = empty_like(leaves, Shape{leaves.extent(0), leaves.extent(1),
                                                kernel::tree_rows(leaves.extent(2)), leaves.extent(3)});
  launch<kernel::TreeSums>(leaves.device(), rows(leaves), 0, nodes);
  return nodes;
}

}  // namespace

Tensor tree_attention(const Tensor& q, const Tensor& k, const Tensor& v, kernel::TreeParams params) {
  check_heads("tree_attention", q, k, v);
  check_lengths("tree_attention", params.visible.key_lengths, q.extent(0));
  const Tensor& buds = params.buds;
  if (!buds || buds.dtype() != DType::i32 || buds.rank() != 3 || buds.extent(0) != q.extent(0) ||
      buds.extent(1) != q.extent(2) || params.visible.keys != k.extent(2)) {
    fail("tree_attention: buds ", buds.dtype(), " ", buds.shape(), " of ", params.visible.keys,
         " leaves for q ", q.shape(), " and k ", k.shape(),
         "; they must be i32 [B, Tq, max buds], of as many leaves as keys.");
  }
  const Tensor rq = rows(q);
  if (!params.key_nodes) params.key_nodes = tree_sums(k);
  if (!params.value_nodes) params.value_nodes = tree_sums(v);
  const Tensor out = heads_like(q, q.extent(2), v.extent(3));
  const Tensor lse = empty_like(q, Shape{q.extent(0), q.extent(1), q.extent(2)});
  launch<kernel::TreeAttention>(q.device(), rq, params, out, lse);
  return record("tree_attention", out, {&q, &k, &v}, [rq, params, out, lse](const Tensor& dout) -> Gradients {
    const Tensor dq = gradient_like(rq);
    const Tensor dk = heads_like(rq, params.visible.keys, rq.extent(3));
    const Tensor dv = heads_like(rq, params.visible.keys, out.extent(3));
    launch<kernel::TreeAttentionBack>(
        rq.device(),
        kernel::TreeAttentionBackTensors{
            .q = rq, .out = out, .lse = lse, .dout = rows(dout), .dq = dq, .dk = dk, .dv = dv},
        params);
    return {dq, dk, dv};
  });
}

}  // namespace heed
