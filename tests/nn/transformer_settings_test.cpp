// Tests settings of nn/transformer.h that change its parts: RMS norm, gates, biases, untied tables, the scale
// of logits, the short convolution, dropout of embeddings.
#include <cmath>

#include "heed/autograd/gradcheck.h"
#include "heed/autograd/in_place.h"
#include "heed/nn/encoder_models.h"
#include "heed/nn/seq2seq.h"
#include "heed/nn/set_option.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/nn/plain_attention.h"
#include "heed/tests/nn/sequences.h"
#include "heed/tests/nn/whole_model.h"

namespace heed {
namespace {

using test::apart;
using test::check_whole_model;
using test::ids;
using test::lengths;
using test::plain_attentions;
using test::position;
using test::tiny_config;

/// The blocks of LLaMA, with a short convolution.
TransformerConfig llama_like() {
  TransformerConfig config = tiny_config();
  config.norm_scale = kernel::NormScale::rms;
  config.activation = Activation::swiglu;
  config.feed_forward_bias = false;
  config.output_bias = false;
  config.scale_embedding = false;
  config.short_convolution = 4;
  return config;
}

std::vector<std::string> names_of(Module& module) {
  std::vector<std::string> names;
  for (const Named& named : parameters(module)) names.push_back(named.name);
  return names;
}

}  // namespace

TEST_CASE("settings of blocks: rms norms have no bias, whatever norm_bias says") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  TransformerConfig config = tiny_config();
  config.norm_scale = kernel::NormScale::rms;
  CHECK(config.norm_bias);
  DecoderOnly model(config, 9, plain_attention, rng);
  for (const std::string& name : names_of(model)) CHECK_FALSE(name.ends_with("norm.bias"));
  const Tensor x = Tensor::from({3, 4, 0, 0, 0, 0, 0, 0});
  CHECK((*model.decoder.norm)(x).to_host()[0] == Approx(3 / std::sqrt(25.0 / 8 + 1e-5)));
}

TEST_CASE("settings of blocks: biases of some projections") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  const auto biases = [&](const std::string& value) {
    TransformerConfig config = tiny_config();
    config.layers = 1;
    set_option(config, "attention_bias", value, "");
    DecoderOnly model(config, 9, plain_attention, rng);
    std::string found;
    for (const char* part : {"query", "key", "value", "output"}) {
      for (const std::string& name : names_of(model))
        if (name == text("decoder.blocks.0.attention.", part, ".bias")) found += part[0];
    }
    return found;
  };
  CHECK(biases("false").empty());
  CHECK(biases("true") == "qkvo");
  CHECK(biases("query,key,value") == "qkv");
  CHECK(biases("output,value,query") == "qvo");
  TransformerConfig config = tiny_config();
  CHECK_THROWS_WITH(set_option(config, "attention_bias", "query,vaule", ""),
                    containing("Did you mean 'value'? Known: query, key, value, output."));
  config.attention_bias = true;
  CHECK((config.attention_config().key_bias && config.attention_config().output_bias));
}

TEST_CASE("settings of blocks: untied tables of a language model are two") {
  const DefaultDevice device(any_device());
  for (const bool bias : {true, false}) {
    Rng rng(1);
    TransformerConfig config = tiny_config();
    config.output_bias = bias;
    config.tie_embeddings = Tie::output;
    DecoderOnly tied(config, 20, plain_attention, rng);
    config.tie_embeddings = Tie::none;
    DecoderOnly untied(config, 20, plain_attention, rng);
    CHECK(count_parameters(untied) == count_parameters(tied) + 20 * 8 + (bias ? 20 : 0));
    REQUIRE(untied.output);
    CHECK(untied.output->weight.node() != untied.embedder.tokens.weight.node());
    const Tensor hidden =
        untied.decoder(untied.embedder(ids({3, 4}, 1), 0, nullptr), Mask::causal(), {}, {}, nullptr, {});
    CHECK(apart(untied(ids({3, 4}, 1), {}), (*untied.output)(hidden)) == 0);
    CHECK_NOTHROW(check_listed(untied, sum(untied(ids({1, 2, 3, 4}, 2), {}))));
  }
}

