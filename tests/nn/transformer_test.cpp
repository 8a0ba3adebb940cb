// tests nn/transformer.h
#include "heed/nn/transformer.h"
#include "heed/nn/encoder_models.h"

#include <cmath>

#include "heed/autograd/gradcheck.h"
#include "heed/autograd/node.h"
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

std::vector<NormPlace> both_norms() { return {NormPlace::pre, NormPlace::post}; }

}  // namespace

TEST_CASE("encoder-decoder: decoding step by step gives the logits of one call") {
  const DefaultDevice device(any_device());
  for (const NormPlace norm : both_norms()) {
    const NoGrad quiet;
    Rng rng(1);
    TransformerConfig config = tiny_config();
    config.norm = norm;
    const EncoderDecoder model(config, 11, 13, plain_attentions, rng);
    const Tensor source = ids({1, 2, 3, 4, 5, 6, 7, 8, 9, 0}, 2),
                 target = ids({1, 2, 3, 4, 5, 12, 11, 10}, 2), long_as = lengths({5, 3});
    const Tensor encoded = model.encode(source, long_as, {});
    const Tensor full = model.logits(model.decode(target, encoded, long_as, {}));
    CHECK(full.shape() == Shape{2, 4, 13});
    Decoding one = model.start(encoded, long_as);
    for (int64_t t = 0; t < 4; ++t) {
      CHECK(apart(model.next(view::slice(target, 1, t, t + 1), one), position(full, t)) < 1e-5);
      CHECK(one.length == t + 1);
    }
    Decoding several = model.start(encoded, long_as);
    CHECK(apart(model.next(view::slice(target, 1, 0, 3), several), position(full, 2)) < 1e-5);
    CHECK(apart(model.next(view::slice(target, 1, 3, 4), several), position(full, 3)) < 1e-5);
  }
}

TEST_CASE("encoder-decoder: what stands in the padding of the source changes nothing") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  Rng rng(1);
  const EncoderDecoder model(tiny_config(), 11, 13, plain_attentions, rng);
  const Tensor target = ids({1, 2, 3}, 1), three = lengths({3});
  const auto logits = [&](const std::vector<int32_t>& source) {
    return model.logits(model.decode(target, model.encode(ids(source, 1), three, {}), three, {}));
  };
  CHECK(apart(logits({4, 5, 6, 0, 0}), logits({4, 5, 6, 9, 10})) == 0);
  CHECK(apart(logits({4, 5, 6, 0, 0}), logits({4, 5, 6})) < 1e-5);
  CHECK(apart(logits({4, 5, 6, 0, 0}), logits({4, 5, 7, 0, 0})) > 1e-3);
}

TEST_CASE("encoder-decoder: reordered beams go on as hypotheses of their own") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  Rng rng(1);
  const EncoderDecoder model(tiny_config(), 11, 13, plain_attentions, rng);
  const Tensor source = ids({1, 2, 3, 4, 5, 6}, 2), long_as = lengths({3, 2});
  const Tensor encoded = model.encode(source, long_as, {});
  const std::vector<int32_t> order{1, 0, 1};
  const auto pick = [&](const Tensor& x) {
    return reshape(embedding(reshape(x, Shape{2, -1}), lengths(order)), Shape{3, x.extent(1), x.extent(2)});
  };
  const Tensor expected_encoded = pick(encoded);
  const Tensor expected =
      model.logits(model.decode(ids({7, 3, 5, 8, 7, 1}, 3), expected_encoded, lengths({2, 3, 2}), {}));

  Decoding late = model.start(encoded, long_as);
  model.next(ids({5, 7}, 2), late);
  late.reorder({1, 0, 1});
  CHECK(late.source.key_lengths().to_host() == std::vector<float>{2, 3, 2});
  const Tensor found = model.next(ids({3, 8, 1}, 3), late);
  CHECK(apart(found, position(model.logits(model.decode(ids({7, 3, 5, 8, 7, 1}, 3), expected_encoded,
                                                        lengths({2, 3, 2}), {})),
                              1)) < 1e-5);

  Decoding early = model.start(encoded, long_as);  // before anything is remembered
  early.reorder({1, 0, 1});
  CHECK(apart(model.next(ids({7, 5, 7}, 3), early), position(expected, 0)) < 1e-5);
}

