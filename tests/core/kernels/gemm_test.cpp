// Products of matrices in every layout against plain loops.
#include "core/kernels/gemm.h"
#include "core/launch.h"

#include "core/count.h"
#include "tests/core/numbers.h"

using namespace heed;

namespace {

/// alpha a b + beta c, in double.
std::vector<double> product(const Tensor& a, const Tensor& b, const std::vector<double>& c, double alpha,
                            double beta) {
  const int64_t m = a.extent(-2), k = a.extent(-1), n = b.extent(-1);
  const auto x = a.to_doubles(), y = b.to_doubles();
  std::vector<double> out = c;
  const int64_t batch = static_cast<int64_t>(c.size()) / std::max<int64_t>(1, m * n);
  for (int64_t p = 0; p < batch; ++p) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          sum += x[static_cast<size_t>((p * m + i) * k + l)] * y[static_cast<size_t>((p * k + l) * n + j)];
        }
        double& at = out[static_cast<size_t>((p * m + i) * n + j)];
        at = alpha * sum + (beta == 0 ? 0 : beta * at);
      }
    }
  }
  return out;
}

Tensor matrix(int64_t rows, int64_t columns, bool transposed, DType dtype, uint32_t seed) {
  const Tensor x = random_tensor(transposed ? Shape{columns, rows} : Shape{rows, columns}, dtype, seed);
  return transposed ? view::transpose(x, 0, 1) : x;
}

}  // namespace

TEST_CASE("gemm: sizes, layouts and factors") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  for (int64_t m : {1, 2, 7, 33, 65}) {
    for (int64_t n : {1, 3, 16, 50, 129}) {
      for (int64_t k : {1, 5, 32, 77}) {
        for (int layout = 0; layout < 4; ++layout) {
          const Tensor a = matrix(m, k, (layout & 1) != 0, dtype, 1);
          const Tensor b = matrix(k, n, (layout & 2) != 0, dtype, 2);
          Tensor c = random_tensor(Shape{m, n}, dtype, 3);
          const auto wanted = product(a, b, c.to_doubles(), 0.5, 2);
          launch<kernel::Gemm>(Device::cpu, a, b, c, 0.5, 2);
          CHECK(distance(c, wanted) < tolerance(dtype));
        }
      }
    }
  }
}

TEST_CASE("gemm: large products, cut into tiles and chunks, in every layout") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  struct Size {
    int64_t m, n, k;
  };
  for (const Size s : {Size{600, 70, 90}, Size{250, 130, 1100}, Size{40, 1100, 60}, Size{30, 20, 9000},
                       Size{64, 64, 5000}, Size{300, 290, 310}, Size{3, 700, 650}, Size{8, 2000, 300},
                       Size{1, 3000, 200}, Size{500, 1, 700}, Size{700, 2, 300}}) {
    for (int layout = 0; layout < 4; ++layout) {
      const Tensor a = matrix(s.m, s.k, (layout & 1) != 0, dtype, 1);
      const Tensor b = matrix(s.k, s.n, (layout & 2) != 0, dtype, 2);
      const Tensor start = random_tensor(Shape{s.m, s.n}, dtype, 3);
      for (double beta : {0.0, 1.0}) {
        Tensor c(start.shape(), dtype);
        launch<kernel::Copy>(Device::cpu, start, c);
        launch<kernel::Gemm>(Device::cpu, a, b, c, 2, beta);
        CHECK(distance(c, product(a, b, start.to_doubles(), 2, beta)) < 4 * tolerance(dtype));
      }
    }
  }
}

TEST_CASE("gemm: beta 0 overwrites whatever stands there") {
  const Tensor a = random_tensor(Shape{20, 30}), b = random_tensor(Shape{30, 40});
  Tensor c = Tensor::full(Shape{20, 40}, std::nan(""));
  launch<kernel::Gemm>(Device::cpu, a, b, c, 1, 0);
  CHECK(distance(c, product(a, b, std::vector<double>(800), 1, 0)) < 2e-5);
  Tensor wide = Tensor::full(Shape{8, 4000}, std::nan(""));
  const Tensor left = random_tensor(Shape{8, 500}), right = random_tensor(Shape{500, 4000});
  launch<kernel::Gemm>(Device::cpu, left, right, wide, 1, 0);
  CHECK(distance(wide, product(left, right, std::vector<double>(32000), 1, 0)) < 2e-5);
}

TEST_CASE("gemm: nothing to add up gives beta c, empty results are fine") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  Tensor c = Tensor::full(Shape{2, 3, 4}, 5, dtype);
  launch<kernel::Gemm>(Device::cpu, Tensor(Shape{2, 3, 0}, dtype), Tensor(Shape{2, 0, 4}, dtype), c, 1, 2);
  CHECK(c.to_doubles() == std::vector<double>(24, 10.0));
  launch<kernel::Gemm>(Device::cpu, Tensor(Shape{2, 3, 0}, dtype), Tensor(Shape{2, 0, 4}, dtype), c, 1, 0);
  CHECK(c.to_doubles() == std::vector<double>(24, 0.0));
  Tensor none(Shape{0, 4}, dtype);
  launch<kernel::Gemm>(Device::cpu, Tensor(Shape{0, 3}, dtype), Tensor(Shape{3, 4}, dtype), none, 1, 0);
  Tensor no_batch(Shape{0, 2, 2}, dtype);
  launch<kernel::Gemm>(Device::cpu, Tensor(Shape{0, 2, 3}, dtype), Tensor(Shape{0, 3, 2}, dtype), no_batch, 1,
                       0);
}