TEST_CASE("settings of blocks: a tied output layer may have a bias") {
  const DefaultDevice device(any_device());
  TransformerConfig config = tiny_config();
  config.tied_output_bias = true;
  CHECK_THROWS_WITH(config.check(), containing("model.tied_output_bias = true needs model.tie_embeddings"));
  config.tie_embeddings = Tie::output;
  check_whole_model(config);
  Rng rng(1), other(1);
  DecoderOnly model(config, 20, plain_attention, rng);
  config.tied_output_bias = false;
  DecoderOnly plain(config, 20, plain_attention, other);
  CHECK(count_parameters(model) == count_parameters(plain) + 20);
  CHECK(model.output->weight.node() == model.embedder.tokens.weight.node());
  CHECK(apart(model(ids({3, 4}, 1), {}), plain(ids({3, 4}, 1), {})) == 0);
  fill_uniform(model.output->bias.detach(), 1, 2, rng);
  const Tensor bias = model.output->bias;
  CHECK(apart(model(ids({3, 4}, 1), {}), plain(ids({3, 4}, 1), {}) + bias) < 1e-5);
}

TEST_CASE("settings of blocks: the scale of logits acts in every model and way to its logits") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  TransformerConfig config = tiny_config();
  config.tie_embeddings = GENERATE(Tie::none, Tie::output);
  const Tensor text_ids = ids({1, 2, 3, 4, 5, 6}, 2), long_as = lengths({3, 2});
  // Calls f(model of scale 1, model of scale 0.25 with the same weights).
  const auto both = [&](const auto& make, const auto& check) {
    Rng one(1), other(1);
    const auto plain = make(one);
    config.logit_scale = 0.25;
    const auto scaled = make(other);
    config.logit_scale = 1;
    check(*plain, *scaled);
  };
  both(
      [&](Rng& rng) { return std::make_unique<DecoderOnly>(config, 9, plain_attention, rng); },
      [&](const DecoderOnly& plain, const DecoderOnly& scaled) {
        const Tensor logits = plain(text_ids, {}) * 0.25;
        CHECK(apart(scaled(text_ids, {}), logits) == 0);
        CHECK(apart(scaled.layer_logits(text_ids).front(), plain.layer_logits(text_ids).front() * 0.25) == 0);
        Decoding state = scaled.start();
        CHECK(apart(scaled.next(text_ids, state), position(logits, 2)) < 1e-5);
      });
  both([&](Rng& rng) { return std::make_unique<EncoderDecoder>(config, 9, 9, plain_attentions, rng); },
       [&](const EncoderDecoder& plain, const EncoderDecoder& scaled) {
         const Tensor encoded = plain.encode(text_ids, long_as, {});
         const Tensor hidden = plain.decode(text_ids, encoded, long_as, {});
         const Tensor logits = plain.logits(hidden) * 0.25;
         CHECK(apart(scaled.logits(hidden), logits) == 0);
         CHECK(apart(scaled.layer_logits(text_ids, encoded, long_as).back(), logits) < 1e-5);
         Decoding state = scaled.start(encoded, long_as);
         CHECK(apart(scaled.next(text_ids, state), position(logits, 2)) < 1e-5);
       });
  both(
      [&](Rng& rng) {
        return std::make_unique<Seq2Seq>(config, Seq2SeqOptions{}, 9, 9, plain_attention, rng);
      },
      [&](const Seq2Seq& plain, const Seq2Seq& scaled) {
        const Tensor hidden = Tensor::full(Shape{1, 2, 8}, 0.5);
        CHECK(apart(scaled.logits(hidden), plain.logits(hidden) * 0.25) == 0);
      });
  both(
      [&](Rng& rng) {
        return std::make_unique<Classifier>(config, Classifier::Options{.vocabulary = 9, .classes = 3},
                                            plain_attention, rng);
      },
      [&](const Classifier& plain, const Classifier& scaled) {
        CHECK(apart(scaled(text_ids, {}, {}), plain(text_ids, {}, {}) * 0.25) == 0);
      });
  both(
      [&](Rng& rng) {
        return std::make_unique<TokenPredictor>(config, EncoderModel::Options{.vocabulary = 9},
                                                plain_attention, rng);
      },
      [&](const TokenPredictor& plain, const TokenPredictor& scaled) {
        const Tensor rows = lengths({0, 4});
        CHECK(apart(scaled(text_ids, {}, rows, {}), plain(text_ids, {}, rows, {}) * 0.25) == 0);
      });
  config.logit_scale = 0;
  CHECK_THROWS_WITH(config.check(), containing("model.logit_scale = 0. It must be above 0"));
  config.logit_scale = 1;
  config.short_convolution = 17;
  CHECK_THROWS_WITH(config.check(), containing("model.short_convolution = 17. It must be 0 to 16"));
}

