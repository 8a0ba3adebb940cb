// Creating, viewing, reading and printing tensors.
#include "heed/core/tensor.h"

#include <array>

#include "heed/tests/core/numbers.h"

using namespace heed;

TEST_CASE("tensor: an empty handle, values and fills") {
  CHECK_FALSE(Tensor());
  const Tensor x = Tensor::from({1, 2, 3});
  CHECK(x);
  CHECK(x.shape() == Shape{3});
  CHECK(x.dtype() == DType::f32);
  CHECK(x.to_host() == std::vector<float>{1, 2, 3});
  CHECK(Tensor::zeros(Shape{2, 2}).to_host() == std::vector<float>(4, 0.F));
  CHECK(Tensor::full(Shape{2}, 7, DType::i32).to_doubles() == std::vector<double>{7, 7});
  CHECK(Tensor::full(Shape{}, 2.5, DType::f64).item() == 2.5);
  const std::vector<float> five(5, 1.F);
  CHECK_THROWS_WITH(Tensor::from(five, Shape{2, 3}), containing("5 values") && containing("[2, 3]"));
  CHECK_THROWS_WITH(x.item(), containing("[3]"));
}

TEST_CASE("tensor: copying shares the numbers, reading checks the type") {
  const Tensor x = Tensor::from({1, 2, 3});
  const Tensor y = x;
  y.data<float>()[1] = 9;
  CHECK(x.to_host()[1] == 9);
  CHECK_THROWS_WITH(x.data<double>(), containing("f32") && containing("f64"));
  CHECK(empty_like(x, Shape{4, 4}).size() == 16);
  CHECK(empty_like(Tensor(Shape{2}, DType::f64)).dtype() == DType::f64);
}

TEST_CASE("view: transpose, permute and slice see the same numbers") {
  const Tensor x = random_tensor(Shape{2, 3, 4});
  const float* data = x.data<float>();
  const Tensor t = view::transpose(x, 0, -1);
  CHECK(t.shape() == Shape{4, 3, 2});
  CHECK_FALSE(t.contiguous());
  CHECK(t.to_host()[1] == data[12]);
  const std::array<int64_t, 3> order = {1, 2, 0};
  const Tensor p = view::permute(x, order);
  CHECK(p.shape() == Shape{3, 4, 2});
  CHECK(p.to_host()[2] == data[1]);
  const Tensor s = view::slice(x, 1, 1, 3);
  CHECK(s.shape() == Shape{2, 2, 4});
  CHECK(s.to_host()[0] == data[4]);
  CHECK(s.data<float>() == data + 4);
  CHECK(view::slice(x, 0, 1, 2).contiguous());
  CHECK(view::slice(x, 2, 2, 2).size() == 0);
  const std::array<int64_t, 3> twice = {0, 0, 1};
  CHECK_THROWS_AS(view::permute(x, twice), Error);
  CHECK_THROWS_AS(view::transpose(x, 0, 3), Error);
  CHECK_THROWS_WITH(view::slice(x, 1, 2, 4), containing("[2, 4)") && containing("0 to 3"));
}

TEST_CASE("view: expand repeats, reshape keeps the order") {
  const Tensor row = Tensor::from({1, 2});
  const Tensor wide = view::expand(row, Shape{3, 2});
  CHECK(wide.strides()[0] == 0);
  CHECK(wide.to_host() == std::vector<float>{1, 2, 1, 2, 1, 2});
  CHECK_THROWS_WITH(view::expand(wide, Shape{1, 2}), containing("[3, 2]"));
  const Tensor x = random_tensor(Shape{2, 6});
  CHECK(view::reshape(x, Shape{3, -1}).shape() == Shape{3, 4});
  CHECK(view::reshape(x, Shape{3, -1}).to_host() == x.to_host());
  CHECK_THROWS_AS(view::reshape(x, Shape{5, -1}), Error);
  CHECK_THROWS_WITH(view::reshape(view::transpose(x, 0, 1), Shape{12}), containing("gaps"));
}

TEST_CASE("tensor: extents of 1 do not break contiguity") {
  const Tensor x = random_tensor(Shape{3, 1, 4});
  CHECK(view::transpose(x, 0, 1).contiguous());
  CHECK(view::slice(random_tensor(Shape{5, 4}), 0, 2, 3).contiguous());
  CHECK_FALSE(view::slice(random_tensor(Shape{5, 4}), 1, 2, 3).contiguous());
}

TEST_CASE("tensor: as text") {
  CHECK(to_string(Tensor()) == "empty tensor");
  CHECK(to_string(Tensor::from({1, 2.5F})) == "[1, 2.5] f32 [2]");
  const std::string text = to_string(Tensor::zeros(Shape{100}));
  CHECK(text == "[0, 0, 0, 0, ..., 0, 0, 0, 0] f32 [100]");
}