TEST_CASE("decoder-only: decoding step by step gives the logits of one call") {
  const DefaultDevice device(any_device());
  for (const NormPlace norm : both_norms()) {
    for (const PositionKind kind : {PositionKind::sinusoid, PositionKind::learned, PositionKind::none}) {
      const NoGrad quiet;
      Rng rng(2);
      TransformerConfig config = tiny_config();
      config.norm = norm;
      config.position = kind;
      const DecoderOnly model(config, 9, plain_attention, rng);
      const Tensor text = ids({1, 2, 3, 4, 5, 6, 7, 8, 0, 1}, 2);
      const Tensor full = model(text, {});
      Decoding state = model.start();
      for (int64_t t = 0; t < 5; ++t)
        CHECK(apart(model.next(view::slice(text, 1, t, t + 1), state), position(full, t)) < 1e-5);
      Decoding jump = model.start();
      CHECK(apart(model.next(text, jump), position(full, 4)) < 1e-5);
    }
  }
}

TEST_CASE("decoder-only: the future is not seen, and the end of the table is said") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  Rng rng(2);
  const DecoderOnly model(tiny_config(), 9, plain_attention, rng);
  const Tensor a = model(ids({1, 2, 3, 4}, 1), {}), b = model(ids({1, 2, 3, 8}, 1), {});
  for (int64_t t = 0; t < 3; ++t) CHECK(apart(position(a, t), position(b, t)) == 0);
  CHECK(apart(position(a, 3), position(b, 3)) > 1e-3);
  CHECK_THROWS_WITH(model(Tensor::zeros(Shape{1, 17}, DType::i32), {}),
                    containing("17 tokens") && containing("made for 16"));
}

TEST_CASE("embedder: rows times sqrt(width), positions, dropout") {
  const DefaultDevice device(any_device());
  Rng rng(3);
  TransformerConfig config = tiny_config();
  for (const bool scaled : {true, false}) {
    config.scale_embedding = scaled;
    const Embedder embedder(9, config, rng);
    const Tensor y = embedder(ids({4, 7}, 1), 5, nullptr);
    const Tensor rows = embedder.tokens(ids({4, 7}, 1)) * (scaled ? std::sqrt(8.0) : 1.0);
    CHECK(apart(y, embedder.position(rows, 5)) < 1e-6);
    Rng noise(1);
    CHECK(apart(y, embedder(ids({4, 7}, 1), 5, &noise)) > 1e-3);
  }
}

TEST_CASE("stack: branches start smaller the more there are") {
  const DefaultDevice device(any_device());
  const auto deviation = [](const Tensor& x) {
    double squares = 0;
    for (const double value : x.to_doubles()) squares += value * value;
    return std::sqrt(squares / static_cast<double>(x.size()));
  };
  Rng rng(3);
  TransformerConfig config = tiny_config();
  config.d_model = 64;
  config.d_ff = 128;
  config.layers = 8;
  config.init = Init::normal;
  const TransformerStack stack(config, {.causal = true}, plain_attention, {}, rng);
  CHECK(deviation(stack.blocks[3]->feed_forward->down.weight) == Approx(0.02 / 4).epsilon(0.05));
  CHECK(deviation(stack.blocks[3]->feed_forward->up.weight) == Approx(0.02).epsilon(0.05));
}

TEST_CASE("transformer: tied tables are one") {
  const DefaultDevice device(any_device());
  Rng rng(3);
  TransformerConfig config = tiny_config();
  const auto count = [&](Tie tie) {
    config.tie_embeddings = tie;
    EncoderDecoder model(config, 20, 20, plain_attentions, rng);
    return count_parameters(model);
  };
  const int64_t apart = count(Tie::none);
  CHECK(count(Tie::output) == apart - 20 * 8 - 20);
  CHECK(count(Tie::all) == apart - 2 * 20 * 8 - 20);
  EncoderDecoder model(config, 20, 20, plain_attentions, rng);
  CHECK(model.source.tokens.weight.node() == model.target.tokens.weight.node());
  CHECK_FALSE(model.output);
  CHECK_THROWS_WITH(EncoderDecoder(config, 20, 21, plain_attentions, rng),
                    containing("20") && containing("21") && containing("one vocabulary"));
  config.tie_embeddings = Tie::output;
  DecoderOnly text(config, 20, plain_attention, rng);
  CHECK_FALSE(text.output);
  const Tensor hidden = text(ids({3}, 1), {});
  CHECK(hidden.shape() == Shape{1, 1, 20});
}

