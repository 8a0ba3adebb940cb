// Matrix products in every layout against plain loops.
#include "heed/core/kernels/gemm/gemm.h"
#include "heed/core/launch.h"

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/operation_count.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

void gemm(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta,
          Rounding rounding = Rounding::none) {
  launch_here<kernel::Gemm>(a, b, c, alpha, beta, rounding);
}

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
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  for (int64_t m : {1, 2, 7, 33, 65}) {
    for (int64_t n : {1, 3, 16, 50, 129}) {
      for (int64_t k : {1, 5, 32, 77}) {
        for (int layout = 0; layout < 4; ++layout) {
          const Tensor a = matrix(m, k, (layout & 1) != 0, dtype, 1);
          const Tensor b = matrix(k, n, (layout & 2) != 0, dtype, 2);
          Tensor c = random_tensor(Shape{m, n}, dtype, 3);
          const auto wanted = product(a, b, c.to_doubles(), 0.5, 2);
          gemm(a, b, c, 0.5, 2);
          CHECK(distance(c, wanted) < tolerance(dtype));
        }
      }
    }
  }
}

TEST_CASE("gemm: large products, cut into tiles and chunks, in every layout") {
  const OnEachDevice here;
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
        launch_here<kernel::Copy>(start, c);
        gemm(a, b, c, 2, beta);
        CHECK(distance(c, product(a, b, start.to_doubles(), 2, beta)) < 4 * tolerance(dtype));
      }
    }
  }
}

TEST_CASE("gemm: beta 0 overwrites whatever stands there") {
  const OnEachDevice here;
  const Tensor a = random_tensor(Shape{20, 30}), b = random_tensor(Shape{30, 40});
  Tensor c = Tensor::full(Shape{20, 40}, std::nan(""));
  gemm(a, b, c, 1, 0);
  CHECK(distance(c, product(a, b, std::vector<double>(800), 1, 0)) < 2e-5);
  Tensor wide = Tensor::full(Shape{8, 4000}, std::nan(""));
  const Tensor left = random_tensor(Shape{8, 500}), right = random_tensor(Shape{500, 4000});
  gemm(left, right, wide, 1, 0);
  CHECK(distance(wide, product(left, right, std::vector<double>(32000), 1, 0)) < 2e-5);
}

TEST_CASE("gemm: nothing to add up gives beta c, empty results are fine") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  Tensor c = Tensor::full(Shape{2, 3, 4}, 5, dtype);
  gemm(Tensor(Shape{2, 3, 0}, dtype), Tensor(Shape{2, 0, 4}, dtype), c, 1, 2);
  CHECK(c.to_doubles() == std::vector<double>(24, 10.0));
  gemm(Tensor(Shape{2, 3, 0}, dtype), Tensor(Shape{2, 0, 4}, dtype), c, 1, 0);
  CHECK(c.to_doubles() == std::vector<double>(24, 0.0));
  Tensor none(Shape{0, 4}, dtype);
  gemm(Tensor(Shape{0, 3}, dtype), Tensor(Shape{3, 4}, dtype), none, 1, 0);
  Tensor no_batch(Shape{0, 2, 2}, dtype);
  gemm(Tensor(Shape{0, 2, 3}, dtype), Tensor(Shape{0, 3, 2}, dtype), no_batch, 1, 0);
}

TEST_CASE("gemm: heads are strides, batches may repeat") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const int64_t batch = 3, heads = 4, length = 10, width = 16;
  const Tensor q = view::transpose(random_tensor(Shape{batch, length, heads, width}, dtype, 1), 1, 2);
  const Tensor k = view::transpose(random_tensor(Shape{batch, length, heads, width}, dtype, 2), 1, 2);
  const Tensor kt = view::transpose(k, 2, 3);
  Tensor scores(Shape{batch, heads, length, length}, dtype);
  gemm(q, kt, scores, 1, 0);
  CHECK(distance(scores, product(q, kt, std::vector<double>(1200), 1, 0)) < tolerance(dtype));

  // The result as a strided view.
  Tensor joined(Shape{batch, length, heads, width}, dtype);
  const Tensor out = view::transpose(joined, 1, 2);
  gemm(scores, k, out, 1, 0);
  CHECK(distance(out, product(scores, k, std::vector<double>(1920), 1, 0)) < tolerance(dtype));

  // One matrix for all of the batch, and one for each head.
  const Tensor shared = view::expand(random_tensor(Shape{width, 5}, dtype, 3), Shape{batch, heads, width, 5});
  Tensor y(Shape{batch, heads, length, 5}, dtype);
  gemm(q, shared, y, 1, 0);
  CHECK(distance(y, product(q, shared, std::vector<double>(600), 1, 0)) < tolerance(dtype));
  const Tensor each =
      view::expand(random_tensor(Shape{heads, width, 5}, dtype, 3), Shape{batch, heads, width, 5});
  gemm(q, each, y, 1, 0);
  CHECK(distance(y, product(q, each, std::vector<double>(600), 1, 0)) < tolerance(dtype));
}

