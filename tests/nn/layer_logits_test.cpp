// The logit lens of models: the last layer is the model, layer k is a model of k blocks.
#include <cmath>

#include "heed/autograd/tape.h"
#include "heed/nn/transformer.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/nn/plain_attention.h"
#include "heed/tests/nn/sequences.h"

using namespace heed;

namespace {

TransformerConfig three_layers(NormPlace norm, Tie tie) {
  TransformerConfig config;
  config.d_model = 8;
  config.heads = 2;
  config.d_ff = 12;
  config.layers = 3;
  config.max_length = 16;
  config.norm = norm;
  config.tie_embeddings = tie;
  return config;
}

}  // namespace

TEST_CASE("layer logits: of a language model, the last is the model and each is that of so many blocks") {
  const DefaultDevice device(any_device());
  const NoGrad no_grad;
  for (const NormPlace norm : {NormPlace::pre, NormPlace::post}) {
    for (const Tie tie : {Tie::none, Tie::output}) {
      Rng rng(3);
      DecoderOnly model(three_layers(norm, tie), 11, plain_attention, rng);
      const Tensor ids = test::ids({1, 5, 2, 9}, 1);
      const std::vector<Tensor> layers = model.layer_logits(ids);
      REQUIRE(layers.size() == 4);
      CHECK(layers.back().to_doubles() == model(ids, {}).to_doubles());
      for (size_t blocks = 3; blocks-- > 0;) {
        model.decoder.blocks.pop_back();
        CHECK(layers[blocks].to_doubles() == model(ids, {}).to_doubles());
      }
    }
  }
}

TEST_CASE("layer logits: of an encoder-decoder, the last is the model and each is that of so many blocks") {
  const DefaultDevice device(any_device());
  const NoGrad no_grad;
  Rng rng(4);
  EncoderDecoder model(three_layers(NormPlace::pre, Tie::none), 9, 11,
                       {plain_attention, plain_attention, plain_attention}, rng);
  const Tensor source = test::ids({1, 5, 2}, 1), target = test::ids({2, 7, 3, 10}, 1),
               lengths = test::lengths({3});
  const Tensor encoded = model.encode(source, lengths, {});
  const std::vector<Tensor> layers = model.layer_logits(target, encoded, lengths);
  REQUIRE(layers.size() == 4);
  for (size_t blocks = 4; blocks-- > 0;) {
    CHECK(layers[blocks].to_doubles() ==
          model.logits(model.decode(target, encoded, lengths, {})).to_doubles());
    if (blocks > 0) model.decoder.blocks.pop_back();
  }
}
