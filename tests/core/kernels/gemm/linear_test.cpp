// Linear layers on every device with fused epilogues, rounded or not, against plain loops.
#include "heed/core/kernels/gemm/linear.h"

#include "heed/core/cuda/module/module.h"
#include "heed/core/cuda/runtime/context.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double gelu_slope(double x) {
  constexpr double h = 1e-5;
  return (gelu(x + h) - gelu(x - h)) / (2 * h);
}

/// The numbers as the products read them.
std::vector<double> read(const Tensor& x, Rounding rounding, bool narrow) {
  std::vector<double> out = x.to_doubles();
  if (x.dtype() == DType::f64 || device_here() == Device::cpu) {
    if (rounding != Rounding::bf16 || x.dtype() == DType::f64) return out;
  }
  if (rounding == Rounding::none || (rounding == Rounding::bf16 && !narrow)) return out;
  for (double& value : out) {
    // Significant bits: 8 of bf16, ties to even; 11 of tf32, ties away from zero.
    int exponent;
    const double share = std::frexp(value, &exponent);
    const double kept =
        rounding == Rounding::bf16 ? std::nearbyint(share * 256) / 256 : std::round(share * 2048) / 2048;
    value = std::ldexp(kept, exponent);
  }
  return out;
}

/// What a layer of N rows computes, and all gradients, from the numbers that its products read.
struct Wanted {
  std::vector<double> before, y, dx, dweight, dbias, dbefore, dsum;
};

struct Layer {
  int64_t N, in, out;
  DType dtype;
  Rounding rounding;
  Tensor x = random_tensor(Shape{N, in}, dtype, 1), weight = random_tensor(Shape{out, in}, dtype, 2),
         bias = random_tensor(Shape{out}, dtype, 3), dy = random_tensor(Shape{N, out}, dtype, 4),
         inner = random_tensor(Shape{N, in}, dtype, 5, -2, 2);

  Wanted wanted(bool biased) const {
    const bool narrow = std::min({N, in, out}) >= 32;
    const auto a = read(x, rounding, narrow), w = read(weight, rounding, narrow),
               d = read(dy, rounding, narrow), b = bias.to_doubles(), exact = dy.to_doubles(),
               t = inner.to_doubles();
    const auto at = [](const std::vector<double>& m, int64_t width, int64_t i, int64_t j) {
      return m[static_cast<size_t>(i * width + j)];
    };
    Wanted made;
    for (int64_t i = 0; i < N; ++i) {
      for (int64_t o = 0; o < out; ++o) {
        double sum = biased ? b[static_cast<size_t>(o)] : 0;
        for (int64_t c = 0; c < in; ++c) sum += at(a, in, i, c) * at(w, in, o, c);
        made.before.push_back(sum);
        made.y.push_back(gelu(sum));
      }
      for (int64_t c = 0; c < in; ++c) {
        double sum = 0;
        for (int64_t o = 0; o < out; ++o) sum += at(d, out, i, o) * at(w, in, o, c);
        made.dx.push_back(sum);
        made.dbefore.push_back(sum * gelu_slope(at(t, in, i, c)));
      }
    }
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t c = 0; c < in; ++c) {
        double sum = 0;
        for (int64_t i = 0; i < N; ++i) sum += at(d, out, i, o) * at(a, in, i, c);
        made.dweight.push_back(sum);
      }
      double sum = 0;
      for (int64_t i = 0; i < N; ++i) sum += at(exact, out, i, o);
      made.dbias.push_back(sum);
    }
    for (int64_t c = 0; c < in; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < N; ++i) sum += at(made.dbefore, in, i, c);
      made.dsum.push_back(sum);
    }
    return made;
  }
};

/// Blank results, so that what is not written shows.
Tensor blank(const Shape& shape, DType dtype) { return Tensor::full(shape, std::nan(""), dtype); }

Tensor copied(const Tensor& x, DType dtype) {
  const Tensor made(x.shape(), dtype);
  launch<kernel::Copy>(Device::cpu, x, made);
  return made;
}

