// Runs an attention layer on random input.
#include "heed/train/bench/attention_layer.h"

#include "heed/attention/variant.h"
#include "heed/autograd/ops.h"

namespace heed::bench {
namespace {

constexpr int64_t num_heads = 4;

}  // namespace

AttentionLayer::AttentionLayer(const Options& options)
    : mask_(options.causal ? Mask::causal() : Mask::none()), rng_(1), training_(options.training) {
  const int64_t model = num_heads * options.width;
  layer_ = make_attention(options.spec,
                          {.d_model = model,
                           .heads = num_heads,
                           .causal = options.causal,
                           .max_length = options.length,
                           .dropout = options.dropout},
                          rng_);
  multi_head_ = dynamic_cast<MultiHeadAttention*>(layer_.get());
  const Shape shape = multi_head_ != nullptr ? Shape{options.batch, num_heads, options.length, options.width}
                                             : Shape{options.batch, options.length, model};
  input_ = Tensor(Shape{options.batch, options.length, model});
  fill_normal(input_, 0, 1, rng_);
  for (Tensor* x : {&q_, &k_, &v_}) {
    *x = Tensor(shape);
    fill_normal(*x, 0, 1, rng_);
  }
  const NoGrad no_grad;
  dout_ = empty_like(forward());
  fill_normal(dout_, 0, 1, rng_);
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
  backward(forward(), dout_);
}

}  // namespace heed::bench
