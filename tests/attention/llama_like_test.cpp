// A language model of the parts of LLaMA, and hybrids of several attentions: decoding and training.
#include "heed/attention/variant.h"
#include "heed/autograd/node.h"
#include "heed/nn/transformer.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/nn/sequences.h"

namespace heed {
namespace {

using test::apart;
using test::ids;
using test::position;

/// RMS norm, SwiGLU, rope, two key-value heads for four heads, untied tables, no biases; a short convolution.
TransformerConfig llama_like(int64_t layers) {
  TransformerConfig config;
  config.d_model = 16;
  config.heads = 4;
  config.kv_heads = 2;
  config.d_ff = 24;
  config.layers = layers;
  config.max_length = 16;
  config.dropout = 0;
  config.activation = Activation::swiglu;
  config.norm_scale = kernel::NormScale::rms;
  config.position = PositionKind::rope;
  config.scale_embedding = false;
  config.feed_forward_bias = false;
  config.output_bias = false;
  config.short_convolution = 4;
  return config;
}

void check_steps(const TransformerConfig& config, const char* attention) {
  CAPTURE(attention);
  const NoGrad quiet;
  Rng rng(2);
  DecoderOnly model(config, 9, attention_factory(attention), rng);
  convert(model, DType::f64);
  const Tensor text = ids({1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 3, 5, 2, 2}, 2);
  const Tensor full = model(text, {});
  Decoding one = model.start();
  for (int64_t t = 0; t < 7; ++t)
    CHECK(apart(model.next(view::slice(text, 1, t, t + 1), one), position(full, t)) < 1e-11);
  Decoding several = model.start();
  CHECK(apart(model.next(view::slice(text, 1, 0, 5), several), position(full, 4)) < 1e-11);
  CHECK(apart(model.next(view::slice(text, 1, 5, 7), several), position(full, 6)) < 1e-11);
}

}  // namespace

TEST_CASE("llama-like: it decodes step by step as all at once") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  DecoderOnly model(llama_like(2), 9, attention_factory("softmax"), rng);
  const int64_t attention = 16 * 16 * 2 + 16 * 8 * 2, network = 3 * 16 * 24, norms = 2 * 16, taps = 4 * 16;
  CHECK(count_parameters(model) == 2 * 9 * 16 + 2 * (attention + network + norms + taps) + 16);
  check_steps(llama_like(2), "softmax");
}

TEST_CASE("llama-like: hybrids of several attentions decode step by step as all at once") {
  const DefaultDevice device(any_device());
  TransformerConfig config = llama_like(4);
  config.kv_heads = 0;
  config.position = PositionKind::none;
  check_steps(config, "gla*3,softmax");
  check_steps(config, "retention,window:left=2,right=0,softmax,mla:rank=8");
}

TEST_CASE("llama-like: training lowers the loss, of hybrids too") {
  const DefaultDevice device(any_device());
  const char* attention = GENERATE("softmax", "linear,softmax");
  Rng rng(1);
  DecoderOnly model(llama_like(2), 9, attention_factory(attention), rng);
  const Tensor text = ids({1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8}, 2),
               next = ids({2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8, 5}, 2);
  double first = 0, last = 0;
  for (int step = 0; step < 40; ++step) {
    const Tensor loss = cross_entropy(model(text, {}), next);
    last = loss.to_doubles()[0];
    if (step == 0) first = last;
    backward(loss);
    for (const Named& named : parameters(model)) {
      const NoGrad quiet;
      *named.tensor = leaf((*named.tensor - grad_of(*named.tensor) * 0.3).detach());
    }
  }
  CHECK(first > 1.5);
  CHECK(last < 0.7 * first);
}

}  // namespace heed
