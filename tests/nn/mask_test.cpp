// tests nn/mask.h
#include "heed/nn/mask.h"

#include <cmath>

#include "heed/autograd/ops.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

Tensor lengths(const std::vector<int32_t>& values) {
  return Tensor::of<int32_t>(values, Shape{static_cast<int64_t>(values.size())});
}

constexpr float shut = -HUGE_VALF;

}  // namespace

TEST_CASE("mask: nothing said is nothing stored") {
  const Mask mask = Mask::none();
  CHECK_FALSE(mask.is_causal());
  CHECK_FALSE(mask.key_lengths());
  CHECK_FALSE(mask.dense(Tensor(Shape{2, 1, 3, 3}), 0));
  CHECK_FALSE(mask.padding_mask(Tensor(Shape{2, 1, 3, 4}), 0));
}

TEST_CASE("mask: causal, from a position on") {
  const Tensor scores(Shape{2, 4, 2, 3});
  const Tensor dense = Mask::causal().dense(scores, 0);
  CHECK(dense.shape() == Shape{1, 1, 2, 3});
  CHECK(dense.to_host() == std::vector<float>{0, shut, shut, 0, 0, shut});
  CHECK(Mask::causal().dense(scores, 1).to_host() == std::vector<float>{0, 0, shut, 0, 0, 0});
}

TEST_CASE("mask: lengths of keys") {
  const Mask mask = Mask::lengths(lengths({2, 0, 5}));
  const Tensor dense = mask.dense(Tensor(Shape{3, 2, 1, 3}, DType::f64), 0);
  CHECK(dense.dtype() == DType::f64);
  CHECK(dense.shape() == Shape{3, 1, 1, 3});
  CHECK(dense.to_host() == std::vector<float>{0, 0, shut, shut, shut, shut, 0, 0, 0});
  const Tensor kept = mask.padding_mask(Tensor(Shape{3, 2, 3, 7}), 0);
  CHECK(kept.shape() == Shape{3, 1, 3, 1});
  CHECK(kept.to_host() == std::vector<float>{1, 1, 0, 0, 0, 0, 1, 1, 1});
  CHECK(mask.padding_mask(Tensor(Shape{3, 2, 2, 7}), 1).to_host() == std::vector<float>{1, 0, 0, 0, 1, 1});
}

TEST_CASE("mask: both must allow, and biases add up") {
  const Mask mask = Mask::causal() & Mask::lengths(lengths({1}));
  CHECK(mask.is_causal());
  CHECK(mask.dense(Tensor(Shape{1, 1, 2, 2}), 0).to_host() == std::vector<float>{0, shut, 0, shut});
  const Tensor bias = Tensor::from(std::vector<float>{1, 2, 3, 4}, Shape{1, 1, 2, 2});
  CHECK(Mask::none().with(bias).dense(Tensor(Shape{1, 1, 2, 2}), 0).to_host() == bias.to_host());
  CHECK(mask.with(bias).dense(Tensor(Shape{1, 1, 2, 2}), 0).to_host() ==
        std::vector<float>{1, shut, 3, shut});
  CHECK(Mask::none().with(bias).with(bias).bias().to_host() == std::vector<float>{2, 4, 6, 8});
  const Mask joined = Mask::none().with(bias) & Mask::causal().with(bias);
  CHECK(joined.is_causal());
  CHECK(joined.bias().to_host() == std::vector<float>{2, 4, 6, 8});
  CHECK((Mask::lengths(lengths({1})) & Mask::causal()).key_lengths().to_host() == std::vector<float>{1});
}

TEST_CASE("mask: padding that cannot be computed with becomes zero, and nothing else") {
  const float inf = HUGE_VALF, nan = std::nanf("");
  const std::vector<float> values{nan, inf,   3,      4,  // real
                                  nan, 6,     -0.0F,  8,  // padding
                                  inf, 1e14F, -1e16F, -inf};
  const Tensor x = leaf(Tensor::from(values, Shape{1, 3, 4}));
  const Mask mask = Mask::lengths(lengths({1}));
  const Tensor y = mask.finite_padding(x, 0);
  const std::vector<float> tame = y.to_host();
  CHECK(std::isnan(tame[0]));
  CHECK(std::vector<float>(tame.begin() + 1, tame.end()) ==
        std::vector<float>{inf, 3, 4, 0, 6, 0, 8, 0, 1e14F, 0, 0});
  CHECK(std::signbit(tame[6]));
  backward(sum(where(Tensor::of<uint8_t>(std::vector<uint8_t>{0, 0, 1, 1}, Shape{4}), y, 0)));
  CHECK(grad_of(x).to_host() == std::vector<float>{0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1});

  // Heads, whose rows begin at position 2 of two sequences; and nothing is copied without lengths.
  const Tensor heads = Tensor::full(Shape{2, 2, 2, 1}, nan, DType::f32);
  const std::vector<float> kept = Mask::lengths(lengths({3, 9})).finite_padding(heads, 2).to_host();
  for (size_t i = 0; i < kept.size(); ++i) CHECK(std::isnan(kept[i]) == (i != 1 && i != 3));
  CHECK(Mask::causal().finite_padding(x, 0).raw() == x.raw());
  CHECK(mask.finite_padding(Tensor(Shape{1, 0, 4}), 0).shape() == Shape{1, 0, 4});
  // Long rows in doubles, the last numbers of which vectors do not reach.
  const Tensor wide = Tensor::full(Shape{1, 70, 37}, -inf, DType::f64);
  for (const double value : mask.finite_padding(wide, 1).to_doubles()) CHECK(value == 0);
}

TEST_CASE("mask: lengths that lie with gaps are read as they are") {
  const std::vector<int32_t> pairs{3, 9, 1, 9};
  const Tensor column = view::slice(Tensor::of<int32_t>(pairs, Shape{2, 2}), 1, 0, 1);
  const Mask mask = Mask::lengths(column.seen_as(Shape{2}, Strides{2}, 0));
  CHECK(mask.padding_mask(Tensor(Shape{2, 1, 3, 1}), 0).to_host() == std::vector<float>{1, 1, 1, 1, 0, 0});
}

TEST_CASE("mask: what cannot be meant is refused") {
  CHECK_THROWS_WITH(Mask::lengths(Tensor::from({1, 2})), containing("f32 [2]") && containing("i32 [B]"));
  CHECK_THROWS_WITH(Mask::lengths(Tensor()), containing("i32 [B]"));
  const Mask two = Mask::lengths(lengths({1, 2}));
  CHECK_THROWS_WITH(two & two, containing("given twice"));
  CHECK_THROWS_WITH(two.dense(Tensor(Shape{3, 1, 2, 2}), 0), containing("2 key lengths for a batch of 3"));
  CHECK_THROWS_WITH(two.padding_mask(Tensor(Shape{3, 1, 2, 2}), 0),
                    containing("2 key lengths for a batch of 3"));
  CHECK_THROWS_WITH(two.finite_padding(Tensor(Shape{3, 2, 2}), 0),
                    containing("2 key lengths for a batch of 3"));
}

}  // namespace heed
