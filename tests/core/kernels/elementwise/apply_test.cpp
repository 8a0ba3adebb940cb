// Elementwise kernels against the functions applied one by one, and the accuracy of the float functions.
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/launch.h"

#include <functional>
#include <limits>

#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// The largest error in units of the last place over a sweep, where the result is a normal number.
double worst_ulps(float (*fast)(float), double (*exact)(double), float low, float high) {
  double worst = 0;
  constexpr int steps = 400000;
  for (int i = 0; i <= steps; ++i) {
    const float x = low + (high - low) * (static_cast<float>(i) / steps);
    const double expected = exact(static_cast<double>(x));
    const auto nearest = static_cast<float>(expected);
    const double unit = static_cast<double>(std::nextafter(std::abs(nearest), infinity)) -
                        std::abs(static_cast<double>(nearest));
    worst = std::max(worst, std::abs(static_cast<double>(fast(x)) - expected) / unit);
  }
  return worst;
}

double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Map and MapBack of F against the exact function and its central difference, for x in [low, high).
template <class F>
void check_function(const char* name, double low, double high, const std::function<double(double)>& exact) {
  INFO(name);
  for (const DType dtype : {DType::f32, DType::f64}) {
    // Long enough for whole vectors and a tail: contiguous, then with gaps.
    const Tensor x = random_tensor(Shape{37, 21}, dtype, 3, low, high);
    for (const Tensor& in :
         {x, view::transpose(x, 0, 1), view::slice(x, 1, 2, 20), view::slice(x, 1, 0, 1)}) {
      Tensor y(in.shape(), dtype), dx(in.shape(), dtype);
      const Tensor dy = random_tensor(in.shape(), dtype, 5);
      launch_here<kernel::Map<F>>(in, y);
      launch_here<kernel::MapBack<F>>(in, y, dy, dx);
      const auto inputs = in.to_doubles(), output_grads = dy.to_doubles();
      std::vector<double> outputs, input_grads;
      for (size_t i = 0; i < inputs.size(); ++i) {
        constexpr double h = 1e-5;
        outputs.push_back(exact(inputs[i]));
        input_grads.push_back(output_grads[i] * (exact(inputs[i] + h) - exact(inputs[i] - h)) / (2 * h));
      }
      CHECK(distance(y, outputs) < (dtype == DType::f64 ? 1e-14 : 1e-6));
      CHECK(distance(dx, input_grads) < (dtype == DType::f64 ? 1e-8 : 1e-5));
    }
  }
}

}  // namespace

TEST_CASE("math: float functions stay within a few units in the last place") {
  CHECK(worst_ulps([](float x) { return math::exp(x); }, std::exp, -86, 88.7F) < 2);
  CHECK(worst_ulps([](float x) { return math::exp(x); }, std::exp, -1e-3F, 1e-3F) < 1);
  CHECK(worst_ulps([](float x) { return math::tanh(x); }, std::tanh, -12, 12) < 3);
  CHECK(worst_ulps([](float x) { return math::tanh(x); }, std::tanh, -1e-4F, 1e-4F) < 2);
  CHECK(worst_ulps([](float x) { return math::erf(x); }, std::erf, -5, 5) < 3);
  CHECK(worst_ulps([](float x) { return math::erf(x); }, std::erf, -1e-4F, 1e-4F) < 2);
  CHECK(worst_ulps([](float x) { return math::sigmoid(x); }, exact_sigmoid, -80, 80) < 4);
}

TEST_CASE("math: float functions at the ends of the range") {
  // Through volatile, so that the vector code's scalar twin runs and nothing is folded.
  const auto at = [](float (*f)(float), float x) {
    volatile float hidden = x;
    return f(hidden);
  };
  const auto exp = [](float x) { return math::exp(x); };
  const auto tanh = [](float x) { return math::tanh(x); };
  const auto erf = [](float x) { return math::erf(x); };
  const auto sigmoid = [](float x) { return math::sigmoid(x); };
  CHECK(at(exp, -infinity) == 0);
  CHECK(at(exp, infinity) == infinity);
  CHECK(at(exp, 0) == 1);
  CHECK(at(exp, -1e30F) == 0);
  CHECK(at(exp, 88.72F) == Approx(3.4e38).epsilon(0.01));
  CHECK(at(exp, 88.73F) == infinity);
  CHECK(std::isnan(at(exp, std::nanf(""))));
  for (float huge : {20.F, 1e10F, 3e38F, infinity}) {
    CHECK(at(tanh, huge) == 1);
    CHECK(at(tanh, -huge) == -1);
    CHECK(at(erf, huge) == 1);
    CHECK(at(erf, -huge) == -1);
  }
  for (float tiny : {0.F, -0.F, 1e-10F, -1e-30F}) {
    CHECK(at(tanh, tiny) == tiny);
    CHECK(at(erf, tiny) == Approx(static_cast<double>(tiny) * 1.1283791670955126).epsilon(1e-6));
  }
  CHECK(std::isnan(at(tanh, std::nanf(""))));
  CHECK(std::isnan(at(erf, std::nanf(""))));
  CHECK(std::isnan(at(sigmoid, std::nanf(""))));
  CHECK(at(sigmoid, -infinity) == 0);
  CHECK(at(sigmoid, infinity) == 1);
}

