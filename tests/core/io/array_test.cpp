// Array headers in files: extents that overflow, and types.
#include "heed/core/io/array.h"

#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

TEST_CASE("array: bytes of extents are checked against overflow") {
  const auto bytes = [](std::vector<int64_t> shape, int64_t item) { return array_bytes(shape, item); };
  CHECK(bytes({}, 4) == 4);
  CHECK(bytes({2, 3}, 4) == 24);
  CHECK(bytes({0, 3}, 4) == 0);
  CHECK(bytes({int64_t{1} << 60}, 4) == int64_t{1} << 62);
  CHECK(bytes({int64_t{1} << 61}, 4) == -1);
  CHECK(bytes({-1}, 1) == -1);
  CHECK(bytes({0, -1}, 1) == -1);
  CHECK(bytes({int64_t{1} << 40, 0, int64_t{1} << 40}, 1) == -1);
}

TEST_CASE("array: values must fill the extents and are asked for by their type") {
  const Array array = Array::of<float>({3}, std::vector<float>{1, 2, 3});
  CHECK(array.values<float>() == std::vector<float>{1, 2, 3});
  CHECK_THROWS_WITH(array.values<double>(), containing("it holds f32, f64 was asked for"));
  CHECK_THROWS_AS(Array::of<float>({2}, std::vector<float>{1, 2, 3}), Error);
  CHECK(array_item_bytes("bf16") == 2);
  CHECK(array_item_bytes("f16") == 0);
}