TEST_CASE("settings of blocks: the loss of tokens is the cross entropy of logits of any scale") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  TransformerConfig config = tiny_config();
  config.tie_embeddings = GENERATE(Tie::none, Tie::output);
  config.logit_scale = GENERATE(1.0, 0.25);
  Rng rng(1);
  const Tensor text_ids = ids({1, 2, 3, 4, 5, 6}, 2), targets = ids({2, 3, 8, -1, 6, 0}, 2);
  const auto agrees = [&](auto& model, const Tensor& hidden) {
    if (model.output) copy_(model.output->bias, Tensor::from({0, 1, 2, 3, 4, 5, 6, 7, 8}));
    const double expected = cross_entropy(model.logits(hidden), targets, 0.1).item();
    CHECK(model.token_loss(hidden, targets, 0.1).item() == Approx(expected).epsilon(1e-6));
  };
  DecoderOnly model(config, 9, plain_attention, rng);
  const Tensor hidden = model.hidden(text_ids, {});
  agrees(model, hidden);
  CHECK(apart(model.logits(hidden), model(text_ids, {})) == 0);
  EncoderDecoder translator(config, 9, 9, plain_attentions, rng);
  const Tensor long_as = lengths({3, 2});
  agrees(translator, translator.decode(text_ids, translator.encode(text_ids, long_as, {}), long_as, {}));
}

TEST_CASE("settings of blocks: all of them together decode step by step as all at once") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  for (const NormPlace norm : {NormPlace::pre, NormPlace::post}) {
    Rng rng(2);
    TransformerConfig config = llama_like();
    config.norm = norm;
    config.logit_scale = 2;
    EncoderDecoder model(config, 11, 13, plain_attentions, rng);
    convert(model, DType::f64);
    const Tensor source = ids({1, 2, 3, 4, 5, 6, 7, 8, 9, 0}, 2),
                 target = ids({1, 2, 3, 4, 5, 12, 11, 10}, 2), long_as = lengths({5, 3});
    const Tensor encoded = model.encode(source, long_as, {});
    const Tensor full = model.logits(model.decode(target, encoded, long_as, {}));
    Decoding state = model.start(encoded, long_as);
    for (int64_t t = 0; t < 4; ++t)
      CHECK(apart(model.next(view::slice(target, 1, t, t + 1), state), position(full, t)) < 1e-12);
    // Sequences swap their places in the midst of decoding.
    Decoding beams = model.start(encoded, long_as);
    model.next(view::slice(target, 1, 0, 3), beams);
    beams.reorder({1, 0});
    const Tensor swapped = model.next(ids({10, 4}, 2), beams), last = position(full, 3);
    CHECK(apart(concat({view::slice(swapped, 0, 1, 2), view::slice(swapped, 0, 0, 1)}, 0), last) < 1e-12);
    // What stands in the padding of the source is not read.
    const Tensor other = ids({1, 2, 3, 4, 5, 6, 7, 8, 4, 4}, 2);
    CHECK(apart(model.logits(model.decode(target, model.encode(other, long_as, {}), long_as, {})), full) ==
          0);
  }
}

TEST_CASE("settings of blocks: gradients of a whole model of them, each parameter used") {
  TransformerConfig config = llama_like();
  config.layers = 1;
  config.attention_bias.query = config.attention_bias.value = true;
  config.logit_scale = 0.5;
  check_whole_model(config);
}

TEST_CASE("transformer: embedding_dropout follows dropout until it is set, and is that of embeddings alone") {
  TransformerConfig config{.d_model = 8, .heads = 1, .max_length = 4, .dropout = 0.5};
  CHECK(config.dropout_of_embeddings() == 0.5);
  config.embedding_dropout = 1;
  CHECK_THROWS_WITH(config.check(), containing("model.embedding_dropout = 1"));
  const Tensor tokens = Tensor::of<int32_t>(std::vector<int32_t>{0, 1, 2}, Shape{1, 3});
  const auto drops = [&](double dropout, double of_embeddings) {
    config.dropout = dropout;
    config.embedding_dropout = of_embeddings;
    Rng rng(1);
    const Embedder embedder(5, config, rng);
    return embedder(tokens, 0, &rng).to_host() != embedder(tokens, 0, nullptr).to_host();
  };
  CHECK(!drops(0.5, 0));
  CHECK(drops(0, 0.5));
}

}  // namespace heed
