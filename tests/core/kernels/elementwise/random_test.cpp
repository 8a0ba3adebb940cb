// Random fills: statistics, and dependence on counters only.
#include "heed/core/kernels/elementwise/random.h"
#include "heed/core/launch.h"

#include <algorithm>

#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

Draw draw_of(uint64_t seed, uint64_t stream = 0, int64_t tick = 0) {
  return {seed, stream, Tensor::full(Shape{1}, static_cast<double>(tick), DType::i64)};
}

Tensor normal(int64_t size, DType dtype, const Draw& draw, double mean = 0, double deviation = 1) {
  Tensor x(Shape{size}, dtype);
  launch_here<kernel::FillNormal>(x, mean, deviation, draw);
  return x;
}

struct Moments {
  double mean = 0, variance = 0, skew = 0, fourth = 0, neighbours = 0;
};

Moments moments(const std::vector<double>& x) {
  Moments m;
  const auto n = static_cast<double>(x.size());
  for (double v : x) m.mean += v / n;
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = x[i] - m.mean;
    m.variance += d * d / n;
    m.skew += d * d * d / n;
    m.fourth += d * d * d * d / n;
    if (i > 0) m.neighbours += d * (x[i - 1] - m.mean) / n;
  }
  return m;
}

}  // namespace

TEST_CASE("fill_normal: moments, tails and independence of neighbours") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const auto x = normal(400000, dtype, draw_of(1), 3, 2).to_doubles();
  const Moments m = moments(x);
  CHECK(std::abs(m.mean - 3) < 0.015);
  CHECK(std::abs(m.variance - 4) < 0.04);
  CHECK(std::abs(m.skew) < 0.15);
  CHECK(std::abs(m.fourth - 48) < 1.5);
  CHECK(std::abs(m.neighbours) < 0.03);
  const auto within = std::count_if(x.begin(), x.end(), [](double v) { return std::abs(v - 3) < 2; });
  CHECK(std::abs(static_cast<double>(within) / 400000 - 0.682689) < 0.004);
  CHECK(std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); }));
}

TEST_CASE("fill_uniform: moments and bounds") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  Tensor x(Shape{400000}, dtype);
  launch_here<kernel::FillUniform>(x, -1, 3, draw_of(2));
  const auto values = x.to_doubles();
  const Moments m = moments(values);
  CHECK(std::abs(m.mean - 1) < 0.008);
  CHECK(std::abs(m.variance - 4.0 / 3) < 0.01);
  CHECK(std::abs(m.neighbours) < 0.01);
  CHECK(*std::min_element(values.begin(), values.end()) >= -1);
  CHECK(*std::max_element(values.begin(), values.end()) < 3);
}

TEST_CASE("fill_uniform: rounding never gives the upper bound") {
  const OnEachDevice here;
  // Between 2^24 and 2^24 + 2 there is one float step, so half of the numbers would round up to the bound.
  Tensor x(Shape{1000});
  launch_here<kernel::FillUniform>(x, 16777216, 16777218, draw_of(2));
  for (float value : x.to_host()) REQUIRE(value == 16777216.F);
}

TEST_CASE("random: numbers depend on seed, stream, tick and place alone") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const auto whole = normal(1001, dtype, draw_of(1, 2, 3)).to_doubles();
  const auto part = normal(57, dtype, draw_of(1, 2, 3)).to_doubles();
  CHECK(std::equal(part.begin(), part.end(), whole.begin()));
  for (const Draw& other : {draw_of(9, 2, 3), draw_of(1, 9, 3), draw_of(1, 2, 9)}) {
    const auto different = normal(1001, dtype, other).to_doubles();
    int equal = 0;
    for (size_t i = 0; i < whole.size(); ++i) equal += different[i] == whole[i] ? 1 : 0;
    CHECK(equal < 3);
  }
  CHECK(same_for_any_threads([&] { return normal(100003, dtype, draw_of(4)); }));
}

TEST_CASE("fill_normal: float and double agree with their blocks") {
  const OnEachDevice here;
  const Draw draw = draw_of(11, 5, 7);
  const auto x = normal(8, DType::f32, draw).to_doubles();
  const Philox block = Philox::at(11, 1, Draw::high(5, 7));
  const double radius = std::sqrt(-2 * std::log((block.word[2] + 0.5) * 0x1p-32));
  const double angle = 6.283185307179586 * (block.word[3] >> 8) * 0x1p-24;
  CHECK(x[6] == Approx(radius * std::cos(angle)).epsilon(1e-6));
  CHECK(x[7] == Approx(radius * std::sin(angle)).epsilon(1e-6));
}

TEST_CASE("advance: the tick grows by one") {
  const OnEachDevice here;
  const Tensor tick = Tensor::full(Shape{1}, 41, DType::i64);
  launch_here<kernel::Advance>(tick);
  CHECK(tick.item() == 42);
}
