// A tiny model of plain attentions, and the check of gradients through a whole encoder-decoder.
#pragma once

#include "heed/autograd/gradcheck.h"
#include "heed/nn/transformer.h"
#include "heed/tests/catch.h"
#include "heed/tests/nn/plain_attention.h"
#include "heed/tests/nn/sequences.h"

namespace heed::test {

inline const EncoderDecoder::Attentions plain_attentions{plain_attention, plain_attention, plain_attention};

/// Two layers of width 8.
inline TransformerConfig tiny_config() {
  TransformerConfig config;
  config.d_model = 8;
  config.heads = 2;
  config.d_ff = 12;
  config.layers = 2;
  config.max_length = 16;
  config.dropout = 0.1;
  return config;
}

/// Checks the gradients of every parameter of an encoder-decoder with padding, in f64, and that the loss
/// depends on each.
inline void check_whole_model(const TransformerConfig& config) {
  Rng rng(4);
  EncoderDecoder model(config, 5, 6, plain_attentions, rng);
  convert(model, DType::f64);
  const Tensor source = ids({1, 2, 3, 4, 0, 0}, 2), target = ids({1, 2, 3, 4, 5, 1}, 2),
               labels = ids({2, 3, 4, 5, 1, -1}, 2), long_as = lengths({3, 1});
  std::vector<Tensor> leaves;
  for (const Named& named : parameters(model)) leaves.push_back(*named.tensor);
  const auto loss = [&] {
    const Tensor hidden = model.decode(target, model.encode(source, long_as, {}), long_as, {});
    return cross_entropy(model.logits(hidden), labels, 0.1);
  };
  const GradcheckReport report = gradcheck(loss, leaves, {.samples = 12});
  INFO(to_string(report));
  CHECK(report.passed);
  CHECK_NOTHROW(check_listed(model, loss()));
}

}  // namespace heed::test