TEST_CASE("transformer: the published one-block translator has the published size") {
  const DefaultDevice device(any_device());
  // Width 512, 8 heads, feed-forward 2048, vocabularies of 15,698 and 22,463 words.
  TransformerConfig config;
  config.d_model = 512;
  config.heads = 8;
  config.d_ff = 2048;
  config.layers = 1;
  config.max_length = 350;
  config.norm_scale = kernel::NormScale::deviation;
  config.norm_epsilon = 1e-6;
  Rng rng(1);
  EncoderDecoder model(config, 15698, 22463, plain_attentions, rng);
  const int64_t embeddings = (15698 + 22463) * 512, output = 22463 * 512 + 22463;
  const int64_t attention = 4 * 512 * 512, network = 512 * 2048 + 2048 + 2048 * 512 + 512, norm = 2 * 512;
  const int64_t encoder = attention + network + 2 * norm + norm,
                decoder = 2 * attention + network + 3 * norm + norm;
  CHECK(count_parameters(model) == embeddings + output + encoder + decoder);
  CHECK(count_parameters(model) == 38'414'271);
  CHECK(count_parameters(model.encoder) == encoder);
  CHECK(count_parameters(model.decoder) == decoder);
}

TEST_CASE("transformer: gradients of a whole model") {
  TransformerConfig config = tiny_config();
  config.layers = 1;
  config.activation = Activation::gelu;
  config.attention_bias = true;
  config.position = PositionKind::learned;
  check_whole_model(config);
}

TEST_CASE("transformer: all parameters are used in every kind of model") {
  const DefaultDevice device(any_device());
  Rng rng(5), noise(6);
  for (const NormPlace norm : both_norms()) {
    TransformerConfig config = tiny_config();
    config.norm = norm;
    config.attention_bias = true;
    config.position = PositionKind::learned;
    DecoderOnly text(config, 9, plain_attention, rng);
    CHECK_NOTHROW(check_listed(text, sum(text(ids({1, 2, 3, 4}, 2), {.rng = &noise}))));
    Classifier words(config, {.vocabulary = 9, .classes = 3, .head_hidden = 5}, plain_attention, rng);
    CHECK_NOTHROW(check_listed(words, sum(words(ids({1, 2, 3, 4}, 2), lengths({2, 1}), {.rng = &noise}))));
    Classifier last(config, {.vocabulary = 9, .classes = 3, .pool = Pool::last, .causal = true},
                    plain_attention, rng);
    CHECK_NOTHROW(check_listed(last, sum(last(ids({1, 2, 3, 4}, 2), lengths({2, 1}), {.rng = &noise}))));
    Classifier patches(config, {.features = 4, .classes = 3, .pool = Pool::first}, plain_attention, rng);
    CHECK_NOTHROW(
        check_listed(patches, sum(patches(Tensor::full(Shape{2, 3, 4}, 0.5), {}, {.rng = &noise}))));
  }
}

TEST_CASE("classifier: the mean is over real tokens, and the last token is a real one") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  const Pool pool = GENERATE(Pool::mean, Pool::last);
  Rng rng(7);
  const Classifier model(tiny_config(), {.vocabulary = 9, .classes = 3, .pool = pool}, plain_attention, rng);
  const Tensor padded = model(ids({1, 2, 3, 0, 0, 4, 5, 6, 7, 8}, 2), lengths({3, 5}), {});
  CHECK(padded.shape() == Shape{2, 3});
  const Tensor one = model(ids({1, 2, 3}, 1), {}, {}), two = model(ids({4, 5, 6, 7, 8}, 1), {}, {});
  CHECK(apart(padded, concat(std::vector<Tensor>{one, two}, 0)) < 1e-5);
  CHECK(apart(padded, model(ids({1, 2, 3, 8, 7, 4, 5, 6, 7, 8}, 2), lengths({3, 5}), {})) == 0);
  for (const float value : model(ids({1, 2}, 1), lengths({0}), {}).to_host()) CHECK(std::isfinite(value));
}