/// Largest difference, relative to the largest number.
double apart(const Tensor& found, const std::vector<double>& wanted) {
  double largest = 1, maximum = 0;
  const auto a = found.to_doubles();
  REQUIRE(a.size() == wanted.size());
  for (const double x : wanted) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < a.size(); ++i)
    maximum = std::isfinite(a[i]) ? std::max(maximum, std::abs(a[i] - wanted[i]) / largest) : HUGE_VAL;
  return maximum;
}

int64_t launches() {
  if constexpr (built_with_cuda) return cuda::is_open() ? cuda::launches() : 0;
  return 0;
}

}  // namespace

TEST_CASE("linear kernel: bias, GELU and every gradient, in each precision") {
  const OnEachDevice here;
  struct Size {
    int64_t N, in, out;
  };
  // Widths that are no multiple of eight have no kernel that does it all.
  for (const Size s :
       {Size{40, 48, 64}, Size{33, 40, 36}, Size{5, 7, 9}, Size{1, 64, 32}, Size{70, 36, 40}}) {
    for (const auto& [dtype, rounding] : {std::pair{DType::f32, Rounding::none},
                                          {DType::f64, Rounding::none},
                                          {DType::f32, Rounding::tf32},
                                          {DType::f32, Rounding::bf16}}) {
      CAPTURE(s.N, s.in, s.out, to_string(dtype), static_cast<int>(rounding));
      const Layer layer{s.N, s.in, s.out, dtype, rounding};
      // Slopes of the plain loops are differences; how hardware comes from f32 to tf32 is its own affair.
      const double near = dtype == DType::f64                             ? 1e-9
                          : rounding == Rounding::tf32 && !cuda::emulated ? 3e-3
                                                                          : 2e-5;
      for (const bool biased : {true, false}) {
        const Wanted want = layer.wanted(biased);
        const Tensor none, bias = biased ? layer.bias : none;
        const Tensor plain = blank(Shape{s.N, s.out}, dtype), before = blank(plain.shape(), dtype),
                     y = blank(plain.shape(), dtype);
        launch_here<kernel::Linear>(layer.x, layer.weight, bias, none, plain, rounding);
        CHECK(apart(plain, want.before) < near);
        launch_here<kernel::Linear>(layer.x, layer.weight, bias, before, y, rounding);
        CHECK(apart(before, want.before) < near);
        CHECK(apart(y, want.y) < near);
        const Tensor dx = blank(Shape{s.N, s.in}, dtype), dbefore = blank(dx.shape(), dtype);
        launch_here<kernel::LinearBack>(layer.dy, layer.weight, none, dx, none, rounding);
        CHECK(apart(dx, want.dx) < near);
        const Tensor dsum = biased ? blank(Shape{s.in}, dtype) : none;
        launch_here<kernel::LinearBack>(layer.dy, layer.weight, layer.inner, dbefore, dsum, rounding);
        CHECK(apart(dbefore, want.dbefore) < near);
        if (biased) CHECK(apart(dsum, want.dsum) < near);
        const Tensor dweight = blank(Shape{s.out, s.in}, dtype),
                     dbias = biased ? blank(Shape{s.out}, dtype) : none;
        launch_here<kernel::LinearWeightBack>(layer.dy, layer.x, dweight, dbias, rounding);
        CHECK(apart(dweight, want.dweight) < near);
        // A sum of numbers that were rounded before may be off by their rounding.
        if (biased) CHECK(apart(dbias, want.dbias) < (rounding == Rounding::bf16 ? 5e-3 : near));
      }
    }
  }
}