TEST_CASE("gemm: extents of 1 with odd strides") {
  const OnEachDevice here;
  const Tensor base = random_tensor(Shape{6, 8, 10});
  // A column out of a matrix, a row out of a transposed one, slices with a leading dimension.
  const Tensor column = view::slice(view::slice(base, 0, 1, 2), 2, 3, 4);  // [1, 8, 1]
  const Tensor row = view::slice(view::transpose(base, 1, 2), 1, 2, 3);    // [6, 1, 8]
  const Tensor wide = view::slice(base, 2, 2, 7);                          // [6, 8, 5]
  REQUIRE(kernel::gemm_ready(column));
  REQUIRE(kernel::gemm_ready(row));
  REQUIRE(kernel::gemm_ready(wide));
  Tensor c(Shape{6, 1, 5});
  gemm(row, wide, c, 1, 0);
  CHECK(distance(c, product(row, wide, std::vector<double>(30), 1, 0)) < 2e-5);
  const Tensor left = random_tensor(Shape{1, 3, 8});
  Tensor d(Shape{1, 3, 1});
  gemm(left, column, d, 1, 0);
  CHECK(distance(d, product(left, column, std::vector<double>(3), 1, 0)) < 2e-5);
  const Tensor outer = random_tensor(Shape{1, 1, 7});
  Tensor e(Shape{1, 8, 7});
  gemm(column, outer, e, 1, 0);
  CHECK(distance(e, product(column, outer, std::vector<double>(56), 1, 0)) < 2e-5);
  CHECK_FALSE(
      kernel::gemm_ready(view::slice(view::expand(random_tensor(Shape{1, 4}), Shape{3, 4}), 1, 0, 4)));
  const std::vector<int64_t> order = {1, 2, 0};
  CHECK_FALSE(kernel::gemm_ready(view::transpose(view::permute(random_tensor(Shape{3, 4, 5}), order), 0, 1)));
}

TEST_CASE("gemm: the same bits for any number of threads") {
  const OnEachDevice here;
  struct Size {
    int64_t batch, m, n, k;
  };
  for (const Size s : {Size{1, 700, 600, 100}, Size{1, 50, 40, 8000}, Size{1, 4, 1500, 900},
                       Size{24, 64, 64, 32}, Size{3, 300, 200, 100}, Size{200, 5, 6, 7}}) {
    const Tensor a = random_tensor(Shape{s.batch, s.m, s.k}, DType::f32, 1);
    const Tensor b = random_tensor(Shape{s.batch, s.k, s.n}, DType::f32, 2);
    CHECK(same_for_any_threads([&] {
      Tensor c(Shape{s.batch, s.m, s.n});
      gemm(a, b, c, 1, 0);
      return c;
    }));
  }
}

TEST_CASE("gemm: counts two operations a multiply-add") {
  const OnEachDevice here;
  Count::reset();
  Tensor c(Shape{2, 3, 4});
  gemm(random_tensor(Shape{2, 3, 5}), random_tensor(Shape{2, 5, 4}), c, 1, 0);
  CHECK(Count::flops() == 2 * 2 * 3 * 4 * 5);
}