TEST_CASE("gemm: heads are strides, batches may repeat") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const int64_t batch = 3, heads = 4, length = 10, width = 16;
  const Tensor q = view::transpose(random_tensor(Shape{batch, length, heads, width}, dtype, 1), 1, 2);
  const Tensor k = view::transpose(random_tensor(Shape{batch, length, heads, width}, dtype, 2), 1, 2);
  const Tensor kt = view::transpose(k, 2, 3);
  Tensor scores(Shape{batch, heads, length, length}, dtype);
  launch<kernel::Gemm>(Device::cpu, q, kt, scores, 1, 0);
  CHECK(distance(scores, product(q, kt, std::vector<double>(1200), 1, 0)) < tolerance(dtype));

  // The result as a strided view.
  Tensor joined(Shape{batch, length, heads, width}, dtype);
  const Tensor out = view::transpose(joined, 1, 2);
  launch<kernel::Gemm>(Device::cpu, scores, k, out, 1, 0);
  CHECK(distance(out, product(scores, k, std::vector<double>(1920), 1, 0)) < tolerance(dtype));

  // One matrix for all of the batch, and one for each head.
  const Tensor shared = view::expand(random_tensor(Shape{width, 5}, dtype, 3), Shape{batch, heads, width, 5});
  Tensor y(Shape{batch, heads, length, 5}, dtype);
  launch<kernel::Gemm>(Device::cpu, q, shared, y, 1, 0);
  CHECK(distance(y, product(q, shared, std::vector<double>(600), 1, 0)) < tolerance(dtype));
  const Tensor each =
      view::expand(random_tensor(Shape{heads, width, 5}, dtype, 3), Shape{batch, heads, width, 5});
  launch<kernel::Gemm>(Device::cpu, q, each, y, 1, 0);
  CHECK(distance(y, product(q, each, std::vector<double>(600), 1, 0)) < tolerance(dtype));
}

TEST_CASE("gemm: extents of 1 with odd strides") {
  const Tensor base = random_tensor(Shape{6, 8, 10});
  // A column out of a matrix, a row out of a transposed one, slices with a leading dimension.
  const Tensor column = view::slice(view::slice(base, 0, 1, 2), 2, 3, 4);  // [1, 8, 1]
  const Tensor row = view::slice(view::transpose(base, 1, 2), 1, 2, 3);    // [6, 1, 8]
  const Tensor wide = view::slice(base, 2, 2, 7);                          // [6, 8, 5]
  REQUIRE(kernel::gemm_ready(column));
  REQUIRE(kernel::gemm_ready(row));
  REQUIRE(kernel::gemm_ready(wide));
  Tensor c(Shape{6, 1, 5});
  launch<kernel::Gemm>(Device::cpu, row, wide, c, 1, 0);
  CHECK(distance(c, product(row, wide, std::vector<double>(30), 1, 0)) < 2e-5);
  const Tensor left = random_tensor(Shape{1, 3, 8});
  Tensor d(Shape{1, 3, 1});
  launch<kernel::Gemm>(Device::cpu, left, column, d, 1, 0);
  CHECK(distance(d, product(left, column, std::vector<double>(3), 1, 0)) < 2e-5);
  const Tensor outer = random_tensor(Shape{1, 1, 7});
  Tensor e(Shape{1, 8, 7});
  launch<kernel::Gemm>(Device::cpu, column, outer, e, 1, 0);
  CHECK(distance(e, product(column, outer, std::vector<double>(56), 1, 0)) < 2e-5);
  CHECK_FALSE(
      kernel::gemm_ready(view::slice(view::expand(random_tensor(Shape{1, 4}), Shape{3, 4}), 1, 0, 4)));
  const std::vector<int64_t> order = {1, 2, 0};
  CHECK_FALSE(kernel::gemm_ready(view::transpose(view::permute(random_tensor(Shape{3, 4, 5}), order), 0, 1)));
}

TEST_CASE("gemm: the same bits for any number of threads") {
  struct Size {
    int64_t batch, m, n, k;
  };
  for (const Size s : {Size{1, 700, 600, 100}, Size{1, 50, 40, 8000}, Size{1, 4, 1500, 900},
                       Size{24, 64, 64, 32}, Size{3, 300, 200, 100}, Size{200, 5, 6, 7}}) {
    const Tensor a = random_tensor(Shape{s.batch, s.m, s.k}, DType::f32, 1);
    const Tensor b = random_tensor(Shape{s.batch, s.k, s.n}, DType::f32, 2);
    CHECK(same_for_any_threads([&] {
      Tensor c(Shape{s.batch, s.m, s.n});
      launch<kernel::Gemm>(Device::cpu, a, b, c, 1, 0);
      return c;
    }));
  }
}

TEST_CASE("gemm: counts two operations a multiply-add") {
  Count::reset();
  Tensor c(Shape{2, 3, 4});
  launch<kernel::Gemm>(Device::cpu, random_tensor(Shape{2, 3, 5}), random_tensor(Shape{2, 5, 4}), c, 1, 0);
  CHECK(Count::flops() == 2 * 2 * 3 * 4 * 5);
}
