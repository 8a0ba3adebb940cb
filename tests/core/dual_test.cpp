// Dual numbers against central differences of the same formulas.
#include "heed/core/dual.h"

#include <cmath>

#include "heed/tests/catch.h"

namespace heed {
namespace {

using std::abs, std::cos, std::exp, std::log, std::sin, std::sqrt, std::tanh;

template <class F>
void check_slope(const char* name, const F& f) {
  for (const double x : {0.3, 1.7}) {
    CAPTURE(name, x);
    const Dual<double> y = f(Dual<double>(x, 1));
    CHECK(y.value == f(x));
    const double step = 1e-6;
    CHECK(y.slope == Approx((f(x + step) - f(x - step)) / (2 * step)).epsilon(1e-8).margin(1e-9));
  }
}

}  // namespace

TEST_CASE("dual: slopes are those of central differences") {
  check_slope("negation", [](auto x) { return -x; });
  check_slope("sum", [](auto x) { return 2 + x + x * 1.5; });
  check_slope("difference", [](auto x) { return 2 - x - x * x; });
  check_slope("product", [](auto x) { return (x + 1) * (3 - x); });
  check_slope("quotient", [](auto x) { return (x * x + 1) / (2 + x); });
  check_slope("exp", [](auto x) { return exp(2 * x); });
  check_slope("log", [](auto x) { return log(x * x); });
  check_slope("tanh", [](auto x) { return tanh(x / 2); });
  check_slope("sqrt", [](auto x) { return sqrt(3 * x); });
  check_slope("abs", [](auto x) { return abs(x - 1); });
  check_slope("sin", [](auto x) { return sin(3 * x); });
  check_slope("cos", [](auto x) { return cos(3 * x); });
}

TEST_CASE("dual: comparisons look at the value, and numbers are constants") {
  const Dual<float> x(2, 5);
  CHECK(x == Dual<float>(2));
  CHECK(x < 3);
  CHECK(1 <= x);
  CHECK(Dual<float>(7).slope == 0);
  CHECK(abs(Dual<float>(0, 5)).slope == 0);
  const bool hidden = true;
  const auto y =
      hidden ? -INFINITY : x;  // an int, a float and a double are converted to the Dual beside them
  CHECK(y.value == -INFINITY);
}

}  // namespace heed
