// Extents, strides and broadcasting.
#include "heed/core/shape.h"

#include "heed/core/tensor.h"

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("shape: size, text and negative axes") {
  const Shape shape{2, 8, 64};
  CHECK(shape.size() == 1024);
  CHECK(shape.rank() == 3);
  CHECK(shape[-1] == 64);
  CHECK(shape[0] == shape[-3]);
  CHECK(shape.back() == 64);
  CHECK(to_string(shape) == "[2, 8, 64]");
  CHECK(Shape{}.size() == 1);
  CHECK(to_string(Shape{}) == "[]");
  CHECK(Shape{3, 0, 2}.size() == 0);
}

TEST_CASE("shape: insert, erase and comparison") {
  Shape shape{2, 3};
  shape.insert(0, 7);
  CHECK(shape == Shape{7, 2, 3});
  shape.insert(3, 9);
  CHECK(shape == Shape{7, 2, 3, 9});
  Shape from_the_end = shape;
  from_the_end.erase(1 - shape.rank());
  shape.erase(1);
  CHECK(from_the_end == shape);
  CHECK(shape == Shape{7, 3, 9});
  CHECK_FALSE(shape == Shape{7, 3});
  CHECK_FALSE(shape == Shape{7, 3, 8});
}

TEST_CASE("shape: wrong axes, too many dimensions and impossible sizes are errors") {
  Shape shape{2, 3};
  CHECK_THROWS_WITH(shape[2], containing("axis 2 of [2, 3]"));
  CHECK_THROWS_WITH(shape[-3], containing("-2 to 1"));
  Shape full{1, 2, 3, 4, 5, 6};
  CHECK_THROWS_WITH(full.push_back(7), containing("more than 6 dimensions"));
  CHECK_THROWS_AS((Shape{int64_t{1} << 40, int64_t{1} << 40}.size()), Error);
  CHECK_THROWS_AS((Shape{3, -1}.size()), Error);
  // Numbers that 64 bits count, but not their bytes.
  for (const int64_t extent :
       {int64_t{1} << 58, int64_t{1} << 61, int64_t{3617008641903834} * 1275, INT64_MAX})
    CHECK_THROWS_WITH(Tensor(Shape{extent}), containing(std::to_string(extent)) && containing("any memory"));
  CHECK((Shape{int64_t{1} << 60, 0}.size()) == 0);
}

TEST_CASE("strides: row major") {
  CHECK(Strides::contiguous(Shape{2, 3, 4}) == Strides{12, 4, 1});
  CHECK(Strides::contiguous(Shape{}) == Strides{});
  CHECK(Strides::contiguous(Shape{5}) == Strides{1});
}

TEST_CASE("broadcast: extents of 1 grow, missing axes lead") {
  CHECK(broadcast("add", Shape{2, 1, 4}, Shape{3, 1}) == Shape{2, 3, 4});
  CHECK(broadcast("add", Shape{4}, Shape{2, 3, 4}) == Shape{2, 3, 4});
  CHECK(broadcast("add", Shape{}, Shape{2}) == Shape{2});
  CHECK(broadcast("add", Shape{0, 3}, Shape{1, 3}) == Shape{0, 3});
  CHECK_THROWS_WITH(broadcast("add", Shape{2, 3}, Shape{2, 4}), containing("add: [2, 3] and [2, 4]"));
}
