// Dual numbers: a value and its slope, so that a formula that is written once gives both.
#pragma once

#include <cmath>
#include <compare>
#include <type_traits>

namespace heed {

/// A number that depends on one variable, and its derivative by it. Arithmetic and the functions below follow
/// the rules of derivatives; comparisons look at the value alone. A plain number converts to a constant.
template <class T>
struct Dual {
  T value = 0;  ///< the number
  T slope = 0;  ///< its derivative

  Dual() = default;  ///< the constant 0
  /// A constant: its slope is 0.
  template <class Number>
  requires std::is_arithmetic_v<Number> Dual(Number constant) : value(static_cast<T>(constant)) {}
  Dual(T number, T derivative) : value(number), slope(derivative) {}  ///< a number and its derivative

  friend Dual operator-(Dual x) { return {-x.value, -x.slope}; }                            ///< -x
  friend Dual operator+(Dual x, Dual y) { return {x.value + y.value, x.slope + y.slope}; }  ///< x + y
  friend Dual operator-(Dual x, Dual y) { return {x.value - y.value, x.slope - y.slope}; }  ///< x - y
  /// x y
  friend Dual operator*(Dual x, Dual y) { return {x.value * y.value, x.slope * y.value + x.value * y.slope}; }
  /// x / y
  friend Dual operator/(Dual x, Dual y) {
    const T ratio = x.value / y.value;
    return {ratio, (x.slope - ratio * y.slope) / y.value};
  }
  friend bool operator==(Dual x, Dual y) { return x.value == y.value; }    ///< equal values
  friend auto operator<=>(Dual x, Dual y) { return x.value <=> y.value; }  ///< the order of the values
};

/// e^x
template <class T>
Dual<T> exp(Dual<T> x) {
  const T y = std::exp(x.value);
  return {y, x.slope * y};
}
/// The natural logarithm.
template <class T>
Dual<T> log(Dual<T> x) {
  return {std::log(x.value), x.slope / x.value};
}
/// The hyperbolic tangent.
template <class T>
Dual<T> tanh(Dual<T> x) {
  const T y = std::tanh(x.value);
  return {y, x.slope * (1 - y * y)};
}
/// The square root.
template <class T>
Dual<T> sqrt(Dual<T> x) {
  const T y = std::sqrt(x.value);
  return {y, x.slope / (2 * y)};
}
/// |x|; its slope at 0 is 0.
template <class T>
Dual<T> abs(Dual<T> x) {
  return {std::abs(x.value), x.value > 0 ? x.slope : x.value < 0 ? -x.slope : T(0)};
}
/// The sine of x in radians.
template <class T>
Dual<T> sin(Dual<T> x) {
  return {std::sin(x.value), x.slope * std::cos(x.value)};
}
/// The cosine of x in radians.
template <class T>
Dual<T> cos(Dual<T> x) {
  return {std::cos(x.value), -x.slope * std::sin(x.value)};
}

}  // namespace heed