TEST_CASE("classifier: tokens have the places they are given, and padding need not be at the end") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  Rng rng(9);
  TransformerConfig config = tiny_config();
  config.position = PositionKind::learned;
  const Classifier model(config, {.vocabulary = 9, .classes = 3}, plain_attention, rng);
  const Tensor whole = model(ids({5, 6, 7, 8}, 1), {}, {});
  CHECK(apart(whole, model(ids({5, 6, 7, 8}, 1), {}, {}, ids({0, 1, 2, 3}, 1))) == 0);
  // The order in which tokens come does not matter where each keeps its place.
  CHECK(apart(whole, model(ids({8, 5, 7, 6}, 1), {}, {}, ids({3, 0, 2, 1}, 1))) < 1e-5);
  CHECK(apart(whole, model(ids({8, 5, 7, 6}, 1), {}, {}, ids({0, 1, 2, 3}, 1))) > 1e-4);
}

TEST_CASE("classifier: a sum over real tokens divided by the padded length") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  Rng one(7), other(7);
  const Classifier real(tiny_config(), {.vocabulary = 9, .classes = 3}, plain_attention, one);
  const Classifier padded(tiny_config(), {.vocabulary = 9, .classes = 3, .mean_over = 8}, plain_attention,
                          other);
  // Without a hidden layer logits are linear in the mean, and biases begin at 0.
  const Tensor x = ids({1, 2, 3, 0, 0, 0}, 1);
  CHECK(apart(real(x, lengths({3}), {}) * (3.0 / 8), padded(x, lengths({3}), {})) < 1e-5);
  CHECK(apart(real(x, {}, {}) * (6.0 / 8), padded(x, {}, {})) < 1e-5);
}

TEST_CASE("classifier: a mean of all tokens, past the lengths, too") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  Rng one(7), other(7);
  const Classifier real(tiny_config(), {.vocabulary = 9, .classes = 3}, plain_attention, one);
  const Classifier all(tiny_config(), {.vocabulary = 9, .classes = 3, .mean_of_all = true}, plain_attention,
                       other);
  const Tensor x = ids({1, 2, 3, 4}, 1);
  CHECK(apart(real(x, {}, {}), all(x, {}, {})) == 0);
  CHECK(apart(real(x, lengths({4}), {}), all(x, lengths({4}), {})) < 1e-6);
  // The last token attends to the others, none to it, and its output counts.
  CHECK(apart(real(x, lengths({3}), {}), all(x, lengths({3}), {})) > 1e-4);
  CHECK(apart(all(x, lengths({3}), {}), all(ids({1, 2, 3, 5}, 1), lengths({3}), {})) > 1e-4);
}

TEST_CASE("classifier: a token put first has a place of its own") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  Rng rng(9);
  TransformerConfig config = tiny_config();
  config.position = PositionKind::learned;
  const Classifier model(config, {.vocabulary = 9, .classes = 3, .pool = Pool::first}, plain_attention, rng);
  const Tensor whole = model(ids({5, 6, 7}, 1), {}, {});
  CHECK(apart(whole, model(ids({5, 6, 7}, 1), {}, {}, ids({0, 1, 2, 3}, 1))) == 0);
  CHECK(apart(whole, model(ids({7, 5, 6}, 1), {}, {}, ids({0, 3, 1, 2}, 1))) < 1e-5);
}

TEST_CASE("classifier: pairs meet in the head, behind one encoder") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  for (const Pairing pairing : {Pairing::concat, Pairing::products}) {
    Rng rng(7);
    const Classifier model(tiny_config(),
                           {.vocabulary = 9, .classes = 3, .head_hidden = 6, .pairing = pairing},
                           plain_attention, rng);
    const Tensor two = model(ids({1, 2, 3, 4, 5, 6, 7, 8}, 4), {}, {});  // 1 2 with 5 6, 3 4 with 7 8
    CHECK(two.shape() == Shape{2, 3});
    CHECK(apart(view::slice(two, 0, 1, 2), model(ids({3, 4, 7, 8}, 2), {}, {})) < 1e-5);
    CHECK(apart(view::slice(two, 0, 1, 2), model(ids({7, 8, 3, 4}, 2), {}, {})) > 1e-4);
    CHECK_THROWS_WITH(model(ids({1, 2, 3}, 3), {}, {}), containing("3 inputs are no pairs"));
  }
}