TEST_CASE("gemm: in bf16 the factors are rounded, the sums are not") {
  const OnEachDevice here;
  const auto rounded = [](const Tensor& x) {
    const Tensor narrow(x.shape(), DType::bf16), wide(x.shape());
    launch_here<kernel::Copy>(x, narrow);
    launch_here<kernel::Copy>(narrow, wide);
    return wide;
  };
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{32, 32, 32},
                                {33, 47, 35},
                                {70, 129, 1025},
                                {64, 64, 63},
                                {300, 200, 2100},
                                {37, 40, 9000}}) {
    for (int layout = 0; layout < 4; ++layout) {
      CAPTURE(m, n, k, layout);
      const Tensor a = matrix(m, k, (layout & 1) != 0, DType::f32, 1);
      const Tensor b = matrix(k, n, (layout & 2) != 0, DType::f32, 2);
      const Tensor c = random_tensor(Shape{m, n}, DType::f32, 3);
      const Tensor exact = random_tensor(Shape{m, n}, DType::f32, 3);
      const auto wanted = product(rounded(a), rounded(b), c.to_doubles(), 0.5, 2);
      gemm(a, b, c, 0.5, 2, Rounding::bf16);
      // Tensor cores cut off what their sums leave behind.
      CHECK(distance(c, wanted) < (device_here() == Device::cpu || cuda::emulated ? 2e-5 : 1e-4));
      gemm(a, b, exact, 0.5, 2);
      CHECK(distance(exact, wanted) > 1e-3);  // so the factors were rounded
    }
  }
}

TEST_CASE("gemm: factors in bf16 count as f32 ones, and results in bf16 are rounded once") {
  const OnEachDevice here;
  const Rounding rounding = GENERATE(Rounding::none, Rounding::bf16);
  const auto copied = [](const Tensor& x, DType dtype) {
    const Tensor out = Tensor(x.shape(), dtype);
    launch<kernel::Copy>(Device::cpu, x, out);
    return out;
  };
  const auto of_type = [&](int64_t rows, int64_t columns, bool transposed, DType dtype, uint32_t seed) {
    const Tensor x = random_tensor(transposed ? Shape{columns, rows} : Shape{rows, columns}, DType::bf16, seed);
    const Tensor made = copied(x, dtype);
    return transposed ? view::transpose(made, 0, 1) : made;
  };
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{32, 32, 32},
                                {5, 40, 36},
                                {33, 47, 35},
                                {70, 300, 1025},
                                {530, 64, 64},
                                {300, 200, 2100},
                                {37, 40, 9000}}) {
    for (int layout = 0; layout < 4; ++layout) {
      const bool a_transposed = (layout & 1) != 0, b_transposed = (layout & 2) != 0;
      const Tensor wanted(Shape{m, n});
      gemm(of_type(m, k, a_transposed, DType::f32, 1), of_type(k, n, b_transposed, DType::f32, 2), wanted, 1,
           0, rounding);
      for (const auto& [a, b] : {std::pair{DType::bf16, DType::f32},
                                 {DType::f32, DType::bf16},
                                 {DType::bf16, DType::bf16},
                                 {DType::f32, DType::f32}}) {
        CAPTURE(m, n, k, layout, to_string(a), to_string(b), static_cast<int>(rounding));
        const Tensor left = of_type(m, k, a_transposed, a, 1), right = of_type(k, n, b_transposed, b, 2);
        const Tensor wide(Shape{m, n}), narrow(Shape{m, n}, DType::bf16);
        gemm(left, right, wide, 1, 0, rounding);
        gemm(left, right, narrow, 1, 0, rounding);
        if (device_here() == Device::cpu) {
          CHECK(same_bits(wide, wanted));
          CHECK(same_bits(narrow, copied(wanted, DType::bf16)));
        } else {  // cuBLAS may choose another kernel for each
          CHECK(distance(wide, wanted) < 1e-4);
          CHECK(distance(narrow, wanted) < 0.0042);
        }
      }
    }
  }
}

TEST_CASE("gemm: heads that begin anywhere, where factors are rounded") {
  const OnEachDevice here;
  const Rounding rounding = GENERATE(Rounding::bf16, Rounding::tf32);
  const int64_t batch = 2, heads = 3;
  // 35 numbers of any type fill no whole 16 bytes, 36 of bf16 do not; 33 rows of them neither.
  const auto extents = GENERATE(Shape{33, 35}, Shape{40, 36});
  const int64_t length = extents[0], width = extents[1];
  CAPTURE(static_cast<int>(rounding), length, width);
  const auto heads_of = [&](uint64_t seed) {
    return view::transpose(random_tensor(Shape{batch, length, heads, width}, DType::f32, seed), 1, 2);
  };
  const Tensor q = heads_of(1), k = heads_of(2), kt = view::transpose(k, 2, 3);
  const Tensor scores = random_tensor(Shape{batch, heads, length, length}, DType::f32, 3);
  const auto wanted = product(q, kt, scores.to_doubles(), 0.5, 2);
  gemm(q, kt, scores, 0.5, 2, rounding);
  CHECK(distance(scores, wanted) < 0.05);
  const Tensor map = random_tensor(scores.shape(), DType::f32, 4), out = heads_of(5);
  const auto sums = product(map, k, out.to_doubles(), 1, 1);
  gemm(map, k, out, 1, 1, rounding);
  CHECK(distance(out, sums) < 0.05);
  const Tensor fresh = heads_of(6);
  gemm(map, k, fresh, 1, 0, rounding);
  CHECK(distance(fresh, product(map, k, std::vector<double>(static_cast<size_t>(fresh.size())), 1, 0)) <
        0.05);
}

