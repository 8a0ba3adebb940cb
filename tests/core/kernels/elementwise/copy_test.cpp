// Fill and copy between strides and dtypes.
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

#include <limits>
#include <utility>

#include "heed/tests/core/numbers.h"

using namespace heed;

TEST_CASE("copy: any strides give the elements in row-major order") {
  const OnEachDevice here;
  const Tensor x = random_tensor(Shape{5, 7, 3, 33});
  const auto from = x.to_doubles();
  const std::vector<int64_t> axes = GENERATE(
      std::vector<int64_t>{0, 1, 2, 3}, std::vector<int64_t>{0, 2, 1, 3}, std::vector<int64_t>{3, 2, 1, 0},
      std::vector<int64_t>{0, 1, 3, 2}, std::vector<int64_t>{3, 0, 1, 2}, std::vector<int64_t>{1, 3, 0, 2});
  const Tensor view = view::permute(x, axes);
  Tensor dense(view.shape());
  launch_here<kernel::Copy>(view, dense);
  const float* out = dense.data<float>();
  const Shape& s = view.shape();
  bool right = true;
  for (int64_t a = 0, i = 0; a < s[0]; ++a) {
    for (int64_t b = 0; b < s[1]; ++b) {
      for (int64_t c = 0; c < s[2]; ++c) {
        for (int64_t d = 0; d < s[3]; ++d, ++i) {
          const auto& stride = view.strides();
          const int64_t at = a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3];
          right = right && static_cast<double>(out[i]) == from[static_cast<size_t>(at)];
        }
      }
    }
  }
  CHECK(right);

  // Back: a strided target receives what a dense source holds.
  Tensor again = Tensor::zeros(x.shape());
  launch_here<kernel::Copy>(dense, view::permute(again, axes));
  CHECK(same_bits(again, x));
}

TEST_CASE("copy: large transpositions are exact for any number of threads") {
  const OnEachDevice here;
  const Tensor x = random_tensor(Shape{300, 517});
  const auto transposed = [&] {
    Tensor out(Shape{517, 300});
    launch_here<kernel::Copy>(view::transpose(x, 0, 1), out);
    return out;
  };
  const Tensor y = transposed();
  bool right = true;
  for (int64_t i = 0; i < 300; ++i) {
    for (int64_t j = 0; j < 517; ++j)
      right = right && y.data<float>()[j * 300 + i] == x.data<float>()[i * 517 + j];
  }
  CHECK(right);
  CHECK(same_for_any_threads(transposed));
}

TEST_CASE("copy: expanded axes repeat, slices leave their neighbours alone") {
  const OnEachDevice here;
  const Tensor row = Tensor::from({1, 2, 3});
  Tensor out(Shape{2, 3});
  launch_here<kernel::Copy>(view::expand(row, Shape{2, 3}), out);
  CHECK(out.to_host() == std::vector<float>{1, 2, 3, 1, 2, 3});
  launch_here<kernel::Copy>(view::expand(Tensor::from({7}), Shape{2, 3}), out);
  CHECK(out.to_host() == std::vector<float>(6, 7.F));

  Tensor whole = Tensor::zeros(Shape{3, 4});
  launch_here<kernel::Copy>(Tensor::full(Shape{3, 2}, 5), view::slice(whole, 1, 1, 3));
  CHECK(whole.to_host() == std::vector<float>{0, 5, 5, 0, 0, 5, 5, 0, 0, 5, 5, 0});
  launch_here<kernel::Fill>(view::slice(whole, 0, 1, 2), 9);
  CHECK(whole.to_host() == std::vector<float>{0, 5, 5, 0, 9, 9, 9, 9, 0, 5, 5, 0});
}

TEST_CASE("copy: every pair of dtypes converts") {
  const OnEachDevice here;
  const DType all[] = {DType::f32, DType::f64, DType::bf16, DType::i32, DType::i64, DType::u8};
  const std::vector<double> values = {0, 1, 2, 100, 255};
  for (DType from : all) {
    Tensor x(Shape{5}, from);
    launch_here<kernel::Copy>(Tensor::of<double>(values, Shape{5}), x);
    CHECK(x.to_doubles() == values);
    for (DType to : all) {
      Tensor y(Shape{5}, to);
      launch_here<kernel::Copy>(x, y);
      CHECK(y.to_doubles() == values);
    }
  }
}

