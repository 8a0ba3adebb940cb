// Rung 2', where features of keys are exponentials: causal sums are rescaled as later keys outgrow earlier
// ones.
#pragma once

#include "attention/kernelized.h"

namespace heed {

/// Sums of exponentials, kept divided by e^scale.
struct ScaledMemory : SumMemory {
  Tensor scale;  ///< [B, H, 1, 1 | f], without a gradient
  void fields(Fields& f) override {
    SumMemory::fields(f);
    f("scale", scale);
  }
};

/// y_i = sum_j phi(q_i) . phi(k_j) v_j / sum_j phi(q_i) . phi(k_j) where phi(k_j) may be as large as an
/// exponential gets. Where all keys are known, features are divided by e^(the largest exponent). A causal
/// query must not depend on the exponents of later keys, so there the state is divided by e^(the largest
/// exponent so far), and fades by the difference whenever that grows: the running maximum of a streaming
/// softmax (Milakov and Gimelshein 2018, arXiv 1805.02867). The last causal output so is the two-sided one,
/// however large the inputs are.
class ExponentialAttention : public KernelizedAttention {
 public:
  using KernelizedAttention::KernelizedAttention;
  std::unique_ptr<Memory> start() const override { return std::make_unique<ScaledMemory>(); }

 protected:
  /// Features of a causal call.
  struct Scaled {
    Tensor q;      ///< [B, H, Tq, f]
    Tensor k;      ///< [B, H, Tk, f], divided by e^scale
    Tensor scale;  ///< [B, H, Tk, 1 | f], without a gradient; does not fall from one key to the next
  };
  /// Keys are those of the call; padded ones are left out afterwards, but must not raise the scale. What the
  /// memory holds is of earlier keys, and its scale is the caller's to move on. features() is for all other
  /// calls.
  virtual Scaled scaled(const Heads& heads, const Attend& call) const = 0;
  Tensor attend(Heads heads, const Attend& call) override;

  /// For features(): the larger of `scale` and that of the memory (which may be null), which the memory then
  /// has.
  static Tensor raised(ScaledMemory* memory, const Tensor& scale);
  /// The largest of each row and all before it, and of `before` (empty: nothing): [B, H, T, 1].
  static Tensor running_max(const Tensor& x, const Tensor& before);
  /// 0 for keys that count and -1e30 for others, added to x; x itself where all count.
  static Tensor seen(const Tensor& x, const Tensor& kept) { return kept ? x + affine(kept, 1e30, -1e30) : x; }

 private:
  Tensor scan(const Scaled& x, const Tensor& values, ScaledMemory* memory) const;
};

}  // namespace heed
