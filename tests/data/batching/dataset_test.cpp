// Sets of tensors, parts of them, and splits.
#include "heed/data/batching/dataset.h"

#include <algorithm>
#include <set>

#include "heed/tests/catch.h"

using namespace heed;

namespace {

/// Example i is the number 100 plus i, but for one that is another.
struct Counted final : Dataset {
  explicit Counted(int64_t examples, int64_t other = -1) : count(examples), changed(other) {}
  int64_t size() const override { return count; }
  Example get(int64_t index) const override {
    REQUIRE((index >= 0 && index < count));
    ++asked;
    const auto value = static_cast<float>(index == changed ? 0 : 100 + index);
    return {Tensor::from(std::vector<float>{value}, Shape{1})};
  }
  int64_t count, changed;
  mutable int64_t asked = 0;
};

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

TEST_CASE("dataset: its identity is that of its examples, all or some of them") {
  const std::string own = pairs(5).identity();
  CHECK(own.starts_with("sha256:"));
  CHECK(pairs(5).identity() == own);
  CHECK(pairs(6).identity() != own);
  std::vector<float> values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Tensor classes = Tensor::of<int32_t>(std::vector<int32_t>{0, 1, 2, 3, 4}, Shape{5});
  CHECK(TensorDataset({Tensor::from(values, Shape{5, 2}), classes}).identity() == own);
  CHECK(TensorDataset({Tensor::from(values, Shape{5, 2, 1}), classes}).identity() != own);
  values[7] = 7.5;
  CHECK(TensorDataset({Tensor::from(values, Shape{5, 2}), classes}).identity() != own);

  // Without an identity of its own: 64 examples, the first and the last among them.
  for (const int64_t count : {1, 2, 63, 64, 65, 1000, 12345}) {
    CAPTURE(count);
    const Counted all(count);
    const std::string identity = all.identity();
    CHECK(all.asked == std::min<int64_t>(count, 64));
    CHECK(Counted(count).identity() == identity);
    CHECK(Counted(count + 1).identity() != identity);
    CHECK(Counted(count, 0).identity() != identity);
    CHECK(Counted(count, count - 1).identity() != identity);
  }
  CHECK(Counted(1000, 1).identity() == Counted(1000).identity());  // as its documentation says

  const Counted all(1000), other(1000, 0);
  CHECK(Subset(all, {1, 2}).identity() == Subset(all, {1, 2}).identity());
  CHECK(Subset(all, {1, 2}).identity() != Subset(all, {2, 1}).identity());
  CHECK(Subset(all, {1, 2}).identity() != Subset(other, {1, 2}).identity());
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
