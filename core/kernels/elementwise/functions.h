// Elementwise functions and their derivatives, written once for both compilers.
// `value` is y = f(x); `gradient` is dx from x, y = f(x) and dy.
#pragma once

#include <cmath>

#include "heed/core/kernels/simd/math.h"
#include "heed/core/launch.h"

namespace heed {

struct Exp {
  template <class T>
  HEED_BOTH static T value(T x) {
    return math::exp(x);
  }
  template <class T>
  HEED_BOTH static T gradient(T, T y, T dy) {
    return dy * y;
  }
};
struct Log {
  template <class T>
  HEED_BOTH static T value(T x) {
    return std::log(x);
  }
  template <class T>
  HEED_BOTH static T gradient(T x, T, T dy) {
    return dy / x;
  }
};
struct Tanh {
  template <class T>
  HEED_BOTH static T value(T x) {
    return math::tanh(x);
  }
  template <class T>
  HEED_BOTH static T gradient(T, T y, T dy) {
    return dy * (T(1) - y * y);
  }
};
struct Sigmoid {
  template <class T>
  HEED_BOTH static T value(T x) {
    return math::sigmoid(x);
  }
  template <class T>
  HEED_BOTH static T gradient(T, T y, T dy) {
    return dy * y * (T(1) - y);
  }
};
struct Relu {
  template <class T>
  HEED_BOTH static T value(T x) {
    return x > T(0) ? x : T(0);
  }
  template <class T>
  HEED_BOTH static T gradient(T x, T, T dy) {
    return x > T(0) ? dy : T(0);
  }
};
/// x Phi(x), Hendrycks and Gimpel 2016, by the error function.
struct Gelu {
  template <class T>
  HEED_BOTH static T value(T x) {
    return T(0.5) * x * (T(1) + math::erf(x * T(0.70710678118654752)));
  }
  template <class T>
  HEED_BOTH static T gradient(T x, T, T dy) {
    const T bell = T(0.39894228040143268) * math::exp(T(-0.5) * x * x);
    return dy * (T(0.5) * (T(1) + math::erf(x * T(0.70710678118654752))) + x * bell);
  }
};
/// The tanh form of GELU (same paper), as in GPT-2.
struct GeluTanh {
  template <class T>
  HEED_BOTH static T value(T x) {
    return x * math::sigmoid(T(1.5957691216057308) * (x + T(0.044715) * x * x * x));
  }
  template <class T>
  HEED_BOTH static T gradient(T x, T, T dy) {
    // Beyond 10 the gradient is 0 or 1 to the last bit; cutting x there keeps its powers finite.
    x = x > T(10) ? T(10) : (x < T(-10) ? T(-10) : x);
    const T s = math::sigmoid(T(1.5957691216057308) * (x + T(0.044715) * x * x * x));
    return dy * (s + x * s * (T(1) - s) * T(1.5957691216057308) * (T(1) + T(0.134145) * x * x));
  }
};
struct Silu {
  template <class T>
  HEED_BOTH static T value(T x) {
    return x * math::sigmoid(x);
  }
  template <class T>
  HEED_BOTH static T gradient(T x, T, T dy) {
    const T s = math::sigmoid(x);
    return dy * s * (T(1) + x * (T(1) - s));
  }
};
/// Clevert et al. 2016. The exponential is taken of min(x, 0), so the branch not chosen cannot overflow.
struct Elu {
  template <class T>
  HEED_BOTH static T value(T x) {
    return x > T(0) ? x : math::exp(x < T(0) ? x : T(0)) - T(1);
  }
  template <class T>
  HEED_BOTH static T gradient(T x, T y, T dy) {
    return x > T(0) ? dy : dy * (y + T(1));
  }
};
/// log(1 + e^x), by the exponential of -|x|.
struct Softplus {
  template <class T>
  HEED_BOTH static T value(T x) {
    return (x > T(0) ? x : T(0)) + std::log1p(math::exp(x > T(0) ? -x : x));
  }
  template <class T>
  HEED_BOTH static T gradient(T x, T, T dy) {
    return dy * math::sigmoid(x);
  }
};
struct Sine {
  template <class T>
  HEED_BOTH static T value(T x) {
    return std::sin(x);
  }
  template <class T>
  HEED_BOTH static T gradient(T x, T, T dy) {
    return dy * std::cos(x);
  }
};
struct Cosine {
  template <class T>
  HEED_BOTH static T value(T x) {
    return std::cos(x);
  }
  template <class T>
  HEED_BOTH static T gradient(T x, T, T dy) {
    return -dy * std::sin(x);
  }
};
struct Square {
  template <class T>
  HEED_BOTH static T value(T x) {
    return x * x;
  }
  template <class T>
  HEED_BOTH static T gradient(T x, T, T dy) {
    return T(2) * x * dy;
  }
};
struct Sqrt {
  template <class T>
  HEED_BOTH static T value(T x) {
    return std::sqrt(x);
  }
  template <class T>
  HEED_BOTH static T gradient(T, T y, T dy) {
    return dy * T(0.5) / y;
  }
};
struct Reciprocal {
  template <class T>
  HEED_BOTH static T value(T x) {
    return T(1) / x;
  }
  template <class T>
  HEED_BOTH static T gradient(T, T y, T dy) {
    return -dy * y * y;
  }
};
struct Abs {
  template <class T>
  HEED_BOTH static T value(T x) {
    return x < T(0) ? -x : x;
  }
  template <class T>
  HEED_BOTH static T gradient(T x, T, T dy) {
    return x > T(0) ? dy : (x < T(0) ? -dy : T(0));
  }
};

struct Add {
  template <class T>
  HEED_BOTH static T value(T a, T b) {
    return a + b;
  }
};
struct Subtract {
  template <class T>
  HEED_BOTH static T value(T a, T b) {
    return a - b;
  }
};
struct Multiply {
  template <class T>
  HEED_BOTH static T value(T a, T b) {
    return a * b;
  }
};
struct Divide {
  template <class T>
  HEED_BOTH static T value(T a, T b) {
    return a / b;
  }
};
struct Maximum {
  template <class T>
  HEED_BOTH static T value(T a, T b) {
    return a > b ? a : b;
  }
};
struct Minimum {
  template <class T>
  HEED_BOTH static T value(T a, T b) {
    return b < a ? b : a;
  }
};
/// 1 where a >= b, else 0: the gradients of Maximum and Minimum choose by it.
struct NotLess {
  template <class T>
  HEED_BOTH static T value(T a, T b) {
    return a >= b ? T(1) : T(0);
  }
};

}  // namespace heed
