// Feature maps of casinoformer's masses, computed without recording gradients.
#include "heed/attention/support/tree_features.h"

#include <cmath>

#include "heed/attention/support/random_projections.h"

namespace heed {
namespace {

bool is_random(TreeMass mass) { return mass >= TreeMass::rff && mass <= TreeMass::favor_relu; }

}  // namespace

TreeFeatures::TreeFeatures(TreeMass mass, int64_t heads, int64_t d, Rng& rng) : mass_(mass) {
  if (is_random(mass)) projection = drawn(heads, d, rng);
}

Tensor TreeFeatures::operator()(const Tensor& given, int64_t first) const {
  const NoGrad no_grad;
  const Tensor x = given.detach();
  if (mass_ < TreeMass::posalign || mass_ == TreeMass::lookahead || mass_ == TreeMass::contrast) return {};
  if (is_of_moments(mass_)) return concat(std::vector<Tensor>{x, square(x)}, -1);
  if (!is_random(mass_) || !seed_) return of(x, projection);
  std::vector<Tensor> parts;
  for (int64_t t = 0; t < x.extent(2); ++t) {
    Rng rng(*seed_);
    rng.restore(first + t, 0);
    parts.push_back(of(view::slice(x, 2, t, t + 1),
                       cast(drawn(x.extent(1), x.extent(3), rng).to(x.device()), x.dtype())));
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
  const Tensor factor = exp(minimum(squares, 100) * 0.5) / std::sqrt(d);
  return concat(std::vector<Tensor>{factor * sin(along), factor * cos(along)}, -1);
}

Tensor TreeFeatures::drawn(int64_t heads, int64_t d, Rng& rng) const {
  std::vector<Tensor> each;
  for (int64_t h = 0; h < heads; ++h) {
    const Tensor own = random_projection(d, d, {.equal = mass_ == TreeMass::favor_relu}, rng);
    each.push_back(view::reshape(own, Shape{1, d, d}));
  }
  return cast(concat(each, 0), DType::f32);
}

}  // namespace heed