TEST_CASE("classifier: a first token reads the input") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  Rng rng(7);
  TransformerConfig config = tiny_config();
  config.max_length = 5;
  const Classifier model(config, {.features = 2, .classes = 4, .pool = Pool::first}, plain_attention, rng);
  Tensor x(Shape{3, 4, 2});
  fill_normal(x, 0, 1, rng);
  const Tensor y = model(x, {}, {});
  CHECK(y.shape() == Shape{3, 4});
  CHECK(apart(view::slice(y, 0, 1, 2), model(view::slice(x, 0, 1, 2), {}, {})) < 1e-5);
  CHECK(apart(view::slice(y, 0, 0, 1), view::slice(y, 0, 1, 2)) > 1e-4);
  CHECK_THROWS_WITH(model(Tensor(Shape{1, 5, 2}), {}, {}), containing("6 tokens"));
  // A classifier reads token ids too; lengths count the first token, and what is padding is not read.
  const Classifier words(config, {.vocabulary = 9, .classes = 4, .pool = Pool::first}, plain_attention, rng);
  const Tensor padded = words(ids({1, 2, 3, 8, 4, 5, 6, 7}, 2), lengths({4, 5}), {});
  CHECK(apart(padded, concat(std::vector<Tensor>{words(ids({1, 2, 3}, 1), {}, {}),
                                                 words(ids({4, 5, 6, 7}, 1), {}, {})},
                             0)) < 1e-5);
  CHECK(apart(words(ids({1, 2}, 1), {}, {}), words(ids({2, 1}, 1), {}, {})) > 1e-4);
  CHECK_THROWS_WITH(Classifier(config, {.classes = 2}, plain_attention, rng),
                    containing("neither a vocabulary nor features"));
}

TEST_CASE("token predictor: rows that are asked for, a token put first is not counted, and hidden ones") {
  const DefaultDevice device(any_device());
  const NoGrad quiet;
  for (const bool first : {false, true}) {
    CAPTURE(first);
    Rng rng(7);
    TokenPredictor model(tiny_config(), {.vocabulary = 9, .first = first}, plain_attention, rng);
    const auto asked = [&](std::vector<int32_t> tokens, int64_t inputs, std::vector<int32_t> rows) {
      const auto count = static_cast<int64_t>(rows.size());
      return model(ids(tokens, inputs), {}, Tensor::of<int32_t>(rows, Shape{count}), {});
    };
    const Tensor both = asked({1, 2, 3, 4, 5, 9}, 2, {0, 4, 5});
    CHECK(both.shape() == Shape{3, 9});
    const Tensor second = asked({4, 5, 9}, 1, {1, 2});
    CHECK(apart(view::slice(both, 0, 1, 3), second) < 1e-5);
    CHECK(apart(asked({9, 2, 3}, 1, {0}), asked({8, 2, 3}, 1, {0})) > 1e-4);
    CHECK(apart(asked({9, 2, 3}, 1, {0}), asked({9, 3, 2}, 1, {0})) > 1e-4);  // it sees the others
    // Looking back only, what comes later changes nothing.
    TokenPredictor back(tiny_config(), {.vocabulary = 9, .first = first, .causal = true}, plain_attention,
                        rng);
    const Tensor rows = ids({0, 1}, 1);
    const auto early = [&](const std::vector<int32_t>& tokens) {
      return back(ids(tokens, 1), {}, reshape(rows, Shape{2}), {});
    };
    CHECK(apart(early({1, 2, 3, 4}), early({1, 2, 8, 7})) == 0);
    CHECK(apart(early({1, 2, 3, 4}), early({3, 2, 3, 4})) > 1e-4);
  }
}

