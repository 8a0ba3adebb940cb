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
// later key has no part.
//
// Parameters: W [m, d], the random directions, drawn and not trained; all heads share them.
#include <cmath>

#include "attention/kernelized.h"
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

struct PerformerMemory final : SumMemory {
  Tensor shift, largest;  ///< [B, H, 1, 1]: taken off exponents of keys; the largest exponent so far
  void fields(Fields& f) override {
    SumMemory::fields(f);
    f("shift", shift);
    f("largest", largest);
  }
};

class PerformerAttention final : public KernelizedAttention {
 public:
  PerformerAttention(const AttentionConfig& config, const Options& o, Rng& rng)
      : KernelizedAttention(config, kernel::FastmaxTerms{.coefficients = {0, 1}}, rng),
        options_(o),
        w_("performer", config, o.projection, o.lengths == Options::Lengths::equal, rng) {
    if (!(o.epsilon >= 0)) fail("attention 'performer': epsilon = ", o.epsilon, ". It must be at least 0.");
    if (o.scale < 0)
      fail("attention 'performer': scale = ", o.scale, ". It must be above 0, or 0 for 1 / sqrt(d).");
  }
  std::unique_ptr<Memory> start() const override { return std::make_unique<PerformerMemory>(); }
  void fields(Fields& f) override {
    KernelizedAttention::fields(f);
    w_.fields(f);
  }

 private:
  Tensor attend(Heads heads, const Attend& call) override {
    w_.settle(call.pass);
    return KernelizedAttention::attend(std::move(heads), call);
  }

  /// W x' - |x'|^2 / 2, and -W x' - |x'|^2 / 2 beside it where features are hyperbolic.
  Tensor exponents(const Tensor& x) const {
    const double d = static_cast<double>(x.extent(3));
    const Tensor y = x * std::sqrt(options_.scale > 0 ? options_.scale : 1 / std::sqrt(d));
    const Tensor along = w_(y), half = sum(square(y), -1) * 0.5;
    if (options_.features == Options::Kind::positive) return along - half;
    return concat(std::vector<Tensor>{along - half, -along - half}, 3);
  }

  /// The largest of each row and all before it: [B, H, T, 1].
  static Tensor running_max(const Tensor& x) {
    Tensor most = max(x, 3);
    for (int64_t step = 1; step < most.extent(2); step *= 2) {
      const int64_t length = most.extent(2);
      most = concat(std::vector<Tensor>{slice(most, 2, 0, step), maximum(slice(most, 2, step, length),
                                                                         slice(most, 2, 0, length - step))},
                    2);
    }
    return most;
  }

  Heads features(Heads heads, const Attend& call) const override {
    auto* memory = memory_of<PerformerMemory>(call);
    if (!heads.k && !memory->sums)
      fail("attention: no keys were given and none are remembered. Give keys in the first call.");
    const bool causal = call.mask.is_causal();
    Tensor shift = memory != nullptr ? memory->shift : Tensor();
    Tensor largest = memory != nullptr ? memory->largest : Tensor();
    if (heads.k) {
      const Tensor kept = call.mask.kept(heads.k, memory != nullptr ? memory->length : 0);
      const Tensor a = exponents(kept ? heads.k * kept : heads.k);
      const Tensor seen = kept ? a + affine(kept, 1e30, -1e30) : a;
      Tensor most = causal ? running_max(seen) : max(max(seen, 3), 2);
      if (largest) most = maximum(most, largest);
      if (!shift) shift = (causal ? max(slice(a, 2, 0, 1), 3) : most).detach();
      const int64_t length = most.extent(2), asked = heads.q.extent(2);
      if (memory != nullptr) {
        memory->shift = shift;
        memory->largest = slice(most, 2, length - 1, length);
      }
      largest = causal && length > asked ? slice(most, 2, length - asked, length) : most;
      heads.k = exp(below(a - shift));
      if (options_.epsilon > 0)
        heads.k = with_column(heads.k, Tensor::full(Shape{1, 1, 1, 1}, 1, a.dtype(), a.device()));
    }
    const Tensor b = exponents(heads.q);
    heads.q = exp(b - max(b, 3)) + options_.epsilon;
    if (options_.epsilon > 0)
      heads.q = with_column(heads.q, sum(heads.q, 3) * (exp(below(largest - shift)) * options_.epsilon));
    return heads;
  }

  /// Exponents cut at 80. Only a key that outgrows the first by as much, in a causal call, has one.
  static Tensor below(const Tensor& x) { return affine(relu(affine(x, -1, 80)), -1, 80); }
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
