// Features of casinoformer's masses, made without a tape: buds are constants to a gradient.
#include "attention/tree_features.h"

#include <algorithm>
#include <cmath>

namespace heed {
namespace {

template <class F>
Tensor mapped(const Tensor& x, F&& f) {
  const Tensor from = contiguous(x), to = like(from);
  visit_float("tree_features", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    std::transform(from.data<T>(), from.data<T>() + from.size(), to.data<T>(), f);
  });
  return to;
}

bool is_random(TreeMass mass) { return mass >= TreeMass::rff; }

}  // namespace

TreeFeatures::TreeFeatures(TreeMass mass, int64_t heads, int64_t d, Rng& rng) : mass_(mass) {
  if (is_random(mass)) projection = drawn(heads, d, rng);
}

Tensor TreeFeatures::operator()(const Tensor& given, int64_t first) const {
  const NoTape quiet;
  const Tensor x = given.detach();
  if (mass_ < TreeMass::posalign) return {};
  if (!is_random(mass_) || !seed_) return of(x, projection);
  std::vector<Tensor> parts;
  for (int64_t t = 0; t < x.extent(2); ++t) {
    Rng rng(*seed_);
    rng.restore(first + t, 0);
    parts.push_back(of(view::slice(x, 2, t, t + 1), cast(drawn(x.extent(1), x.extent(3), rng), x.dtype())));
  }
  return concat(parts, 2);
}

Tensor TreeFeatures::of(const Tensor& x, const Tensor& w) const {
  if (mass_ == TreeMass::posalign) return concat(std::vector<Tensor>{relu(x), relu(-x)}, -1);
  const double d = static_cast<double>(x.extent(-1));
  const Tensor scaled = x * std::pow(d, -0.25);
  const Tensor along = matmul(scaled, transpose(w, 1, 2));
  if (mass_ == TreeMass::favor_relu)
    return concat(std::vector<Tensor>{relu(along), relu(-along)}, -1) / std::sqrt(2 * d);
  const Tensor squares = sum(square(scaled), -1);
  if (mass_ == TreeMass::favor) {
    const Tensor half = squares * -0.5;
    return concat(std::vector<Tensor>{exp(along + half), exp(half - along)}, -1) / std::sqrt(2 * d);
  }
  // min(s, 100) = -max(-s, -100)
  const Tensor bound = Tensor::full(squares.shape(), -100, x.dtype(), x.device());
  const Tensor factor = exp(maximum(-squares, bound) * -0.5) / std::sqrt(d);
  return concat(std::vector<Tensor>{factor * mapped(along, [](auto a) { return std::sin(a); }),
                                    factor * mapped(along, [](auto a) { return std::cos(a); })},
                -1);
}

Tensor TreeFeatures::drawn(int64_t heads, int64_t d, Rng& rng) const {
  const Tensor normal(Shape{heads, d, d}, DType::f64), lengths(Shape{heads, d, d}, DType::f64);
  fill_normal(normal, 0, 1, rng);
  fill_normal(lengths, 0, 1, rng);
  double* const w = normal.data<double>();
  const double* const other = lengths.data<double>();
  const auto dot = [d](const double* a, const double* b) {
    double total = 0;
    for (int64_t c = 0; c < d; ++c) total += a[c] * b[c];
    return total;
  };
  for (int64_t row = 0; row < heads * d; ++row) {
    double* const own = w + row * d;
    // Gram and Schmidt, twice: once leaves what rounding lets through.
    for (int turn = 0; turn < 2; ++turn) {
      for (int64_t before = row / d * d; before < row; ++before) {
        const double part = dot(own, w + before * d);
        for (int64_t c = 0; c < d; ++c) own[c] -= part * w[before * d + c];
      }
      const double length = std::sqrt(dot(own, own));
      for (int64_t c = 0; c < d; ++c) own[c] /= length;
    }
  }
  for (int64_t row = 0; row < heads * d; ++row) {
    const double length = mass_ == TreeMass::favor_relu ? std::sqrt(static_cast<double>(d))
                                                        : std::sqrt(dot(other + row * d, other + row * d));
    for (int64_t c = 0; c < d; ++c) w[row * d + c] *= length;
  }
  return cast(normal, DType::f32);
}

}  // namespace heed