TEST_CASE("token predictor: every parameter is used, and a classifier takes over what it reads with") {
  const DefaultDevice device(any_device());
  for (const bool causal : {false, true}) {
    Rng rng(5), noise(6);
    TransformerConfig config = tiny_config();
    config.position = PositionKind::learned;
    TokenPredictor model(config, {.vocabulary = 9, .first = true, .causal = causal}, plain_attention, rng);
    const Tensor asked = Tensor::of<int32_t>(std::vector<int32_t>{0, 3}, Shape{2});
    const Tensor x = causal ? ids({1, 2, 3, 4}, 2) : ids({9, 2, 3, 9}, 2);
    CHECK_NOTHROW(check_listed(model, sum(model(x, lengths({3, 3}), asked, {.rng = &noise}))));
    Classifier words(config, {.vocabulary = 9, .classes = 3, .pool = Pool::first, .head_hidden = 5},
                     plain_attention, rng);
    std::map<std::string, std::vector<float>> learned, before;
    for (const Named& named : tensors(model)) learned[named.name] = named.tensor->to_host();
    for (const Named& named : tensors(words)) before[named.name] = named.tensor->to_host();
    words.load_encoder(save_bytes(model));
    int64_t taken = 0;
    for (const Named& named : tensors(words)) {
      CAPTURE(named.name);
      const bool head = named.name.starts_with("hidden") || named.name.starts_with("classes");
      taken += head ? 0 : 1;
      CHECK(named.tensor->to_host() == (head ? before : learned).at(named.name));
    }
    CHECK(taken + (causal ? 2 : 3) == static_cast<int64_t>(learned.size()));
  }
  Rng rng(5);
  TokenPredictor model(tiny_config(), {.vocabulary = 9}, plain_attention, rng);
  Classifier other(tiny_config(), {.vocabulary = 8, .classes = 3}, plain_attention, rng),
      first(tiny_config(), {.vocabulary = 9, .classes = 3, .pool = Pool::first}, plain_attention, rng);
  CHECK_THROWS_WITH(other.load_encoder(save_bytes(model)),
                    containing("embedder.tokens.weight is f32 [9, 8]"));
  CHECK_THROWS_WITH(first.load_encoder(save_bytes(model)), containing("first [1, 1, 8] is missing"));
}

TEST_CASE("transformer: dropout only with noise, and a probe sees every attention by name") {
  const DefaultDevice device(any_device());
  Rng rng(8), one(1), two(1);
  EncoderDecoder model(tiny_config(), 9, 9, plain_attentions, rng);
  const Tensor source = ids({1, 2, 3}, 1), target = ids({4, 5}, 1), long_as = lengths({3});
  const auto run = [&](const ForwardContext& context) {
    return model.decode(target, model.encode(source, long_as, context), long_as, context).to_host();
  };
  CHECK(run({}) == run({}));
  const auto noisy = run({.rng = &one});
  CHECK(noisy == run({.rng = &two}));
  CHECK(noisy != run({}));
  MapRecorder recorder;
  CHECK(run({.recorder = &recorder}) == run({}));
  std::vector<std::string> names;
  for (const MapRecorder::Map& map : recorder.maps) names.push_back(name_of(model, map.module));
  CHECK(names == std::vector<std::string>{"encoder.blocks.0.attention", "encoder.blocks.1.attention",
                                          "decoder.blocks.0.attention", "decoder.blocks.0.cross",
                                          "decoder.blocks.1.attention", "decoder.blocks.1.cross"});
}

TEST_CASE("transformer: hosts tell attentions what they are") {
  const DefaultDevice device(any_device());
  Rng rng(9);
  std::vector<AttentionConfig> seen;
  const AttentionFactory watching = [&](const AttentionConfig& config, Rng& r) {
    seen.push_back(config);
    return plain_attention(config, r);
  };
  TransformerConfig config = tiny_config();
  config.attention_dropout = 0.3;
  config.init = Init::normal;
  const EncoderDecoder model(config, 9, 9, {watching, watching, watching}, rng);
  REQUIRE(seen.size() == 6);
  for (const AttentionConfig& one : seen) {
    CHECK(one.d_model == 8);
    CHECK(one.heads == 2);
    CHECK(one.layers == 2);
    CHECK(one.max_length == 16);
    CHECK(one.dropout == 0.3);
  }
  CHECK((!seen[0].causal && !seen[0].cross && seen[0].layer == 0));
  CHECK(seen[1].layer == 1);
  CHECK((seen[2].causal && !seen[2].cross));
  CHECK((!seen[3].causal && seen[3].cross && seen[3].layer == 0));
  CHECK((seen[4].causal && seen[4].layer == 1));
  CHECK(seen[0].output_gain == Approx(0.5));                 // two layers of two branches
  CHECK(seen[2].output_gain == Approx(1 / std::sqrt(6.0)));  // two layers of three
}

