// FAVOR+. Choromanski et al. 2020, "Rethinking attention with Performers", arXiv 2009.14794.
//
//   exp(q . k / sqrt(d)) = E[phi(q) . phi(k)],      x' = x d^(-1/4),   w normal
//
//   positive     phi(x) = exp(W x' - |x'|^2 / 2)
//   hyperbolic   phi(x) = exp(-|x'|^2 / 2) [exp(W x'), exp(-W x')]
//
// The largest exponent of a query, and that of the keys, are taken off before exp, and epsilon is added to
// what remains; with epsilon = 0 that changes nothing. Where queries look back only, the keys' largest
// exponent is the one so far: weights are then phi(q) . e^(a_j) + epsilon e^(M_i) sum(phi(q)), in which a
// later key has no part, and the last output is the two-sided one.
//
// Parameters: W [m, d], the random directions, drawn and not trained; all heads share them.
#include <cmath>

#include "attention/exponential.h"
#include "attention/random_projection.h"
#include "attention/variant.h"

namespace heed {
namespace {

struct Options {
  enum class Kind { positive, hyperbolic } features = Kind::positive;
  ProjectionOptions projection;
  enum class Lengths { normal, equal } lengths = Lengths::normal;
  double epsilon = 1e-6, scale = 0;
  void fields(Fields& f) {
    f("features", Choice(features, {"positive", "hyperbolic"}), "exp(Wx), or that and exp(-Wx)");
    projection.fields(f);
    f("lengths", Choice(lengths, {"normal", "equal"}),
      "of the directions: as normal vectors have, or sqrt(d)");
    f("epsilon", epsilon, "added to each feature; 0: exact");
    f("scale", scale, "of q . k; 0: 1 / sqrt(d)");
  }
};

struct PerformerMemory final : ScaledMemory {
  Tensor largest;  ///< [B, H, 1, 1], the largest exponent so far, with its history
  void fields(Fields& f) override {
    ScaledMemory::fields(f);
    f("largest", largest);
  }
};

class PerformerAttention final : public ExponentialAttention {
 public:
  PerformerAttention(const AttentionConfig& config, const Options& o, Rng& rng)
      : ExponentialAttention(config, kernel::FastmaxTerms{.coefficients = {0, 1}}, rng),
        options_(o),
        w_("performer", config, o.projection, o.lengths == Options::Lengths::equal, rng) {
    if (!(o.epsilon >= 0)) fail("attention 'performer': epsilon = ", o.epsilon, ". It must be at least 0.");
    if (o.scale < 0)
      fail("attention 'performer': scale = ", o.scale, ". It must be above 0, or 0 for 1 / sqrt(d).");
  }
  std::unique_ptr<Memory> start() const override { return std::make_unique<PerformerMemory>(); }
  void fields(Fields& f) override {
    ExponentialAttention::fields(f);
    w_.fields(f);
  }

 private:
  Tensor attend(Heads heads, const Attend& call) override {
    w_.settle(call.pass);
    return ExponentialAttention::attend(std::move(heads), call);
  }

  /// W x' - |x'|^2 / 2, and -W x' - |x'|^2 / 2 beside it where features are hyperbolic.
  Tensor exponents(const Tensor& x) const {
    const double d = static_cast<double>(x.extent(3));
    const Tensor y = x * std::sqrt(options_.scale > 0 ? options_.scale : 1 / std::sqrt(d));
    const Tensor along = w_(y), half = sum(square(y), -1) * 0.5;
    if (options_.features == Options::Kind::positive) return along - half;
    return concat(std::vector<Tensor>{along - half, -along - half}, 3);
  }

  Heads features(Heads heads, const Attend& call) const override {
    auto* memory = memory_of<PerformerMemory>(call);
    if (!heads.k && !memory->sums)
      fail("attention: no keys were given and none are remembered. Give keys in the first call.");
    Tensor largest = memory != nullptr ? memory->largest : Tensor();
    if (heads.k) {
      const Exponents a = of_keys(heads.k, call, memory);
      const Tensor most = max(max(a.seen, 3), 2);
      largest = largest ? maximum(most, largest) : most;
      heads.k = keys(a.all, largest);
      raised(memory, scale_of(largest, a.all));
      if (memory != nullptr) memory->largest = largest;
    }
    heads.q = queries(heads.q, largest);
    return heads;
  }

  Scaled scaled(const Heads& heads, const Attend& call) const override {
    auto* memory = memory_of<PerformerMemory>(call);
    const Exponents a = of_keys(heads.k, call, memory);
    const Tensor largest = running_max(a.seen, memory != nullptr ? memory->largest : Tensor());
    const int64_t length = largest.extent(2), asked = heads.q.extent(2);
    if (memory != nullptr) memory->largest = slice(largest, 2, length - 1, length);
    return {.q = queries(heads.q, slice(largest, 2, length - asked, length)),
            .k = keys(a.all, largest),
            .scale = scale_of(largest, a.all)};
  }

  struct Exponents {
    Tensor all, seen;  ///< [B, H, T, f]; `seen` is far below zero where a key is padding
  };
  Exponents of_keys(const Tensor& k, const Attend& call, const PerformerMemory* memory) const {
    const Tensor kept = call.mask.kept(k, memory != nullptr ? memory->length : 0);
    const Tensor a = exponents(kept ? k * kept : k);
    return {a, ExponentialAttention::seen(a, kept)};
  }

  /// e^(a - largest), and a column of ones for what epsilon adds. Only padding is above the largest.
  Tensor keys(const Tensor& a, const Tensor& largest) const {
    const Tensor phi = exp(minimum(a - largest.detach(), 0));
    if (options_.epsilon == 0) return phi;
    return with_column(phi, Tensor::full(Shape{1, 1, 1, 1}, 1, a.dtype(), a.device()));
  }
  /// What keys() is divided by: of the column of ones nothing.
  Tensor scale_of(const Tensor& largest, const Tensor& a) const {
    const Tensor scale = largest.detach();
    if (options_.epsilon == 0) return scale;
    const Shape wide{scale.extent(0), scale.extent(1), scale.extent(2), a.extent(3)};
    return with_column(expand(scale, wide), Tensor::zeros(Shape{1, 1, 1, 1}, a.dtype(), a.device()));
  }
  /// The column meets that of the keys: epsilon e^(M_i) sum(phi(q)), divided by e^(M_i).
  Tensor queries(const Tensor& q, const Tensor& largest) const {
    const Tensor b = exponents(q), phi = exp(b - max(b, 3)) + options_.epsilon;
    if (options_.epsilon == 0) return phi;
    return with_column(phi, sum(phi, 3) * (exp(largest - largest.detach()) * options_.epsilon));
  }
  static Tensor with_column(const Tensor& x, const Tensor& column) {
    const Tensor wide = expand(column, Shape{x.extent(0), x.extent(1), x.extent(2), 1});
    return concat(std::vector<Tensor>{x, wide}, 3);
  }

  Options options_;
  RandomProjection w_;
};

}  // namespace

Variant variant::performer() {
  return describe<PerformerAttention, Options>(
      {.name = "performer",
       .paper = "Choromanski et al. 2020",
       .idea = "Random positive features whose products are exp(q . k) on average.",
       .time = {.length = 1, .width = 2},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::exact});
}

}  // namespace heed
