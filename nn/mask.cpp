// Computes the additive tensors of a mask.
#include "heed/nn/mask.h"

#include "heed/autograd/ops.h"
#include "heed/core/kernels/elementwise/mask.h"
#include "heed/core/launch.h"

namespace heed {

Mask Mask::causal() {
  Mask mask;
  mask.causal_ = true;
  return mask;
}

Mask Mask::lengths(const Tensor& key_lengths) {
  if (key_lengths.dtype() != DType::i32 || key_lengths.rank() != 1) {
    fail("mask: key lengths are ", key_lengths.dtype(), " ", key_lengths.shape(), "; they must be i32 [B].");
  }
  Mask mask;
  mask.key_lengths_ = contiguous(key_lengths.detach());
  return mask;
}

Mask Mask::packed(std::shared_ptr<const Packing> sequences) { return packed(sequences, sequences); }

Mask Mask::packed(std::shared_ptr<const Packing> queries, std::shared_ptr<const Packing> keys) {
  if (queries && keys && queries->batch() != keys->batch())
    fail("mask: ", queries->batch(), " packed sequences of queries and ", keys->batch(),
         " of keys. There must be as many.");
  Mask mask;
  mask.query_packing_ = std::move(queries);
  mask.key_packing_ = std::move(keys);
  return mask;
}

Mask Mask::of_padded() const {
  Mask mask = *this;
  mask.query_packing_ = nullptr;
  mask.key_packing_ = nullptr;
  if (key_packing_) mask.key_lengths_ = key_packing_->lengths;
  return mask;
}

Mask Mask::operator&(const Mask& other) const {
  if (key_lengths_ && other.key_lengths_)
    fail("mask: key lengths are given twice. Give the shorter ones once.");
  Mask both = *this;
  both.causal_ = causal_ || other.causal_;
  if (other.key_lengths_) both.key_lengths_ = other.key_lengths_;
  if (other.bias_) both.bias_ = bias_ ? bias_ + other.bias_ : other.bias_;
  if (other.is_packed()) {
    if (is_packed()) fail("mask: packed sequences are given twice. Give them once.");
    both.query_packing_ = other.query_packing_;
    both.key_packing_ = other.key_packing_;
  }
  return both;
}

Mask Mask::with(const Tensor& bias) const {
  Mask mask = *this;
  mask.bias_ = bias_ ? bias_ + bias : bias;
  return mask;
}

void Mask::check_batch(int64_t batch) const {
  if (key_lengths_ && key_lengths_.extent(0) != batch) {
    fail("mask: ", key_lengths_.extent(0), " key lengths for a batch of ", batch,
         ". Give one length a sequence.");
  }
}

Tensor Mask::dense(const Tensor& scores, int64_t first_query) const {
  const bool structured = causal_ || key_lengths_;
  if (!structured) return bias_;
  check_batch(scores.extent(0));
  const int64_t batch = key_lengths_ ? scores.extent(0) : 1;
  const Tensor mask = empty_like(scores, Shape{batch, 1, scores.extent(2), scores.extent(3)});
  launch<kernel::DenseMask>(scores.device(), key_lengths_, causal_, first_query, mask);
  return bias_ ? mask + bias_ : mask;
}

Tensor Mask::padding_mask(const Tensor& x, int64_t first) const {
  if (!key_lengths_) return {};
  check_batch(x.extent(0));
  const Tensor kept = empty_like(x, Shape{x.extent(0), 1, x.extent(2), 1});
  launch<kernel::KeptRows>(x.device(), key_lengths_, first, kept);
  return kept;
}

Tensor Mask::finite_padding(const Tensor& x, int64_t first) const {
  if (!key_lengths_) return x;
  check_batch(x.extent(0));
  const Tensor from = contiguous(x);
  Tensor y = empty_like(from);
  launch<kernel::FinitePadding>(x.device(), from, key_lengths_, first, y);
  // y shares the node of x, so that gradients are summed in the order, and with the rounding, of a direct
  // use.
  y.set_node(from.node());
  return y;
}

}  // namespace heed