TEST_CASE("transformer: projections that start as the identity leave all other weights as they are") {
  TransformerConfig config = tiny_config();
  const auto made = [&](bool identity) {
    Rng rng(5);
    config.identity_projections = identity;
    return std::make_unique<EncoderDecoder>(
        config, 9, 9, EncoderDecoder::Attentions{plain_attention, plain_attention, plain_attention}, rng);
  };
  const auto drawn = made(false), started = made(true);
  const std::vector<Named> before = parameters(*drawn), after = parameters(*started);
  REQUIRE(before.size() == after.size());
  int64_t identities = 0;
  for (size_t i = 0; i < after.size(); ++i) {
    CAPTURE(after[i].name);
    const bool projection = after[i].name.ends_with("query.weight") ||
                            after[i].name.ends_with("key.weight") || after[i].name.ends_with("value.weight");
    const std::vector<float> values = after[i].tensor->to_host();
    if (!projection) {
      CHECK(values == before[i].tensor->to_host());
      continue;
    }
    ++identities;
    CHECK(after[i].tensor->node()->leaf);
    const int64_t width = after[i].tensor->extent(0);
    for (int64_t at = 0; at < width * width; ++at)
      CHECK(values[static_cast<size_t>(at)] == (at % (width + 1) == 0 ? 1.0F : 0.0F));
  }
  CHECK(identities == 2 * 3 * 3);  // layers, attentions of encoder and decoder, projections
}

TEST_CASE("transformer: wrong sizes are refused with the legal ones") {
  const DefaultDevice device(any_device());
  const auto wrong = [](const auto& change) {
    TransformerConfig config;
    change(config);
    try {
      config.check();
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::usage);
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK(wrong([](auto&) {}) == "none");
  CHECK_THAT(wrong([](auto& c) { c.heads = 6; }),
             containing("model.heads = 6 does not divide model.d_model = 256") && containing("252 or 258"));
  CHECK_THAT(wrong([](auto& c) { c.d_model = 4; }), containing("or d_model 8,"));
  CHECK_THAT(wrong([](auto& c) { c.head_dim = -1; }), containing("model.head_dim = -1"));
  CHECK(wrong([](auto& c) {
          c.heads = 6;
          c.head_dim = 10;
        }) == "none");
  CHECK_THAT(wrong([](auto& c) { c.layers = 0; }), containing("model.layers = 0. It must be 1 to 10000."));
  CHECK_THAT(wrong([](auto& c) { c.layers = 10001; }), containing("model.layers = 10001."));
  CHECK_THAT(wrong([](auto& c) { c.max_length = -5; }), containing("model.max_length = -5"));
  CHECK_THAT(wrong([](auto& c) { c.dropout = 1; }),
             containing("model.dropout = 1. It must be at least 0 and below 1."));
  CHECK_THAT(wrong([](auto& c) { c.attention_dropout = -0.1; }),
             containing("model.attention_dropout = -0.1"));
  CHECK_THAT(wrong([](auto& c) { c.position_deviation = -1; }), containing("model.position_deviation = -1"));
  CHECK_THAT(wrong([](auto& c) { c.norm_epsilon = 0; }), containing("model.norm_epsilon = 0"));
  // Models ask before they build anything.
  TransformerConfig config = tiny_config();
  config.max_length = -1;
  Rng rng(1);
  CHECK_THROWS_WITH(DecoderOnly(config, 9, plain_attention, rng), containing("model.max_length"));
  CHECK_THROWS_WITH(Classifier(config, {.features = 2}, plain_attention, rng),
                    containing("model.max_length"));
}

}  // namespace heed
