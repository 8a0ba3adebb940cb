// Sorting of rows.
#include "heed/core/kernels/content/sort.h"
#include "heed/core/launch.h"

#include <algorithm>
#include <numeric>

#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

std::vector<double> order_of(const Tensor& keys) {
  const Tensor order(keys.shape(), DType::i32);
  launch_here<kernel::Argsort>(keys, order);
  return order.to_doubles();
}

std::vector<double> largest_of(const Tensor& x, int64_t k) {
  Shape shape = x.shape();
  shape[-1] = k;
  const Tensor which(shape, DType::i32);
  launch_here<kernel::TopK>(x, which);
  return which.to_doubles();
}

}  // namespace

TEST_CASE("argsort: equal keys keep their order, in every row and type") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::i32, DType::f32, DType::f64);
  const int64_t n = GENERATE(1, 2, 17, 1000);
  Tensor keys(Shape{3, n}, dtype);
  launch<kernel::Copy>(Device::cpu, random_ids(Shape{3, n}, 9), keys);  // many are equal
  const auto key = keys.to_doubles(), order = order_of(keys);
  for (size_t row = 0; row < 3; ++row) {
    const size_t first = row * static_cast<size_t>(n);
    std::vector<double> wanted(static_cast<size_t>(n));
    std::iota(wanted.begin(), wanted.end(), 0.0);
    std::stable_sort(wanted.begin(), wanted.end(), [&](double a, double b) {
      return key[first + static_cast<size_t>(a)] < key[first + static_cast<size_t>(b)];
    });
    CHECK(std::equal(wanted.begin(), wanted.end(), order.begin() + static_cast<std::ptrdiff_t>(first)));
  }
  CHECK(same_for_any_threads([&] {
    const Tensor again(keys.shape(), DType::i32);
    launch_here<kernel::Argsort>(keys, again);
    return again;
  }));
}

TEST_CASE("argsort: rows without keys") {
  for (const Shape& shape : {Shape{1, 1, 5, 0}, Shape{0, 4}}) CHECK(order_of(Tensor::zeros(shape)).empty());
}

TEST_CASE("argsort: infinities and NaN have their places") {
  const OnEachDevice here;
  CHECK(order_of(Tensor::from({INFINITY, NAN, -1, -INFINITY, NAN, 0})) ==
        std::vector<double>{3, 2, 5, 0, 1, 4});
}

TEST_CASE("largest: the greatest few in rising order, the first of equal ones") {
  const OnEachDevice here;
  CHECK(largest_of(Tensor::from({3, 9, 3, 7, 3, -2}), 3) == std::vector<double>{0, 1, 3});
  CHECK(largest_of(Tensor::from({3, 9, 3, 7, 3, -2}), 6) == std::vector<double>{0, 1, 2, 3, 4, 5});
  CHECK(largest_of(Tensor::from({5}), 1) == std::vector<double>{0});
  const Tensor x = random_tensor(Shape{4, 300}, DType::f64);
  const auto value = x.to_doubles(), which = largest_of(x, 20);
  for (size_t row = 0; row < 4; ++row) {
    double least = 2;
    for (size_t i = 0; i < 20; ++i) {
      least = std::min(least, value[row * 300 + static_cast<size_t>(which[row * 20 + i])]);
      if (i > 0) CHECK(which[row * 20 + i] > which[row * 20 + i - 1]);
    }
    CHECK(std::count_if(value.begin() + static_cast<std::ptrdiff_t>(row * 300),
                        value.begin() + static_cast<std::ptrdiff_t>(row * 300 + 300),
                        [least](double v) { return v >= least; }) == 20);
  }
}

TEST_CASE("largest: what is -inf or NaN is never chosen") {
  const OnEachDevice here;
  CHECK(largest_of(Tensor::from({-INFINITY, 1, NAN, 0}), 3) == std::vector<double>{1, 3, -1});
  CHECK(largest_of(Tensor::from({-INFINITY, -INFINITY}), 2) == std::vector<double>{-1, -1});
}
