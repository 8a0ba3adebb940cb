// Sets of tensors, parts of them, and splits.
#include "heed/data/batching/dataset.h"

#include <set>

#include "heed/tests/catch.h"

using namespace heed;

namespace {

/// Example i is the pair [2 i, 2 i + 1] and the class i.
TensorDataset pairs(int64_t count) {
  std::vector<float> values;
  std::vector<int32_t> classes;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(2 * i));
    values.push_back(static_cast<float>(2 * i + 1));
    classes.push_back(static_cast<int32_t>(i));
  }
  return TensorDataset({Tensor::from(values, Shape{count, 2}), Tensor::of<int32_t>(classes, Shape{count})});
}

}  // namespace

TEST_CASE("dataset: an example has a row of each tensor, without the axis of examples") {
  const TensorDataset all = pairs(5);
  REQUIRE(all.size() == 5);
  const Example three = all.get(3);
  REQUIRE(three.size() == 2);
  CHECK(three[0].shape() == Shape{2});
  CHECK(three[0].to_doubles() == std::vector<double>{6, 7});
  CHECK(three[1].shape() == Shape{});
  CHECK(three[1].item() == 3);
  CHECK(all.length(3) == 2);
  CHECK_THROWS_WITH(all.get(5), containing("no example 5") && containing("It has 5"));
}

TEST_CASE("dataset: tensors with gaps are copied row by row") {
  const Tensor x = Tensor::from(std::vector<float>{0, 1, 2, 3, 4, 5}, Shape{2, 3});
  const TensorDataset columns({view::transpose(x, 0, 1)});
  REQUIRE(columns.size() == 3);
  CHECK(columns.get(1)[0].to_doubles() == std::vector<double>{1, 4});
}

TEST_CASE("dataset: tensors that cannot be examples are refused") {
  CHECK_THROWS_WITH(TensorDataset({}), containing("no tensors"));
  CHECK_THROWS_WITH(TensorDataset({Tensor::full(Shape{}, 1)}), containing("tensor 0 has no axis"));
  CHECK_THROWS_WITH(TensorDataset({Tensor::zeros(Shape{3, 1}), Tensor::zeros(Shape{2})}),
                    containing("tensor 1 is [2]") && containing("3 examples"));
}

TEST_CASE("dataset: a split has every example once, in parts that the seed decides") {
  const TensorDataset all = pairs(10);
  const auto [one, other] = random_split(all, 0.7, 4);
  CHECK(one.size() == 7);
  CHECK(other.size() == 3);
  std::set<double> seen;
  std::vector<double> order;
  for (const Subset* part : {&one, &other}) {
    for (int64_t i = 0; i < part->size(); ++i) order.push_back(part->get(i)[1].item());
  }
  seen.insert(order.begin(), order.end());
  CHECK(seen.size() == 10);
  CHECK(random_split(all, 0.7, 4).second.get(0)[1].item() == order[7]);
  std::vector<double> of_other_seed;
  const auto [first, second] = random_split(all, 0.7, 5);
  for (int64_t i = 0; i < first.size(); ++i) of_other_seed.push_back(first.get(i)[1].item());
  CHECK(of_other_seed != std::vector<double>(order.begin(), order.begin() + 7));
  CHECK_THROWS_WITH(random_split(all, 1.5), containing("share = 1.5"));
  CHECK_THROWS_WITH(Subset(all, {10}), containing("no example 10"));
  CHECK_THROWS_WITH(one.get(7), containing("no example 7"));
}
