// Products of few rows with a bf16 weight.
#include "heed/core/kernels/gemm/bf16_weight_gemm.h"

#include <cmath>
#include <utility>

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

TEST_CASE("narrow_rows: each row of the weight with each row of the input, added to what is there") {
  const OnEachDevice here;
  const int64_t m = GENERATE(1, 2, 3, 4, 5, 6), k = GENERATE(1, 16, 37, 776), n = GENERATE(1, 5, 64, 1000);
  const double beta = GENERATE(0.0, 1.0, -0.5);
  const Tensor a = random_tensor(Shape{m, k}), c = random_tensor(Shape{m, n}, DType::f32, 2);
  const Tensor w(Shape{n, k}, DType::bf16);
  launch<kernel::Copy>(Device::cpu, random_tensor(Shape{n, k}, DType::f32, 3), w);
  const auto left = a.to_doubles(), right = w.to_doubles();
  std::vector<double> wanted = c.to_doubles();
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = beta * wanted[static_cast<size_t>(i * n + j)];
      for (int64_t l = 0; l < k; ++l)
        sum += left[static_cast<size_t>(i * k + l)] * right[static_cast<size_t>(j * k + l)];
      wanted[static_cast<size_t>(i * n + j)] = sum;
    }
  }
  launch_here<kernel::Bf16WeightGemm>(a, w, c, beta);
  CHECK(distance(c, wanted) < tolerance(DType::f32));
}

TEST_CASE("narrow_rows: rows of whole packs that begin within one") {
  const OnEachDevice here;
  const int64_t n = 7, k = 48;
  const Tensor wide = random_tensor(Shape{2 * k + 4}), narrow(Shape{n * k + 8}, DType::bf16);
  launch<kernel::Copy>(Device::cpu, random_tensor(narrow.shape(), DType::f32, 3), narrow);
  for (const auto& [begin, start] :
       {std::pair<int64_t, int64_t>{0, 0}, {4, 0}, {1, 0}, {0, 8}, {0, 4}, {2, 1}}) {
    const Tensor a = Tensor(wide).seen_as(Shape{2, k}, Strides{k, 1}, begin),
                 w = Tensor(narrow).seen_as(Shape{n, k}, Strides{k, 1}, start), c(Shape{2, n});
    const auto left = a.to_doubles(), right = w.to_doubles();
    std::vector<double> wanted(static_cast<size_t>(2 * n), 0.0);
    for (size_t e = 0; e < wanted.size(); ++e) {
      for (size_t l = 0; l < static_cast<size_t>(k); ++l)
        wanted[e] += left[e / n * k + l] * right[e % n * k + l];
    }
    launch_here<kernel::Bf16WeightGemm>(a, w, c, 0.0);
    INFO("begin at " << begin << " and " << start);
    CHECK(distance(c, wanted) < tolerance(DType::f32));
  }
}

TEST_CASE("narrow_rows: what lay in the result is not read where it is not added") {
  const OnEachDevice here;
  const Tensor a = random_tensor(Shape{2, 40}), c = Tensor::full(Shape{2, 50}, std::nan(""));
  const Tensor w(Shape{50, 40}, DType::bf16);
  launch<kernel::Copy>(Device::cpu, random_tensor(Shape{50, 40}), w);
  launch_here<kernel::Bf16WeightGemm>(a, w, c, 0.0);
  for (const double x : c.to_doubles()) CHECK(std::isfinite(x));
}

TEST_CASE("narrow_rows: the same bits for any threads") {
  const OnEachDevice here;
  const Tensor a = random_tensor(Shape{3, 512});
  const Tensor w(Shape{4100, 512}, DType::bf16);
  launch<kernel::Copy>(Device::cpu, random_tensor(Shape{4100, 512}), w);
  CHECK(same_for_any_threads([&] {
    const Tensor c(Shape{3, 4100});
    launch_here<kernel::Bf16WeightGemm>(a, w, c, 0.0);
    return c;
  }));
}