TEST_CASE("gemm: in tf32 a device reads ten bits behind the leading one, and the CPU all") {
  const OnEachDevice here;
  const auto rounded = [](const Tensor& x) {
    const Tensor out(Shape{x.extent(0), x.extent(1)});
    const auto numbers = x.to_doubles();
    for (size_t i = 0; i < numbers.size(); ++i) {
      int exponent;
      const double share = std::frexp(numbers[i], &exponent);
      out.data<float>()[i] = static_cast<float>(std::ldexp(std::round(share * 2048) / 2048, exponent));
    }
    return out;
  };
  for (int layout = 0; layout < 4; ++layout) {
    CAPTURE(layout);
    const Tensor a = matrix(20, 45, (layout & 1) != 0, DType::f32, 1);
    const Tensor b = matrix(45, 50, (layout & 2) != 0, DType::f32, 2);
    const Tensor c(Shape{20, 50});
    gemm(a, b, c, 1, 0, Rounding::tf32);
    const std::vector<double> zero(1000);
    const double from_exact = distance(c, product(a, b, zero, 1, 0)),
                 from_rounded = distance(c, product(rounded(a), rounded(b), zero, 1, 0));
    const bool rounds = device_here() == Device::cuda;
    // How hardware comes from f32 to tf32 is its own affair.
    CHECK((rounds ? from_rounded : from_exact) < (rounds && !cuda::emulated ? 3e-3 : 2e-5));
    CHECK((rounds ? from_exact : from_rounded) > 1e-4);
  }
  const Tensor x = random_tensor(Shape{40, 40}, DType::f64), y(Shape{40, 40}, DType::f64);
  gemm(x, x, y, 1, 0, Rounding::tf32);
  CHECK(distance(y, product(x, x, std::vector<double>(1600), 1, 0)) < 1e-12);
}

/// x in row-major order.
Tensor dense_copy(const Tensor& x) {
  const Tensor y(x.shape(), x.dtype());
  launch_here<kernel::Copy>(x, y);
  return y;
}

TEST_CASE("gemm: in bf16 small products and doubles stay exact, batches and views work") {
  const OnEachDevice here;
  const Tensor a = random_tensor(Shape{31, 64}), b = random_tensor(Shape{64, 64});
  const Tensor c(Shape{31, 64}), d(Shape{31, 64});
  gemm(a, b, c, 1, 0);
  gemm(a, b, d, 1, 0, Rounding::bf16);
  CHECK(c.to_host() == d.to_host());
  const Tensor x = random_tensor(Shape{40, 40}, DType::f64), y(Shape{40, 40}, DType::f64);
  gemm(x, x, y, 1, 0, Rounding::bf16);
  CHECK(distance(y, product(x, x, std::vector<double>(1600), 1, 0)) < 1e-12);
  const Tensor q = view::transpose(random_tensor(Shape{2, 50, 3, 40}), 1, 2);
  const Tensor scores(Shape{2, 3, 50, 50});
  gemm(q, view::transpose(q, -1, -2), scores, 1, 0, Rounding::bf16);
  const Tensor dense = dense_copy(q);
  CHECK(distance(scores, product(dense, dense_copy(view::transpose(dense, -1, -2)),
                                 std::vector<double>(2 * 3 * 50 * 50), 1, 0)) < 0.1);
}

TEST_CASE("gemm: a value that is not finite survives the rounding") {
  const OnEachDevice here;
  const Tensor a = random_tensor(Shape{64, 64}), b = random_tensor(Shape{64, 64}), c(Shape{64, 64});
  a.data<float>()[5 * 64 + 7] = std::nanf("");
  a.data<float>()[9 * 64 + 7] = std::numeric_limits<float>::infinity();
  gemm(a, b, c, 1, 0, Rounding::bf16);
  CHECK(std::isnan(c.data<float>()[5 * 64 + 3]));
  CHECK(!std::isfinite(c.data<float>()[9 * 64 + 3]));
  CHECK(std::isfinite(c.data<float>()[6 * 64 + 3]));
}
