// Random Fourier features. Peng et al. 2021, "Random feature attention", arXiv 2103.02143; Rahimi and Recht
// 2007.
//
//   exp(q . k / sqrt(d)) = E[phi(q) . phi(k)],      phi(x) = exp(x'.x' / 2) [sin W x', cos W x'],   x' = x
//   d^(-1/4)
//
// An estimate may be negative, and so may the sum of a row that it is divided by: sums nearer to zero than
// delta are moved out to it. The query's length cancels; of the keys' lengths the largest |x'|^2 / 2 is taken
// off first (of the first key, where queries look back only).
//
// Parameters: W [m, d], the random directions, drawn and not trained; all heads share them.
#include <cmath>

#include "attention/kernelized.h"
#include "attention/random_projection.h"
#include "attention/variant.h"

namespace heed {
namespace {

struct Options {
  ProjectionOptions projection;
  double delta = 1e-6, longest = 10, scale = 0;
  void fields(Fields& f) {
    projection.fields(f);
    f("delta", delta, "sums of weights nearer to zero are moved out to it");
    f("longest", longest, "keys count as no longer than this in exp(x'.x' / 2)");
    f("scale", scale, "of q . k; 0: 1 / sqrt(d)");
  }
};

struct FourierMemory final : SumMemory {
  Tensor shift;  ///< [B, H, 1, 1], taken off |k'|^2 / 2
  void fields(Fields& f) override {
    SumMemory::fields(f);
    f("shift", shift);
  }
};

class FourierAttention final : public KernelizedAttention {
 public:
  FourierAttention(const AttentionConfig& config, const Options& o, Rng& rng)
      : KernelizedAttention(config, terms_of(o), rng),
        options_(o),
        w_("rff", config, o.projection, false, rng) {}
  std::unique_ptr<Memory> start() const override { return std::make_unique<FourierMemory>(); }
  void fields(Fields& f) override {
    KernelizedAttention::fields(f);
    w_.fields(f);
  }

 private:
  static kernel::FastmaxTerms terms_of(const Options& o) {
    if (!(o.delta > 0) || !(o.longest > 0) || o.scale < 0)
      fail("attention 'rff': delta and longest must be above 0, scale at least 0.");
    return {.coefficients = {0, 1}, .guard = o.delta};
  }
  Tensor attend(Heads heads, const Attend& call) override {
    w_.settle(call.pass);
    return KernelizedAttention::attend(std::move(heads), call);
  }
  Tensor scaled(const Tensor& x) const {
    return x *
           std::sqrt(options_.scale > 0 ? options_.scale : 1 / std::sqrt(static_cast<double>(x.extent(3))));
  }
  /// [sin W x', cos W x'] / sqrt(m)
  Tensor waves(const Tensor& x) const {
    const Tensor along = w_(x);
    return concat(std::vector<Tensor>{sin(along), cos(along)}, 3) *
           (1 / std::sqrt(static_cast<double>(along.extent(3))));
  }

  Heads features(Heads heads, const Attend& call) const override {
    auto* memory = memory_of<FourierMemory>(call);
    // Waves of garbage are no numbers, so padded queries of a self-attention count as zeros too.
    if (!config().cross) {
      const int64_t first = memory != nullptr ? memory->length : heads.k.extent(2) - heads.q.extent(2);
      const Tensor counted = call.mask.kept(heads.q, first);
      if (counted) heads.q = heads.q * counted;
    }
    heads.q = waves(scaled(heads.q));
    if (!heads.k) return heads;
    const Tensor kept = call.mask.kept(heads.k, memory != nullptr ? memory->length : 0);
    const Tensor x = scaled(kept ? heads.k * kept : heads.k);
    const double most = options_.longest * options_.longest / 2;
    const Tensor half = affine(relu(affine(sum(square(x), -1), -0.5, most)), -1, most);
    Tensor shift = memory != nullptr ? memory->shift : Tensor();
    if (!shift) shift = (call.mask.is_causal() ? slice(half, 2, 0, 1) : max(half, 2)).detach();
    if (memory != nullptr) memory->shift = shift;
    heads.k = waves(x) * exp(half - shift);
    return heads;
  }

  Options options_;
  RandomProjection w_;
};

}  // namespace

Variant variant::rff() {
  return describe<FourierAttention, Options>(
      {.name = "rff",
       .paper = "Peng et al. 2021",
       .idea = "Sines and cosines of random projections: unbiased, and signed.",
       .time = {.length = 1, .width = 2},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::signed_,
       .tolerance = 100});
}

}  // namespace heed