TEST_CASE("linear kernel: factors may be rounded once for all products") {
  const OnEachDevice here;
  const Layer layer{40, 48, 64, DType::f32, Rounding::bf16};
  const auto rounded = [](const Tensor& x) { return copied(x, DType::bf16); };
  const Wanted want = layer.wanted(true);
  const Tensor x = rounded(layer.x), weight = rounded(layer.weight), dy = rounded(layer.dy), none;
  const Tensor y = blank(Shape{40, 64}, DType::f32), dx = blank(Shape{40, 48}, DType::f32),
               dweight = blank(Shape{64, 48}, DType::f32), dbias = blank(Shape{64}, DType::f32);
  launch_here<kernel::Linear>(x, weight, layer.bias, none, y, Rounding::bf16);
  CHECK(apart(y, want.before) < 2e-5);
  launch_here<kernel::LinearBack>(dy, weight, none, dx, none, Rounding::bf16);
  CHECK(apart(dx, want.dx) < 2e-5);
  launch_here<kernel::LinearWeightBack>(dy, x, dweight, dbias, Rounding::bf16);
  CHECK(apart(dweight, want.dweight) < 2e-5);
  CHECK(apart(dbias, want.dbias) < 5e-3);
}

TEST_CASE("linear kernel: results of f32 may be written in bf16") {
  const OnEachDevice here;
  // The bias, the result and the slope of GELU are each rounded to bf16 or as far off: half a part in 256
  // each. An H100 is 1.23 parts off at most.
  const double near = 1.5 / 256;
  for (const auto& [N, in, out] : {std::tuple{40, 48, 64}, {33, 40, 36}}) {  // 36: no kernel does it all
    const Layer layer{N, in, out, DType::f32, Rounding::bf16};
    for (const bool biased : {true, false}) {
      CAPTURE(N, in, out, biased);
      Layer rounded = layer;
      const Tensor inner = copied(layer.inner, DType::bf16);
      rounded.inner = copied(inner, DType::f32);
      const Wanted want = rounded.wanted(biased);
      const Tensor none, bias = biased ? layer.bias : none;
      const Tensor before = blank(Shape{N, out}, DType::bf16), y = blank(before.shape(), DType::bf16);
      launch_here<kernel::Linear>(layer.x, layer.weight, bias, before, y, Rounding::bf16);
      CHECK(apart(before, want.before) < near);
      CHECK(apart(y, want.y) < near);
      const Tensor dbefore = blank(inner.shape(), DType::bf16);
      const Tensor dsum = biased ? blank(Shape{in}, DType::f32) : none;
      launch_here<kernel::LinearBack>(layer.dy, layer.weight, inner, dbefore, dsum, Rounding::bf16);
      CHECK(apart(dbefore, want.dbefore) < near);
      if (biased) CHECK(apart(dsum, want.dsum) < near);
    }
  }
}

TEST_CASE("linear kernel: a device does it all in one kernel where it has one") {
  const OnEachDevice here;
  if (device_here() == Device::cpu || !cuda::emulated)
    return;  // which kernels a device has is its own affair
  const auto started = [](const auto& work) {
    const int64_t before = launches();
    work();
    return launches() - before;
  };
  for (const Rounding rounding : {Rounding::none, Rounding::tf32}) {
    for (const int64_t width : {48, 36}) {  // 36: GELU wants a multiple of eight
      CAPTURE(static_cast<int>(rounding), width);
      const Layer layer{40, width, width, DType::f32, rounding};
      Mirror there(device_here());
      const Tensor none, x = there(layer.x), weight = there(layer.weight), bias = there(layer.bias),
                         dy = there(layer.dy), before = there(layer.inner), y = empty_like(x),
                         dweight = empty_like(weight), dbias = empty_like(bias);
      const Device device = device_here();
      // In f32 the GELU is ours.
      const bool whole = width % 8 == 0 && rounding != Rounding::none;
      CHECK(started([&] { launch<kernel::Linear>(device, x, weight, bias, none, y, rounding); }) == 1);
      CHECK((started([&] { launch<kernel::Linear>(device, x, weight, bias, before, y, rounding); }) == 1) ==
            whole);
      CHECK((started([&] { launch<kernel::LinearBack>(device, dy, weight, before, y, dbias, rounding); }) ==
             1) == whole);
      CHECK(started([&] { launch<kernel::LinearWeightBack>(device, dy, x, dweight, dbias, rounding); }) == 1);
    }
  }
}
