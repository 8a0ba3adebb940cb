// Errors of ops: what they reject, and their messages.
#include <cmath>
#include <functional>
#include <memory>

#include "heed/autograd/comparisons.h"
#include "heed/autograd/in_place.h"
#include "heed/autograd/losses.h"
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

/// What an op says when it fails; empty where it does not.
template <class F>
std::string complaint(F&& op) {
  try {
    op();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("ops: an error names the op that was written, not those it is made of") {
  const Tensor a = ones({2, 3}), b = ones({3, 2}), i = ones({2, 3}, DType::i32), d = ones({2, 3}, DType::f64),
               u = ones({2, 3}, DType::u8), narrow = ones({2, 3}, DType::bf16), none,
               ids = ones({2}, DType::i32);
  const std::vector<int32_t> high = {0, 7};
  const Tensor beyond = Tensor::of<int32_t>(high, Shape{2});
  const auto names = [](const char* op, const std::function<void()>& call) {
    CAPTURE(op);
    CHECK_THAT(complaint(call), Catch::Matchers::StartsWith(text(op, ": ")));
  };
  // Element types.
  names("add", [&] { i + i; });
  names("add", [&] { i + 1; });
  names("subtract", [&] { 1 - i; });
  names("multiply", [&] { i * 2.0; });
  names("multiply", [&] { 2.0 * i; });
  names("divide", [&] { i / 2.0; });
  names("divide", [&] { 2.0 / i; });
  names("negate", [&] { -i; });
  names("maximum", [&] { maximum(i, 1); });
  names("minimum", [&] { minimum(i, i); });
  names("exp", [&] { exp(i); });
  names("square", [&] { square(i); });
  names("relu", [&] { relu(i); });
  names("matmul", [&] { matmul(i, transpose(i, 0, 1)); });
  names("mean", [&] { mean(i); });
  names("mean", [&] { mean(i, 0); });
  names("min", [&] { min(i, 0); });
  names("log_sum_exp", [&] { log_sum_exp(i, 0); });
  names("argmax", [&] { argmax(i, 0); });
  names("top_k", [&] { top_k(i, 1); });
  names("embedding", [&] { embedding(i, ids); });
  names("gather", [&] { gather(i, 1, reshape(ids, Shape{2, 1})); });
  names("less", [&] { less(narrow, 1.0); });
  names("stack", [&] { stack(std::vector{a, d}, 0); });
  names("scale_", [&] { scale_(i, 2); });
  names("cross_entropy_of_each", [&] { cross_entropy_of_each(i, ids); });
  names("mse_loss", [&] { mse_loss(i, i); });
  names("mse_loss", [&] { mse_loss(a, d); });
  names("binary_cross_entropy_with_logits", [&] { binary_cross_entropy_with_logits(a, i); });
  names("kl_divergence", [&] { kl_divergence(a, i); });
  // Shapes.
  names("where", [&] { where(u, b, 0); });
  names("mse_loss", [&] { mse_loss(a, b); });
  names("binary_cross_entropy_with_logits", [&] { binary_cross_entropy_with_logits(a, b); });
  names("kl_divergence", [&] { kl_divergence(a, b); });
  names("copy_", [&] { copy_(a, b); });
  names("add_", [&] { add_(a, b); });
  CHECK_THAT(complaint([&] { greater(a, b); }), containing("greater: [2, 3] and [3, 2] do not broadcast"));
  CHECK_THAT(complaint([&] { greater_equal(a, d); }), containing("greater_equal: f32 [2, 3] with f64"));
  // Axes.
  names("transpose", [&] { transpose(a, 0, 5); });
  names("permute", [&] { permute(a, {0, 3}); });
  names("slice", [&] { slice(a, 4, 0, 1); });
  names("select", [&] { select(a, 5, 0); });
  names("operator[]", [&] { a[9]; });
  names("operator[]", [&] { ones({})[0]; });
  names("concat", [&] { concat({a, a}, 7); });
  names("sum", [&] { sum(a, 4); });
  names("mean", [&] { mean(a, 4); });
  names("max", [&] { max(a, 4); });
  names("min", [&] { min(a, 4); });
  names("log_sum_exp", [&] { log_sum_exp(a, 4); });
  names("cumulative_sum", [&] { cumulative_sum(a, 4); });
  names("argmax", [&] { argmax(a, 4); });
  names("gather", [&] { gather(a, 4, ids); });
  names("layer_norm", [&] { layer_norm(ones({}), ones({1}), none); });
  names("cross_entropy", [&] { cross_entropy(ones({}), ids); });
  // Indices.
  names("embedding", [&] { embedding(a, beyond); });
  CHECK_THAT(complaint([&] {
               gather(a, 1, reshape(beyond, Shape{2, 1}));
             }),
             containing("gather: index 7 is outside axis 1 of x [2, 3]. Indices are 0 to 2, or -1 for 0."));
  CHECK_THAT(complaint([&] { cross_entropy_of_each(a, beyond); }),
             containing("cross_entropy_of_each: target 7 of row 1 is none of the 3 classes."));
  CHECK_THAT(complaint([&] { cross_entropy_of_each(a, ones({5}, DType::i32)); }),
             containing("cross_entropy_of_each: targets i32 [5] for logits [2, 3]"));
  // In the gradient, too.
  const Tensor x = leaf(ones({2}));
  const Tensor loss = sum(x * 2.0);
  fill_(x, 1);
  CHECK_THAT(complaint([&] { backward(loss); }), containing("a tensor that multiply has read or made"));
}

TEST_CASE("ops: empty tensors are refused by the op that was written") {
  const Tensor a = ones({2, 3}), none, u = ones({2, 3}, DType::u8);
  for (const auto& call : std::vector<std::function<void()>>{[&] { a + none; },
                                                             [&] { none + a; },
                                                             [&] { none * 2.0; },
                                                             [&] { exp(none); },
                                                             [&] { pow(none, 2); },
                                                             [&] { sum(none); },
                                                             [&] { mean(none); },
                                                             [&] { max(none, 0); },
                                                             [&] { where(none, a, 0); },
                                                             [&] { where(u, none, 0); },
                                                             [&] { where(u, none, a); },
                                                             [&] { mse_loss(a, none); },
                                                             [&] { less(a, none); },
                                                             [&] { less(none, 1.0); },
                                                             [&] { equal(none, none); },
                                                             [&] { cast(none, DType::f64); },
                                                             [&] { reshape(none, Shape{1}); },
                                                             [&] { cross_entropy(none, a); },
                                                             [&] { embedding(none, a); },
                                                             [&] { copy_(none, a); },
                                                             [&] { copy_(a, none); },
                                                             [&] { fill_(none, 1); },
                                                             [&] { add_(a, none); },
                                                             [&] { scale_(none, 2); },
                                                             [&] {
                                                               stack(std::vector{a, none}, 0);
                                                             },
                                                             [&] { 1.0 / none; }})
    CHECK_THAT(complaint(call), containing("a tensor is empty: it has no numbers"));
}

TEST_CASE("ops: indices of i64 are refused with the cast that converts them") {
  const Tensor a = ones({2, 3}), labels = ones({2}, DType::i64);
  const Tensor column = ones({2, 1}, DType::i64);
  CHECK_THROWS_WITH(cross_entropy(a, labels),
                    containing("targets i64 [2]") && containing("Convert with cast(targets, DType::i32)."));
  CHECK_THROWS_WITH(cross_entropy_of_each(a, labels), containing("Convert with cast(targets, DType::i32)."));
  CHECK_THROWS_WITH(embedding(a, labels), containing("Convert with cast(ids, DType::i32)."));
  CHECK_THROWS_WITH(gather(a, 1, column), containing("it must be i32 [2, 1] with any extent along the axis. "
                                                     "Convert with cast(index, DType::i32)."));
  CHECK_THROWS_WITH(gather_rows(ones({1, 1, 2, 3}), ones({1, 1, 2}, DType::i64)),
                    containing("Convert with cast(ids, DType::i32)."));
  CHECK_THROWS_WITH(one_hot(labels, 3), containing("Convert with cast(ids, DType::i32)."));
  CHECK(cross_entropy(a, cast(labels, DType::i32)).item() == Approx(std::log(3)));
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
