// Measures of queries on samples, and the selection by them.
#include "heed/core/kernels/content/prob_sparse.h"
#include "heed/core/launch.h"

#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

Tensor rows(const std::vector<float>& values) {
  return Tensor::from(values, Shape{1, 1, static_cast<int64_t>(values.size()), 1});
}

Tensor lengths_of(const std::vector<int32_t>& values) {
  return Tensor::of<int32_t>(values, Shape{static_cast<int64_t>(values.size())});
}

template <class K>
std::vector<double> chosen(const std::vector<float>& measure, const Tensor& lengths, int64_t factor,
                           int64_t n) {
  const Tensor which(Shape{1, 1, n}, DType::i32);
  launch_here<K>(Tensor::from(measure, Shape{1, 1, static_cast<int64_t>(measure.size())}), lengths, factor,
                 which);
  return which.to_doubles();
}

}  // namespace

TEST_CASE("prob_sparse: c ceil(ln n), from c to n") {
  CHECK(kernel::logarithmic(5, 1) == 1);
  CHECK(kernel::logarithmic(5, 2) == 2);
  CHECK(kernel::logarithmic(1, 3) == 2);
  CHECK(kernel::logarithmic(5, 1000) == 35);
  CHECK(kernel::logarithmic(5, 0) == 0);
}

TEST_CASE("prob_sparse: the measure is the greatest sampled score less their sum over the keys") {
  const OnEachDevice here;
  const Tensor q = rows({1, 2, -1}), k = rows({3, 5, 1}), measure(Shape{1, 1, 3});
  const Tensor samples = Tensor::from(std::vector<float>{0, 1, 2, 2, 1, 1}, Shape{3, 2});
  const auto measured = [&](const kernel::Sampling& sampling, const Tensor& lengths) {
    launch_here<kernel::SparsityMeasure>(q, k, samples, lengths, sampling, measure);
    return measure.to_doubles();
  };
  const double third = 1.0 / 3;
  CHECK(distance(measured({.fractions = false}, {}), {5 - 8 * third, 2 - 4 * third, -5 + 10 * third}) < 1e-6);
  // Looking back, query i samples keys up to i (numbers beyond start again), and the mean is over the sample.
  CHECK(distance(measured({.fractions = false, .causal = true}, {}), {3 - 3, 6 - 6, -5 + 5}) < 1e-6);
  // Padding is neither measured nor sampled.
  const auto padded = measured({.fractions = false, .same_tokens = true}, lengths_of({2}));
  CHECK(padded[0] == Approx(5 - 8 * 0.5));
  CHECK(padded[1] == Approx(6 - 12 * 0.5));
  CHECK(padded[2] == -INFINITY);
}

TEST_CASE("prob_sparse: measures of heads of all widths, with more samples than a vector has lanes") {
  const OnEachDevice here;
  const int64_t N = 5, M = 23, U = 37, d = GENERATE(1, 6, 8, 16, 32, 40, 64);
  CAPTURE(d);
  const Tensor q = random_tensor({1, 2, N, d}), k = random_tensor({1, 2, M, d}, DType::f32, 2);
  const Tensor samples = random_tensor({N, U}, DType::f32, 3, 0, 1), measure(Shape{1, 2, N});
  launch_here<kernel::SparsityMeasure>(q, k, samples, Tensor(), kernel::Sampling{}, measure);
  const std::vector<double> queries = q.to_doubles(), keys = k.to_doubles(), sample = samples.to_doubles();
  std::vector<double> expected;
  for (int64_t row = 0; row < 2 * N; ++row) {
    double maximum = -INFINITY, total = 0;
    for (int64_t u = 0; u < U; ++u) {
      const auto j =
          static_cast<int64_t>(sample[static_cast<size_t>(row % N * U + u)] * static_cast<double>(M));
      double score = 0;
      for (int64_t c = 0; c < d; ++c) {
        score +=
            queries[static_cast<size_t>(row * d + c)] * keys[static_cast<size_t>((row / N * M + j) * d + c)];
      }
      maximum = std::max(maximum, score);
      total += score;
    }
    expected.push_back(maximum - total / static_cast<double>(M));
  }
  CHECK(distance(measure.to_doubles(), expected) < 1e-4);
}

TEST_CASE("prob_sparse: the greatest of what counts, the first among equal ones") {
  const OnEachDevice here;
  using kernel::TopQueries;
  CHECK(chosen<TopQueries>({3, 9, 3, 7, 3, -2}, {}, 2, 4) == std::vector<double>{0, 1, 2, 3});
  CHECK(chosen<TopQueries>({3, 9, 3, 7, 3, -2}, {}, 1, 2) == std::vector<double>{1, 3});
  CHECK(chosen<TopQueries>({3, 9, 3, 7, 3, -2}, lengths_of({2}), 1, 2) == std::vector<double>{1, -1});
  CHECK(chosen<TopQueries>({-INFINITY, NAN, -INFINITY}, {}, 1, 2) == std::vector<double>{-1, -1});
}

TEST_CASE("prob_sparse: records do not change with what comes later") {
  const OnEachDevice here;
  using kernel::CausalTopQueries;
  CHECK(chosen<CausalTopQueries>({3, 1, 4, 4, 5, 9, 2, 6}, {}, 1, 6) ==
        std::vector<double>{0, 2, 4, 5, -1, -1});
  CHECK(chosen<CausalTopQueries>({3, 1, 4, 4, 5, 0, 0, 0}, {}, 1, 6) ==
        std::vector<double>{0, 2, 4, -1, -1, -1});
  CHECK(chosen<CausalTopQueries>({3, 1, 4, 4, 5, 9, 2, 6}, {}, 2, 12) ==
        std::vector<double>{0, 1, 2, 3, 4, 5, 7, -1, -1, -1, -1, -1});
  CHECK(chosen<CausalTopQueries>({1, 2, 3, 4, 5, 6, 7, 8}, {}, 1, 6) ==
        std::vector<double>{0, 1, 2, 3, 4, 5});
  CHECK(chosen<CausalTopQueries>({1, 2, 3, 4}, lengths_of({2}), 1, 4) == std::vector<double>{0, 1, -1, -1});
}

TEST_CASE("prob_sparse: rows that look back") {
  const OnEachDevice here;
  const Tensor bias(Shape{1, 1, 3, 3});
  launch_here<kernel::PrefixBias>(Tensor::of<int32_t>(std::vector<int32_t>{0, 2, -1}, Shape{1, 1, 3}), bias);
  const double no = -INFINITY;
  CHECK(bias.to_doubles() == std::vector<double>{0, no, no, 0, 0, 0, no, no, no});
}