TEST_CASE("copy: dense numbers of any length, wherever they begin, and nothing beside them") {
  const OnEachDevice here;
  const DType from = GENERATE(DType::f32, DType::bf16, DType::f64, DType::u8),
              to = GENERATE(DType::bf16, DType::f32, DType::i64, DType::u8);
  for (const int64_t length : {1, 3, 4, 1030, 5001}) {
    const Tensor whole = random_tensor(Shape{length + 8}, from, 3, 0, 200);
    for (const auto& [begin, target] : {std::pair<int64_t, int64_t>{0, 0}, {4, 4}, {0, 4}, {1, 4}, {8, 3}}) {
      const Tensor x = view::slice(whole, 0, begin, begin + length);
      const Tensor y = Tensor::full(Shape{length + 8}, 77, to);
      launch_here<kernel::Copy>(x, view::slice(y, 0, target, target + length));
      // What the CPU makes of it, by way of a dense copy of its own.
      const Tensor wanted = Tensor::full(Shape{length + 8}, 77, to);
      launch<kernel::Copy>(Device::cpu, x, view::slice(wanted, 0, target, target + length));
      INFO(to_string(from) << " to " << to_string(to) << " length " << length << " from " << begin << " to "
                           << target);
      CHECK(same_bits(y, wanted));
    }
  }
}

TEST_CASE("copy: what an integer cannot hold becomes its nearest value") {
  const OnEachDevice here;
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> odd = {-3.7, 3.7, 300, -infinity, infinity, std::nan("")};
  const Tensor x = Tensor::of<double>(odd, Shape{6});
  Tensor bytes(Shape{6}, DType::u8), words(Shape{6}, DType::i32);
  launch_here<kernel::Copy>(x, bytes);
  launch_here<kernel::Copy>(x, words);
  CHECK(bytes.to_doubles() == std::vector<double>{0, 3, 255, 0, 255, 0});
  CHECK(words.to_doubles() == std::vector<double>{-3, 3, 300, -2147483648.0, 2147483647.0, 0});
}

TEST_CASE("copy: wide integers become the nearest of narrow ones, doubles the nearest bf16") {
  const OnEachDevice here;
  const auto to = [](const Tensor& from, DType dtype) {
    const Tensor out(from.shape(), dtype);
    launch_here<kernel::Copy>(from, out);
    return out.to_doubles();
  };
  const std::vector<int64_t> wide{5000000000, -5000000000, 300, -3, 7};
  const Tensor ids = Tensor::of<int64_t>(wide, Shape{5});
  CHECK(to(ids, DType::i32) == std::vector<double>{2147483647, -2147483648.0, 300, -3, 7});
  CHECK(to(ids, DType::u8) == std::vector<double>{255, 0, 255, 0, 7});
  CHECK(to(Tensor::of<int32_t>(std::vector<int32_t>{300, -1, 9}, Shape{3}), DType::u8) ==
        std::vector<double>{255, 0, 9});
  // Halfway between two of bf16 in f32, and a little off it in f64.
  const double half = std::ldexp(1, -8), little = std::ldexp(1, -30), up = 1 + 2 * half;
  const std::vector<double> given{1 + half,
                                  1 + half + little,
                                  1 + half - little,
                                  -(1 + half + little),
                                  1 + 3 * half,
                                  1 + 3 * half - little,
                                  1e-60,
                                  -INFINITY,
                                  1e300};
  const std::vector<double> nearest{1, up, 1, -up, 1 + 4 * half, up, 0, -INFINITY, INFINITY};
  CHECK(to(Tensor::of<double>(given, Shape{9}), DType::bf16) == nearest);
  CHECK(std::isnan(to(Tensor::of<double>(std::vector<double>{NAN}, Shape{1}), DType::bf16)[0]));
}

TEST_CASE("copy: nothing to copy is fine") {
  const OnEachDevice here;
  Tensor x(Shape{0, 4}), y(Shape{0, 4});
  launch_here<kernel::Copy>(x, y);
  launch_here<kernel::Fill>(y, 1);
  CHECK(y.size() == 0);
}
