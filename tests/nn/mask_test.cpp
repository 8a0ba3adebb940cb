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
}

}  // namespace heed
