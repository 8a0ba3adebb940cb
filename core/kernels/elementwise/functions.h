// Elementwise functions and their derivatives, written once for both compilers: `value` is y = f(x), and
// `gradient` is dx from x, y = f(x) and dy.
#pragma once

#include <cmath>

#include "heed/core/kernels/simd/math.h"
#include "heed/core/launch.h"

namespace heed {

struct Exp {
  HEED_BOTH static auto value(auto x) { return math::exp(x); }
  HEED_BOTH static auto gradient(auto, auto y, auto dy) { return dy * y; }
};
struct Log {
  HEED_BOTH static auto value(auto x) { return std::log(x); }
  HEED_BOTH static auto gradient(auto x, auto, auto dy) { return dy / x; }
};
struct Tanh {
  HEED_BOTH static auto value(auto x) { return math::tanh(x); }
  HEED_BOTH static auto gradient(auto, auto y, auto dy) { return dy * (1 - y * y); }
};
struct Sigmoid {
  HEED_BOTH static auto value(auto x) { return math::sigmoid(x); }
  HEED_BOTH static auto gradient(auto, auto y, auto dy) { return dy * y * (1 - y); }
};
struct Relu {
  HEED_BOTH static auto value(auto x) { return x > 0 ? x : 0; }
  HEED_BOTH static auto gradient(auto x, auto, auto dy) { return x > 0 ? dy : 0; }
};
/// GELU(x) = x Phi(x) (Hendrycks and Gimpel 2016), by the error function.
struct Gelu {
  template <class T>
  HEED_BOTH static T value(T x) {
    return T(0.5) * x * (T(1) + math::erf(x * T(0.70710678118654752)));
  }
  template <class T>
  HEED_BOTH static T gradient(T x, T, T dy) {
    const T density = T(0.39894228040143268) * math::exp(T(-0.5) * x * x);
    return dy * (T(0.5) * (T(1) + math::erf(x * T(0.70710678118654752))) + x * density);
  }
};
/// The tanh approximation of GELU (Hendrycks and Gimpel 2016), as in GPT-2, written as x sigmoid(2 u) with
/// u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  template <class T>
  HEED_BOTH static T value(T x) {
    return x * math::sigmoid(T(1.5957691216057308) * (x + T(0.044715) * x * x * x));
  }
  template <class T>
  HEED_BOTH static T gradient(T x, T, T dy) {
    // Beyond 10 the gradient is 0 or 1 to the last bit; clamping x there keeps its powers finite.
    x = x > T(10) ? T(10) : (x < T(-10) ? T(-10) : x);
    const T s = math::sigmoid(T(1.5957691216057308) * (x + T(0.044715) * x * x * x));
    return dy * (s + x * s * (T(1) - s) * T(1.5957691216057308) * (T(1) + T(0.134145) * x * x));
  }
};
struct Silu {
  HEED_BOTH static auto value(auto x) { return x * math::sigmoid(x); }
  template <class T>
  HEED_BOTH static T gradient(T x, T, T dy) {
    const T s = math::sigmoid(x);
    return dy * s * (T(1) + x * (T(1) - s));
  }
};
/// ELU (Clevert et al. 2016). The exponential is taken of min(x, 0), so the branch not chosen cannot
/// overflow.
struct Elu {
  HEED_BOTH static auto value(auto x) { return x > 0 ? x : math::exp(x < 0 ? x : 0) - 1; }
  HEED_BOTH static auto gradient(auto x, auto y, auto dy) { return x > 0 ? dy : dy * (y + 1); }
};
/// log(1 + e^x), by the exponential of -|x|.
struct Softplus {
  HEED_BOTH static auto value(auto x) { return (x > 0 ? x : 0) + std::log1p(math::exp(x > 0 ? -x : x)); }
  HEED_BOTH static auto gradient(auto x, auto, auto dy) { return dy * math::sigmoid(x); }
};
struct Sine {
  HEED_BOTH static auto value(auto x) { return std::sin(x); }
  HEED_BOTH static auto gradient(auto x, auto, auto dy) { return dy * std::cos(x); }
};
struct Cosine {
  HEED_BOTH static auto value(auto x) { return std::cos(x); }
  HEED_BOTH static auto gradient(auto x, auto, auto dy) { return -dy * std::sin(x); }
};
struct Square {
  HEED_BOTH static auto value(auto x) { return x * x; }
  HEED_BOTH static auto gradient(auto x, auto, auto dy) { return 2 * x * dy; }
};
struct Sqrt {
  HEED_BOTH static auto value(auto x) { return std::sqrt(x); }
  template <class T>
  HEED_BOTH static T gradient(T, T y, T dy) {
    return dy * T(0.5) / y;
  }
};
struct Reciprocal {
  HEED_BOTH static auto value(auto x) { return 1 / x; }
  HEED_BOTH static auto gradient(auto, auto y, auto dy) { return -dy * y * y; }
};
struct Abs {
  HEED_BOTH static auto value(auto x) { return x < 0 ? -x : x; }
  HEED_BOTH static auto gradient(auto x, auto, auto dy) { return x > 0 ? dy : (x < 0 ? -dy : 0); }
};

struct Add {
  HEED_BOTH static auto value(auto a, auto b) { return a + b; }
};
struct Subtract {
  HEED_BOTH static auto value(auto a, auto b) { return a - b; }
};
struct Multiply {
  HEED_BOTH static auto value(auto a, auto b) { return a * b; }
};
struct Divide {
  HEED_BOTH static auto value(auto a, auto b) { return a / b; }
};
struct Maximum {
  HEED_BOTH static auto value(auto a, auto b) { return a > b ? a : b; }
};
struct Minimum {
  HEED_BOTH static auto value(auto a, auto b) { return b < a ? b : a; }
};
/// 1 where a >= b, else 0: the gradients of Maximum and Minimum choose by it.
struct NotLess {
  template <class T>
  HEED_BOTH static T value(T a, T b) {
    return a >= b ? T(1) : T(0);
  }
};

struct Equal {
  HEED_BOTH static bool value(auto a, auto b) { return a == b; }
};
struct Less {
  HEED_BOTH static bool value(auto a, auto b) { return a < b; }
};
struct LessEqual {
  HEED_BOTH static bool value(auto a, auto b) { return a <= b; }
};

template <class... F>
struct FunctionList {};
/// The functions that Map and MapBack are compiled for.
using UnaryFunctions = FunctionList<Exp, Log, Tanh, Sigmoid, Relu, Gelu, GeluTanh, Silu, Elu, Softplus, Sine,
                                    Cosine, Square, Sqrt, Reciprocal, Abs>;
/// The functions that Zip is compiled for.
using BinaryFunctions = FunctionList<Add, Subtract, Multiply, Divide, Maximum, Minimum, NotLess>;
/// The functions that Compare is compiled for. Any comparison with NaN is false.
using Comparisons = FunctionList<Equal, Less, LessEqual>;
/// The functions that ActivationDropout and its gradient are compiled for; their derivatives need x alone.
using DropoutActivations = FunctionList<Relu, Gelu, GeluTanh, Silu>;

}  // namespace heed
