// Efficient attention. Shen et al. 2018, "Efficient attention: attention with linear complexities", arXiv
// 1812.01243.
//
//   y_i = sum_c rho(q_i)_c  ( sum_j exp(k_jc) v_j / sum_j exp(k_jc) ),      rho(q) = softmax over the
//   features of q
//
// Each feature is a map of its own over the keys, and the query mixes them: rows sum to one. A causal query
// takes both sums over j <= i, so that every feature is normalised over what the query may see.
#include "attention/kernelized.h"
#include "attention/variant.h"

namespace heed {
namespace {

struct EfficientMemory final : SumMemory {
  Tensor shift;  ///< [B, H, 1, d], taken off keys before exp
  void fields(Fields& f) override {
    SumMemory::fields(f);
    f("shift", shift);
  }
};

class EfficientAttention final : public KernelizedAttention {
 public:
  EfficientAttention(const AttentionConfig& config, const NoOptions&, Rng& rng)
      : KernelizedAttention(config, kernel::FastmaxTerms{.coefficients = {0, 1}}, rng) {}
  std::unique_ptr<Memory> start() const override { return std::make_unique<EfficientMemory>(); }

 private:
  /// Keys become exp(k - shift), queries rho(q) / sum_j exp(k_j - shift).
  Heads features(Heads heads, const Attend& call) const override {
    auto* memory = memory_of<EfficientMemory>(call);
    const bool causal = call.mask.is_causal();
    const int64_t first = memory != nullptr ? memory->length : 0, asked = heads.q.extent(2);
    Tensor total;
    if (memory != nullptr && memory->sums) {
      const int64_t d = memory->sums.extent(3) - 1;
      total = transpose(slice(memory->sums, 3, d, d + 1), 2, 3);  // [B, H, 1, f]
    }
    if (heads.k) {
      const Tensor kept = call.mask.kept(heads.k, first);
      const Tensor k = kept ? heads.k * kept : heads.k;
      Tensor shift = memory != nullptr ? memory->shift : Tensor();
      if (!shift) shift = shift_of(k, kept, causal);
      if (memory != nullptr) memory->shift = shift;
      // Nothing in a causal call may depend on later keys, so one that outgrows the first by e^80 is cut
      // there.
      constexpr double most = 80;
      heads.k = exp(affine(relu(affine(k - shift, -1, most)), -1, most));
      if (kept) heads.k = heads.k * kept;
      const Tensor added = causal ? cumulative_sum(heads.k, 2) : sum(heads.k, 2);
      total = total ? total + added : added;
      if (causal && total.extent(2) > asked)
        total = slice(total, 2, total.extent(2) - asked, total.extent(2));
    } else if (!total) {
      fail("attention: no keys were given and none are remembered. Give keys in the first call.");
    }
    // Sums begin with exp(0): only a query without keys has a smaller one.
    const Tensor least = Tensor::full(Shape{1}, 1e-3, total.dtype(), total.device());
    heads.q = softmax(heads.q) / maximum(total, least);
    return heads;
  }

  static Tensor shift_of(const Tensor& k, const Tensor& kept, bool causal) {
    const NoTape constant;
    if (causal) return slice(k, 2, 0, 1).detach();
    return max(kept ? k + affine(kept, 1e30, -1e30) : k, 2).detach();
  }
};

}  // namespace

Variant variant::efficient() {
  return describe<EfficientAttention>(
      {.name = "efficient",
       .paper = "Shen et al. 2018",
       .idea = "Softmax of queries over features and of keys over positions, multiplied from the right.",
       .time = {.length = 1, .width = 2},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::exact});
}

}  // namespace heed
