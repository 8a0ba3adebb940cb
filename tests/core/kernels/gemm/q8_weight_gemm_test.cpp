// Products of few rows with a weight in blocks of 8-bit numbers.
#include "heed/core/kernels/gemm/q8_weight_gemm.h"

#include <cmath>

#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/launch.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

/// A weight [n, k] of all numbers from -128 to 127, and scales of its blocks.
struct Weight {
  Tensor numbers, scales;

  Weight(int64_t n, int64_t k)
      : numbers(Shape{n, k}, DType::u8), scales(random_tensor(Shape{n, k / 32}, DType::f32, 3)) {
    launch<kernel::Affine>(Device::cpu, scales, 1.0 / 128, 0.0, scales);  // numbers of about 1
    auto* bytes = numbers.data<uint8_t>();
    for (int64_t i = 0; i < n * k; ++i) bytes[i] = static_cast<uint8_t>(i * 89 % 251 + i % 6);
  }
  double at(int64_t row, int64_t column) const {
    const int64_t k = numbers.extent(1);
    const auto q = static_cast<int8_t>(numbers.data<uint8_t>()[row * k + column]);
    return q * static_cast<double>(scales.data<float>()[(row * k + column) / 32]);
  }
};

}  // namespace

TEST_CASE("q8_rows: each row of the weight with each row of the input, added to what is there") {
  const OnEachDevice here;
  const int64_t m = GENERATE(1, 2, 3, 4, 5, 6), k = GENERATE(32, 96, 768), n = GENERATE(1, 5, 64, 1000);
  const double beta = GENERATE(0.0, 1.0, -0.5);
  const Tensor a = random_tensor(Shape{m, k}), c = random_tensor(Shape{m, n}, DType::f32, 2);
  const Weight w(n, k);
  const auto left = a.to_doubles();
  std::vector<double> wanted = c.to_doubles();
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = beta * wanted[static_cast<size_t>(i * n + j)];
      for (int64_t l = 0; l < k; ++l) sum += left[static_cast<size_t>(i * k + l)] * w.at(j, l);
      wanted[static_cast<size_t>(i * n + j)] = sum;
    }
  }
  launch_here<kernel::Q8WeightGemm>(a, w.numbers, w.scales, c, beta);
  CHECK(distance(c, wanted) < tolerance(DType::f32));
}

TEST_CASE(
    "q8_rows: what lay in the result is not read where it is not added, and the same bits for any threads") {
  const OnEachDevice here;
  const Tensor a = random_tensor(Shape{3, 512});
  const Weight w(4100, 512);
  CHECK(same_for_any_threads([&] {
    const Tensor c = Tensor::full(Shape{3, 4100}, std::nan(""));
    launch_here<kernel::Q8WeightGemm>(a, w.numbers, w.scales, c, 0.0);
    for (const double x : c.to_doubles()) REQUIRE(std::isfinite(x));
    return c;
  }));
}

TEST_CASE("q8_rows: an input that begins within a pack") {
  const OnEachDevice here;
  const int64_t begin = GENERATE(0, 1, 2, 4), n = 7, k = 64;
  const Tensor wide = random_tensor(Shape{2 * k + 4}), c(Shape{2, n});
  const Tensor a = Tensor(wide).seen_as(Shape{2, k}, Strides{k, 1}, begin);
  const Weight w(n, k);
  const auto left = a.to_doubles();
  std::vector<double> wanted(static_cast<size_t>(2 * n), 0.0);
  for (int64_t e = 0; e < 2 * n; ++e) {
    for (int64_t l = 0; l < k; ++l)
      wanted[static_cast<size_t>(e)] += left[static_cast<size_t>(e / n * k + l)] * w.at(e % n, l);
  }
  launch_here<kernel::Q8WeightGemm>(a, w.numbers, w.scales, c, 0.0);
  CHECK(distance(c, wanted) < tolerance(DType::f32));
}