TEST_CASE("map: each function and its derivative") {
  const OnEachDevice here;
  check_function<Exp>("exp", -5, 2, [](double x) { return std::exp(x); });
  check_function<Log>("log", 0.5, 9, [](double x) { return std::log(x); });
  check_function<Tanh>("tanh", -3, 3, [](double x) { return std::tanh(x); });
  check_function<Sigmoid>("sigmoid", -5, 5, exact_sigmoid);
  check_function<Relu>("relu", -1, 1, [](double x) { return std::max(x, 0.0); });
  check_function<Gelu>("gelu", -4, 4, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); });
  check_function<GeluTanh>("gelu tanh", -4, 4, [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
  });
  check_function<Silu>("silu", -4, 4, [](double x) { return x * exact_sigmoid(x); });
  check_function<Elu>("elu", -4, 4, [](double x) { return x > 0 ? x : std::expm1(x); });
  check_function<Square>("square", -4, 4, [](double x) { return x * x; });
  check_function<Sqrt>("sqrt", 0.5, 4, [](double x) { return std::sqrt(x); });
  check_function<Reciprocal>("reciprocal", 0.5, 4, [](double x) { return 1 / x; });
  check_function<Abs>("abs", -4, 4, [](double x) { return std::abs(x); });
}

TEST_CASE("map: special values pass through vectors as through single numbers") {
  const OnEachDevice here;
  std::vector<float> in;
  for (int i = 0; i < 20; ++i) in.insert(in.end(), {-infinity, infinity, std::nanf(""), 0.F, 1.F});
  const Tensor x = Tensor::from(in, Shape{100});
  Tensor y(Shape{100});
  launch_here<kernel::Map<Exp>>(x, y);
  const auto out = y.to_host();
  bool is_right = true;
  for (size_t i = 0; i < 100; i += 5) {
    is_right = is_right && out[i] == 0 && out[i + 1] == infinity && std::isnan(out[i + 2]) && out[i + 3] == 1;
  }
  CHECK(is_right);
  launch_here<kernel::Map<Relu>>(x, y);
  CHECK(y.to_host()[0] == 0);
  CHECK(y.to_host()[1] == infinity);
}

TEST_CASE("zip: operands that broadcast in every way") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const Shape whole{4, 3, 50};
  for (const Shape& left :
       {Shape{4, 3, 50}, Shape{50}, Shape{3, 1}, Shape{4, 1, 50}, Shape{1}, Shape{4, 1, 1}}) {
    for (const Shape& right : {Shape{4, 3, 50}, Shape{50}, Shape{3, 1}, Shape{4, 1, 50}, Shape{1}}) {
      const Tensor a = view::expand(random_tensor(left, dtype, 1, 0.5, 2), whole);
      const Tensor b = view::expand(random_tensor(right, dtype, 2, 0.5, 2), whole);
      Tensor out(whole, dtype);
      const auto x = a.to_doubles(), y = b.to_doubles();
      const auto check = [&](double (*f)(double, double)) {
        std::vector<double> expected;
        for (size_t i = 0; i < x.size(); ++i) expected.push_back(f(x[i], y[i]));
        return distance(out, expected) < tolerance(dtype);
      };
      launch_here<kernel::Zip<Add>>(a, b, out);
      CHECK(check([](double p, double q) { return p + q; }));
      launch_here<kernel::Zip<Subtract>>(a, b, out);
      CHECK(check([](double p, double q) { return p - q; }));
      launch_here<kernel::Zip<Multiply>>(a, b, out);
      CHECK(check([](double p, double q) { return p * q; }));
      launch_here<kernel::Zip<Divide>>(a, b, out);
      CHECK(check([](double p, double q) { return p / q; }));
      launch_here<kernel::Zip<Maximum>>(a, b, out);
      CHECK(check([](double p, double q) { return std::max(p, q); }));
      launch_here<kernel::Zip<NotLess>>(a, b, out);
      CHECK(check([](double p, double q) { return p >= q ? 1.0 : 0.0; }));
    }
  }
}

TEST_CASE("affine, accumulate and select") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const Tensor x = random_tensor(Shape{9, 41}, dtype);
  const auto in = x.to_doubles();
  Tensor y = random_tensor(Shape{9, 41}, dtype, 2);
  const auto before = y.to_doubles();

  launch_here<kernel::Accumulate>(x, y);
  std::vector<double> expected = before;
  for (size_t i = 0; i < in.size(); ++i) expected[i] += in[i];
  CHECK(distance(y, expected) < 1e-6);

  launch_here<kernel::Affine>(y, 2, -3, y);  // in place
  for (double& value : expected) value = 2 * value - 3;
  CHECK(distance(y, expected) < 1e-6);

  const std::vector<uint8_t> keep = {1, 0, 7, 0, 0, 1, 0, 1, 1};
  const Tensor mask = view::expand(Tensor::of<uint8_t>(keep, Shape{9, 1}), Shape{9, 41});
  launch_here<kernel::Select>(mask, x, -INFINITY, y);
  for (size_t i = 0; i < in.size(); ++i) expected[i] = keep[i / 41] != 0 ? in[i] : -INFINITY;
  CHECK(distance(y, expected) == 0);
}

TEST_CASE("count_non_finite: infinities and NaNs add up") {
  const OnEachDevice here;
  std::vector<float> values(100000, 1.F);
  values[5] = infinity;
  values[77777] = std::nanf("");
  values[99999] = -infinity;
  const Tensor bad = Tensor::full(Shape{1}, 10, DType::i64);
  launch_here<kernel::CountNonFinite>(Tensor::from(values, Shape{100000}), bad);
  CHECK(bad.item() == 13);
}

TEST_CASE("map: the same bits for any number of threads") {
  const OnEachDevice here;
  const Tensor x = random_tensor(Shape{123457});
  CHECK(same_for_any_threads([&] {
    Tensor y = empty_like(x);
    launch_here<kernel::Map<Gelu>>(x, y);
    return y;
  }));
}
