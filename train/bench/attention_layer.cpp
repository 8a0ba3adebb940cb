// One attention layer for the benchmarks.
#include "heed/train/bench/attention_layer.h"

#include "heed/attention/variant.h"
#include "heed/autograd/ops.h"

namespace heed::bench {
namespace {

constexpr int64_t num_heads = 4;

}  // namespace

AttentionLayer::AttentionLayer(const Options& o)
    : mask_(o.causal ? Mask::causal() : Mask::none()), rng_(1), training_(o.training) {
  const int64_t model = num_heads * o.width;
  layer_ = make_attention(o.spec,
                          {.d_model = model,
                           .heads = num_heads,
                           .causal = o.causal,
                           .max_length = o.length,
                           .dropout = o.dropout},
                          rng_);
  multi_head_ = dynamic_cast<MultiHeadAttention*>(layer_.get());
  const Shape shape =
      multi_head_ != nullptr ? Shape{o.batch, num_heads, o.length, o.width} : Shape{o.batch, o.length, model};
  input_ = Tensor(Shape{o.batch, o.length, model});
  fill_normal(input_, 0, 1, rng_);
  for (Tensor* x : {&q_, &k_, &v_}) {
    *x = Tensor(shape);
    fill_normal(*x, 0, 1, rng_);
  }
  const NoGrad no_grad;
  slope_ = empty_like(forward());
  fill_normal(slope_, 0, 1, rng_);
}

Tensor AttentionLayer::forward() {
  const ForwardContext context{.rng = training_ ? &rng_ : nullptr};
  if (multi_head_ != nullptr)
    return multi_head_->on_heads({q_, k_, v_},
                                 {.queries = input_, .keys = input_, .mask = mask_, .context = context});
  return layer_->forward({.queries = q_, .keys = q_, .mask = mask_, .context = context});
}

void AttentionLayer::step() {
  for (Tensor* x : {&q_, &k_, &v_}) *x = leaf(*x);
  backward(forward(), slope_);
}

}  // namespace heed::bench
