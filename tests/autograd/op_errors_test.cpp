// Errors of ops: what they reject, and their messages.
#include <memory>

#include "heed/autograd/ops.h"
#include "heed/core/sparse_pattern.h"
#include "heed/tests/device.h"

namespace heed {
namespace {

Tensor ones(const Shape& shape, DType dtype = DType::f32) { return Tensor::full(shape, 1, dtype); }

TEST_CASE("ops: tensors that do not meet are refused with their shapes") {
  const Tensor a = ones({2, 3}), b = ones({3, 2});
  CHECK_THROWS_WITH(a + b, containing("add: [2, 3] and [3, 2] do not broadcast"));
  CHECK_THROWS_WITH(a * ones({2, 3}, DType::f64),
                    containing("multiply: f32 [2, 3] with f64 [2, 3]. Convert one"));
  CHECK_THROWS_WITH(maximum(ones({2}, DType::i32), ones({2}, DType::i32)),
                    containing("computes in f32 and f64, not in i32"));
  CHECK_THROWS_WITH(matmul(a, a), containing("matmul: inner extents differ, [2, 3] times [2, 3]"));
  CHECK_THROWS_WITH(matmul(ones({3}), b),
                    containing("matmul: [3] times [3, 2]. Both need at least two axes"));
  CHECK_THROWS_WITH(matmul(ones({2, 2, 3}), ones({3, 3, 2})),
                    containing("matmul: [2] and [3] do not broadcast"));
  CHECK_THROWS_WITH(matmul(a, ones({3, 2}, DType::f64)), containing("matmul: f32 [2, 3] with f64 [3, 2]"));
  CHECK_THROWS_WITH(linear(a, ones({4, 2}), Tensor()),
                    containing("an input [2, 3] does not fit the weight [4, 2]"));
  CHECK_THROWS_WITH(linear(a, ones({4, 3}), ones({2, 4})),
                    containing("the bias is [2, 4]") && containing("it must be [4]"));
  CHECK_THROWS_WITH(linear(a, ones({4, 3}), ones({4}, DType::f64)),
                    containing("linear: f32 [4, 3] with f64 [4]"));
  CHECK_THROWS_WITH(concat(std::vector{a, b}, 0),
                    containing("concat: [3, 2] does not join [2, 3] along axis 0"));
  CHECK_THROWS_WITH(concat(std::vector{a, ones({2, 3}, DType::f64)}, 0),
                    containing("concat: f32 [2, 3] with f64"));
  CHECK_THROWS_WITH(concat({}, 0), containing("concat: nothing to join"));
  CHECK_THROWS_WITH(where(a, a, 0), containing("where: the mask is f32; it must be u8"));
}

TEST_CASE("ops: axes and extents that are not there are refused") {
  const Tensor a = ones({2, 3}), none = ones({2, 0}), scalar = ones({});
  CHECK_THROWS_WITH(transpose(a, 0, 2), containing("axis 2 of [2, 3]"));
  CHECK_THROWS_WITH(permute(a, {0, 0}), containing("permute: axis 0 of [2, 3] is named twice"));
  CHECK_THROWS_WITH(slice(a, 1, 2, 4), containing("slice: [2, 4) of axis 1 of [2, 3]"));
  CHECK_THROWS_WITH(reshape(a, Shape{4, -1}), containing("reshape: 6 elements do not fill [4, -1]"));
  CHECK_THROWS_WITH(expand(a, Shape{2, 4}), containing("expand: [2, 3]"));
  CHECK_THROWS_WITH(sum_to(a, Shape{2}), containing("sum_to:"));
  CHECK_THROWS_WITH(sum(a, 3), containing("axis 3 of [2, 3]"));
  CHECK_THROWS_WITH(mean(none), containing("mean: [2, 0] has no element"));
  CHECK_THROWS_WITH(mean(none, 1), containing("mean: axis 1 of [2, 0] has no element"));
  CHECK_THROWS_WITH(max(none, -1), containing("max: axis -1 of [2, 0] has no element"));
  CHECK_THROWS_WITH(softmax(scalar), containing("softmax: a single number has no rows"));
  CHECK_THROWS_WITH(log_softmax(scalar), containing("log_softmax: a single number has no rows"));
  CHECK_THROWS_WITH(layer_norm(scalar, ones({1}), Tensor()), containing("axis -1 of []"));
  CHECK_THROWS_WITH(layer_norm(a, ones({2}), Tensor()),
                    containing("layer_norm: gain [2] over an input [2, 3]"));
  CHECK_THROWS_WITH(rms_norm(a, ones({2})), containing("rms_norm: gain [2] over an input [2, 3]"));
  CHECK_THROWS_WITH(depthwise_convolution(ones({1, 4, 3}), ones({2, 4}), true),
                    containing("depthwise_convolution: a weight [2, 4] for x [1, 4, 3]"));
  CHECK_THROWS_WITH(layer_norm(a, ones({3}), ones({3}, DType::f64)),
                    containing("layer_norm: f32 [2, 3] with f64 [3]"));
}

TEST_CASE("ops: ids, targets and chances outside their range are refused") {
  const std::vector<int32_t> three = {0, 5, 1};
  const Tensor ids = Tensor::of<int32_t>(three, Shape{3}), table = ones({4, 2});
  CHECK_THROWS_WITH(embedding(table, ids), containing("id 5 at position 1 is outside the table of 4 rows"));
  CHECK_THROWS_WITH(embedding(table, ones({3})), containing("a table [4, 2] at ids of f32"));
  CHECK_THROWS_WITH(embedding(ones({4}), ids), containing("it must be [V, d] at i32"));
  CHECK_THROWS_WITH(cross_entropy(ones({3, 4}), ids),
                    containing("target 5 of row 1 is none of the 4 classes"));
  CHECK_THROWS_WITH(cross_entropy(ones({2, 4}), ids), containing("targets i32 [3] for logits [2, 4]"));
  CHECK_THROWS_WITH(cross_entropy(ones({3, 6}), ids, 1.0), containing("label smoothing 1"));
  Rng rng(1);
  CHECK_THROWS_WITH(dropout(table, 1.0, &rng), containing("dropout: p = 1"));
  CHECK_THROWS_WITH(dropout(table, -0.1, nullptr), containing("It must be at least 0 and below 1"));
}

TEST_CASE("ops: attention that does not fit together is refused") {
  const Tensor q = ones({2, 1, 3, 4}), k = ones({2, 1, 5, 4}), v = ones({2, 1, 5, 2});
  CHECK_THROWS_WITH(attention(q, k, ones({2, 1, 4, 2}), {}),
                    containing("attention: q [2, 1, 3, 4], k [2, 1, 5, 4], v [2, 1, 4, 2]"));
  CHECK_THROWS_WITH(attention(q, k, ones({2, 1, 5, 2}, DType::f64), {}), containing("attention: f32"));
  CHECK_THROWS_WITH(attention(q, k, v, {.key_lengths = Tensor::zeros(Shape{3}, DType::i32)}),
                    containing("key lengths i32 [3]; they must be i32 [2]"));
  CHECK_THROWS_WITH(attention(q, k, v, {.bias = ones({2, 1, 3, 4})}),
                    containing("a bias [2, 1, 3, 4] for scores [2, 1, 3, 5]"));
  CHECK_THROWS_WITH(attention(q, k, v, {.bias = leaf(ones({1, 1, 3, 5}))}),
                    containing("the bias wants a gradient"));
  CHECK_THROWS_WITH(attention(q, k, v, {.dropout = 0.5}), containing("dropout needs a draw"));
  CHECK_THROWS_WITH(attention(q, k, v, {.dropout = 1}), containing("dropout 1. It must be"));
  CHECK_THROWS_WITH(pattern_attention(q, k, v, {}), containing("there is no pattern"));
  CHECK_THROWS_WITH(pattern_attention(q, k, v, {.dropout = 0.5}), containing("dropout needs a draw"));
  CHECK_THROWS_WITH(pattern_attention(q, k, v, {.dropout = -1}), containing("dropout -1. It must be"));
  const auto pattern = std::make_shared<kernel::Pattern>();
  CHECK_THROWS_WITH(pattern_attention(q, k, v, {.pattern = pattern}),
                    containing("0 queries and 0 keys for q [2, 1, 3, 4]"));
  CHECK_THROWS_WITH(tree_attention(q, k, v, {}), containing("they must be i32 [B, Tq, max buds]"));
  const Tensor buds = Tensor::zeros({q.extent(0), 3, 1}, DType::i32);
  CHECK_THROWS_WITH(tree_attention(q, k, v, {.visible = {.keys = 4}, .buds = buds}),
                    containing("of 4 leaves for q"));
  const NoGrad no_grad;
  CHECK_NOTHROW(attention(q, k, v, {.bias = leaf(ones({1, 1, 3, 5}))}));
}

TEST_CASE("ops: rows without anything to look at give zeros, and zero gradients") {
  const float hidden = -HUGE_VALF;
  const Tensor x = leaf(Tensor::from(std::vector<float>{hidden, hidden, 0, hidden}, Shape{2, 2}));
  const Tensor y = softmax(x);
  CHECK(y.to_host() == std::vector<float>{0, 0, 1, 0});
  backward(y, ones({2, 2}));
  CHECK(grad_of(x).to_host() == std::vector<float>{0, 0, 0, 0});
  const std::vector<int32_t> ignored = {-1, -1};
  const Tensor logits = leaf(ones({2, 3}));
  const Tensor loss = cross_entropy(logits, Tensor::of<int32_t>(ignored, Shape{2}), 0.1);
  CHECK(loss.item() == 0);
  backward(loss);
  CHECK(grad_of(logits).to_host() == std::vector<float>(6, 0));
}

TEST_CASE("ops: casts between floats pass gradients in the input's type, others stop them") {
  const Tensor x = leaf(Tensor::from({1.25, -3}));
  backward(sum(cast(x, DType::f64) * Tensor::full(Shape{2}, 2, DType::f64)));
  CHECK(grad_of(x).dtype() == DType::f32);
  CHECK(grad_of(x).to_host() == std::vector<float>{2, 2});
  CHECK(cast(x, DType::bf16).node());
  CHECK_FALSE(cast(x, DType::i32).node());
  CHECK(cast(x, DType::i32).to_host() == std::vector<float>{1, -3});
  const Tensor half = leaf(cast(x.detach(), DType::bf16));
  backward(sum(cast(half, DType::f32) * 2.0));
  CHECK(grad_of(half).dtype() == DType::bf16);
  CHECK(grad_of(half).to_host() == std::vector<float>{2, 2});
}

}  // namespace
}  // namespace heed
