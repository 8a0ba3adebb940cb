// Small decoder-only models in f64 and a pair of inputs, for tests of the edges of their graphs.
#pragma once

#include <memory>
#include <string>

#include "heed/attention/inspect/contrast_pair.h"
#include "heed/attention/variant.h"

namespace heed {

/// Two blocks of width 12 with `heads` heads.
inline TransformerConfig contrast_config(int64_t heads = 3) {
  return {.d_model = 12, .heads = heads, .d_ff = 16, .layers = 2, .max_length = 6, .output_bias = false};
}

/// A model with 9 tokens, in f64.
inline std::unique_ptr<DecoderOnly> contrast_model(const std::string& attention,
                                                   const TransformerConfig& config = contrast_config()) {
  Rng rng(7);
  auto model = std::make_unique<DecoderOnly>(config, 9, attention_factory(attention), rng);
  convert(*model, DType::f64);
  return model;
}

/// Two inputs that differ in two tokens.
inline ContrastPair contrast_pair() {
  return {.clean = {1, 2, 3, 4, 5}, .corrupted = {1, 7, 3, 8, 5}, .position = 4, .right = 6, .wrong = 0};
}

/// The logit difference of the model on the clean input, in a pass that `editor` edits.
inline double edited_difference(DecoderOnly& model, const ContrastPair& pair, HeadEditor* editor = nullptr) {
  const NoGrad no_grad;
  const Tensor ids = Tensor::of<int32_t>(pair.clean, Shape{1, std::ssize(pair.clean)});
  return logit_difference(model, model.hidden(ids, {.editor = editor}), pair).item();
}

}  // namespace heed
