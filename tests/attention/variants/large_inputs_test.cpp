// Attentions with inputs that are very large, very small or far from zero.
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/autograd/gradcheck.h"
#include "heed/tests/attention/battery/kit.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using battery::numbers;

struct Inputs {
  Tensor q, k, v;
};

Inputs normal(double deviation, int64_t length, DType dtype = DType::f64) {
  const Shape shape{1, 2, length, 16};
  return {numbers(shape, 1, dtype) * deviation, numbers(shape, 2, dtype) * deviation,
          numbers(shape, 3, dtype)};
}
Inputs leaves(const Inputs& x) { return {leaf(x.q), leaf(x.k), leaf(x.v)}; }
Inputs rounded(const Inputs& x, DType dtype) {
  return {cast(x.q, dtype), cast(x.k, dtype), cast(x.v, dtype)};
}

std::unique_ptr<Attention> made(const std::string& spec, bool causal, DType dtype) {
  Rng rng(7);
  auto attention =
      make_attention(spec, {.d_model = 32, .heads = 2, .causal = causal, .max_length = 256}, rng);
  if (dtype != DType::f32) convert(*attention, dtype);
  return attention;
}

Tensor run(Attention& attention, const Inputs& x, bool causal) {
  return dynamic_cast<MultiHeadAttention&>(attention).on_heads(
      {x.q, x.k, x.v}, {.mask = causal ? Mask::causal() : Mask::none()});
}

/// The largest difference over the largest number. What is all below a thousandth counts as that: where one
/// key has all the weight, gradients are nothing but rounding.
double error(const Tensor& found, const Tensor& wanted) {
  const std::vector<double> a = found.to_doubles(), b = wanted.to_doubles();
  double worst = 0, size = 1e-3;
  for (size_t i = 0; i < b.size(); ++i) {
    const double off = std::abs(a[i] - b[i]);
    worst = off <= worst ? worst : std::isnan(off) ? HUGE_VAL : off;
    size = std::max(size, std::abs(b[i]));
  }
  return worst / size;
}

Tensor last_row(const Tensor& y) { return slice(y, 2, y.extent(2) - 1, y.extent(2)); }

/// Gradients of q, k and v from a fixed direction.
std::vector<Tensor> slopes(Attention& attention, const Inputs& given, bool causal, bool last) {
  const Inputs x = leaves(given);
  const Tensor y = run(attention, x, causal);
  const Tensor seen = last ? last_row(y) : y;
  backward(sum(seen * cast(numbers(seen.shape(), 4, DType::f64), seen.dtype())));
  return {grad_of(x.q).detach(), grad_of(x.k).detach(), grad_of(x.v).detach()};
}

const std::vector<std::string> exponential{
    "performer", "performer:features=hyperbolic", "performer:epsilon=0.01", "efficient", "rff:longest=1e9",
    "rff"};

}  // namespace

TEST_CASE("large inputs: the last causal row is the two-sided one", "[performer][efficient][rff]") {
  for (const std::string& spec : exponential) {
    for (const double deviation : {1, 16, 30, 100}) {
      CAPTURE(spec, deviation);
      const Inputs x = normal(deviation, 64);
      const auto causal = made(spec, true, DType::f64), both = made(spec, false, DType::f64);
      CHECK(error(last_row(run(*causal, x, true)), last_row(run(*both, x, false))) < 1e-9);
    }
  }
}

TEST_CASE("large inputs: gradients of the last causal row are the two-sided ones",
          "[performer][efficient][rff]") {
  for (const std::string& spec : exponential) {
    for (const double deviation : {1, 16, 100}) {
      const Inputs x = normal(deviation, 64);
      const auto causal = made(spec, true, DType::f64), both = made(spec, false, DType::f64);
      const auto found = slopes(*causal, x, true, true), wanted = slopes(*both, x, false, true);
      for (size_t i = 0; i < 3; ++i) {
        CAPTURE(spec, deviation, i);
        CHECK(error(found[i], wanted[i]) < 1e-8);
      }
    }
  }
}

TEST_CASE("large inputs: causal gradients are those of the function", "[performer][efficient][rff]") {
  for (const std::string& spec : exponential) {
    CAPTURE(spec);
    const auto attention = made(spec, true, DType::f64);
    const Inputs x = normal(16, 9);
    const GradcheckReport report = gradcheck(
        [&](std::span<const Tensor> in) {
          return run(*attention, {in[0], in[1], in[2]}, true);
        },
        {x.q, x.k, x.v}, {.step = 1e-7, .tolerance = 1e-5, .samples = 40});
    INFO(to_string(report));
    CHECK(report.passed);
  }
}

TEST_CASE("small inputs: gradients keep their digits in f32", "[performer][efficient]") {
  struct Try {
    const char* spec;
    size_t input;      // q, k or v
    double max_error;  // what differences of a thousandth leave of the digits of f32
  };
  for (const Try& attempt :
       {Try{"efficient", 0, 5e-4}, Try{"performer:features=hyperbolic,epsilon=0", 1, 2e-4}}) {
    for (const bool causal : {false, true}) {
      const Inputs x = rounded(normal(1e-3, 40), DType::f32);
      const auto narrow = made(attempt.spec, causal, DType::f32),
                 wide = made(attempt.spec, causal, DType::f64);
      const Tensor found = slopes(*narrow, x, causal, false)[attempt.input],
                   wanted = slopes(*wide, rounded(x, DType::f64), causal, false)[attempt.input];
      CAPTURE(attempt.spec, causal);
      CHECK(error(found, wanted) < attempt.max_error);
    }
  }
}

TEST_CASE("large limits: keys as long as they are", "[rff]") {
  const Inputs x = normal(2, 40);
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    const auto unlimited = made("rff:longest=1e9", causal, DType::f64),
               wide = made("rff:longest=50", causal, DType::f64);
    CHECK(error(run(*unlimited, x, causal), run(*wide, x, causal)) < 1e-12);
  }
}

TEST_CASE("large offsets: distances do not depend on what all have in common", "[kernel][kernelized]") {
  for (const auto& [spec, causal] :
       {std::pair{"kernel", false}, std::pair{"kernel", true}, std::pair{"kernelized", false},
        std::pair{"kernelized", true}, std::pair{"skyformer:features=16", false}}) {
    for (const double offset : {0.0, 1e3}) {
      Inputs x = normal(1, 40);
      const Inputs near = rounded({x.q + offset, x.k + offset, x.v}, DType::f32);
      const auto narrow = made(spec, causal, DType::f32), wide = made(spec, causal, DType::f64);
      const Inputs exact = rounded(near, DType::f64);
      CAPTURE(spec, causal, offset);
      CHECK(error(run(*narrow, near, causal), run(*wide, exact, causal)) < 1e-5);
      const auto found = slopes(*narrow, near, causal, false), wanted = slopes(*wide, exact, causal, false);
      for (size_t i = 0; i < 3; ++i) CHECK(error(found[i], wanted[i]) < 2e-5);
    }
  }
}

}  // namespace heed
