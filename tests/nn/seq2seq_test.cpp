// tests nn/seq2seq.h
#include "heed/nn/seq2seq.h"

#include "heed/autograd/gradcheck.h"
#include "heed/autograd/node.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/nn/plain_attention.h"
#include "heed/tests/nn/sequences.h"

namespace heed {
namespace {

using test::apart;
using test::ids;
using test::lengths;
using test::position;

TransformerConfig tiny(int64_t layers = 2) {
  TransformerConfig config;
  config.d_model = 8;
  config.heads = 2;
  config.layers = layers;
  config.max_length = 16;
  config.dropout = 0.2;
  return config;
}

std::vector<Seq2SeqOptions> with_attention() {
  std::vector<Seq2SeqOptions> out;
  for (const CellKind cell : {CellKind::lstm, CellKind::gru}) {
    out.push_back({.cell = cell, .wiring = Wiring::bahdanau});
    out.push_back({.cell = cell, .bidirectional = false, .wiring = Wiring::luong, .input_feeding = true});
    out.push_back({.cell = cell, .wiring = Wiring::luong, .input_feeding = false});
  }
  return out;
}

std::vector<Seq2SeqOptions> with_fixed_context() {
  std::vector<Seq2SeqOptions> out;
  for (const Wiring wiring : {Wiring::sutskever, Wiring::cho}) {
    out.push_back({.cell = CellKind::lstm, .wiring = wiring});
    out.push_back({.cell = CellKind::gru, .bidirectional = false, .wiring = wiring});
  }
  return out;
}

std::vector<Seq2SeqOptions> all_options() {
  std::vector<Seq2SeqOptions> out = with_attention();
  for (const Seq2SeqOptions& options : with_fixed_context()) out.push_back(options);
  return out;
}

/// Two sentences of five and three words, four words each to write.
struct Example {
  Tensor source = ids({1, 2, 3, 4, 5, 6, 7, 8, 9, 0}, 2), target = ids({1, 2, 3, 4, 5, 12, 11, 10}, 2),
         long_as = lengths({5, 3});
  Tensor hidden(const Seq2Seq& model, const ForwardContext& context = {}) const {
    return model.decode(target, model.encode(source, long_as, context), long_as, context);
  }
};

}  // namespace

TEST_CASE("seq2seq: decoding step by step gives the logits of one call") {
  const DefaultDevice device(any_device());
  const Example example;
  for (const Seq2SeqOptions& options : all_options()) {
    const NoGrad quiet;
    Rng rng(1);
    const Seq2Seq model(tiny(), options, 11, 13, plain_attention, rng);
    const Tensor encoded = model.encode(example.source, example.long_as, {});
    const Tensor full = model.logits(model.decode(example.target, encoded, example.long_as, {}));
    CHECK(full.shape() == Shape{2, 4, 13});
    Decoding one = model.start(encoded, example.long_as);
    for (int64_t t = 0; t < 4; ++t) {
      CHECK(apart(model.next(view::slice(example.target, 1, t, t + 1), one), position(full, t)) < 1e-5);
      CHECK(one.length == t + 1);
    }
    Decoding several = model.start(encoded, example.long_as);
    CHECK(apart(model.next(view::slice(example.target, 1, 0, 3), several), position(full, 2)) < 1e-5);
    CHECK(apart(model.next(view::slice(example.target, 1, 3, 4), several), position(full, 3)) < 1e-5);
  }
}

TEST_CASE(
    "seq2seq: what stands in the padding of the source changes nothing, and the row alone is the same") {
  const DefaultDevice device(any_device());
  for (const Seq2SeqOptions& options : all_options()) {
    const NoGrad quiet;
    Rng rng(1);
    const Seq2Seq model(tiny(), options, 11, 13, plain_attention, rng);
    const Tensor target = ids({1, 2, 3}, 1), three = lengths({3});
    const auto logits = [&](const std::vector<int32_t>& source) {
      return model.logits(model.decode(target, model.encode(ids(source, 1), three, {}), three, {}));
    };
    CHECK(apart(logits({4, 5, 6, 0, 0}), logits({4, 5, 6, 9, 10})) == 0);
    CHECK(apart(logits({4, 5, 6, 0, 0}), logits({4, 5, 6})) < 1e-6);
    CHECK(apart(logits({4, 5, 6, 0, 0}), logits({4, 5, 7, 0, 0})) > 1e-4);
  }
}

TEST_CASE("seq2seq: reordered beams go on as hypotheses of their own") {
  const DefaultDevice device(any_device());
  for (const Seq2SeqOptions& options : all_options()) {
    const NoGrad quiet;
    Rng rng(1);
    const Seq2Seq model(tiny(), options, 11, 13, plain_attention, rng);
    const Tensor source = ids({1, 2, 3, 4, 5, 6}, 2), long_as = lengths({3, 2});
    const Tensor encoded = model.encode(source, long_as, {});
    const Tensor picked = model.encode(ids({4, 5, 6, 1, 2, 3, 4, 5, 6}, 3), lengths({2, 3, 2}), {});
    const Tensor expected =
        model.logits(model.decode(ids({7, 3, 5, 8, 7, 1}, 3), picked, lengths({2, 3, 2}), {}));
    Decoding late = model.start(encoded, long_as);
    model.next(ids({5, 7}, 2), late);
    late.reorder({1, 0, 1});
    CHECK(apart(model.next(ids({3, 8, 1}, 3), late), position(expected, 1)) < 1e-5);
    Decoding early = model.start(encoded, long_as);  // before anything is remembered
    early.reorder({1, 0, 1});
    CHECK(apart(model.next(ids({7, 5, 7}, 3), early), position(expected, 0)) < 1e-5);
  }
}

TEST_CASE("seq2seq: gradients through the attention's memory are those of central differences") {
  const Example example;
  for (const Seq2SeqOptions& options : all_options()) {
    CAPTURE(static_cast<int>(options.cell), static_cast<int>(options.wiring), options.input_feeding);
    Rng rng(1);
    Seq2Seq model(tiny(1), options, 11, 13, plain_attention, rng);
    convert(model, DType::f64);
    check_listed(model, sum(model.logits(example.hidden(model))));
    std::vector<Tensor> leaves;
    for (const Named& named : parameters(model)) leaves.push_back(*named.tensor);
    const GradcheckReport report = gradcheck([&] { return model.logits(example.hidden(model)); }, leaves,
                                             {.tolerance = 1e-6, .samples = 6});
    INFO(to_string(report));
    CHECK(report.passed);
  }
}

TEST_CASE("seq2seq: a probe sees one map of all steps, which changes nothing") {
  const DefaultDevice device(any_device());
  const Example example;
  for (const Seq2SeqOptions& options : with_attention()) {
    const NoGrad quiet;
    Rng rng(1), one(5), two(5);
    Seq2Seq model(tiny(), options, 11, 13, plain_attention, rng);
    MapRecorder recorder, noisy;
    const Tensor unseen = example.hidden(model), seen = example.hidden(model, {.recorder = &recorder});
    CHECK(apart(seen, unseen) == 0);
    CHECK(apart(example.hidden(model, {.rng = &one}), unseen) > 0);
    one.restore(0, 0);
    CHECK(apart(example.hidden(model, {.rng = &one}),
                example.hidden(model, {.rng = &two, .recorder = &noisy})) == 0);
    REQUIRE(recorder.maps.size() == 1);
    CHECK(name_of(model, recorder.maps[0].module) == "decoder.cross");
    const Tensor& map = recorder.maps[0].weights;
    REQUIRE(map.shape() == Shape{2, 2, 4, 5});
    const std::vector<double> weights = map.to_doubles();
    for (size_t row = 0; row < 16; ++row) {
      double total = 0;
      for (size_t j = 0; j < 5; ++j) total += weights[row * 5 + j];
      CHECK(total == Approx(1));
      if (row >= 8) CHECK((weights[row * 5 + 3] == 0 && weights[row * 5 + 4] == 0));
    }
  }
}

namespace {

/// A cross-attention whose answer is the same whatever is asked: the last key.
class LastKey final : public Attention {
 public:
  struct Inputs final : AttentionCache {
    Tensor keys;
    void fields(Fields& f) override { f("keys", keys); }
  };
  Tensor forward(const AttentionInput& input) override {
    auto& cache = dynamic_cast<Inputs&>(*input.cache);
    asked.push_back(input.queries);
    if (input.keys) {
      ++fillings;
      cache.keys = input.keys;
    }
    cache.queries += input.queries.extent(1);
    const int64_t length = cache.keys.extent(1);
    return expand(slice(cache.keys, 1, length - 1, length), input.queries.shape());
  }
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<Inputs>(); }
  void fields(Fields&) override {}
  std::vector<Tensor> asked;
  int fillings = 0;
};

}  // namespace

TEST_CASE("seq2seq: keys are given once a sentence, and the context is where the wiring says") {
  const DefaultDevice device(any_device());
  const Example example;
  for (const Seq2SeqOptions& options : with_attention()) {
    const NoGrad quiet;
    Rng rng(1);
    LastKey* cross = nullptr;
    const AttentionFactory factory = [&](const AttentionConfig& config, Rng&) {
      CHECK((config.cross && !config.causal && config.d_model == 8 && config.heads == 2));
      CHECK((config.max_length == 16 && config.dropout == 0.2));
      auto made = std::make_unique<LastKey>();
      cross = made.get();
      return made;
    };
    Seq2Seq model(tiny(2), options, 11, 13, factory, rng);
    const bool stepwise = options.wiring == Wiring::bahdanau || options.input_feeding;
    const Tensor encoded = model.encode(example.source, example.long_as, {});
    const Tensor y = model.decode(example.target, encoded, example.long_as, {});
    CHECK(cross->fillings == 1);
    CHECK(cross->asked.size() == (stepwise ? 4 : 1));
    const Tensor asked = concat(cross->asked, 1);
    // The expected numbers are computed by hand, from the equations.
    const RecurrentDecoder& decoder = model.decoder;
    const RecurrentCell &first = *decoder.cells[0], &second = *decoder.cells[1];
    const Tensor x = model.target(example.target, 0, nullptr);
    const Tensor c = position(encoded, 4);
    const Tensor begin =
        reshape(tanh(decoder.bridge(model.encoder.last(encoded))), Shape{2, 2 * first.parts(), 8});
    const auto state_of = [&](int64_t layer) {
      const Tensor own = slice(begin, 1, layer * first.parts(), (layer + 1) * first.parts());
      return contiguous(transpose(own, 0, 1));
    };
    Tensor low = state_of(0), high = state_of(1), fed = Tensor::zeros(Shape{2, 8});
    for (int64_t t = 0; t < 4; ++t) {
      const Tensor word = position(x, t);
      Tensor from_input = first.input(word);
      if (options.wiring == Wiring::bahdanau) from_input = from_input + decoder.fed(c);
      if (options.wiring == Wiring::luong && options.input_feeding)
        from_input = from_input + decoder.fed(fed);
      if (options.wiring == Wiring::bahdanau) CHECK(apart(position(asked, t), second.hidden(high)) < 1e-6);
      low = first.step(from_input, low);
      high = second.step(second.input(first.hidden(low)), high);
      const Tensor h = second.hidden(high);
      if (options.wiring == Wiring::luong) CHECK(apart(position(asked, t), h) < 1e-6);
      fed = options.wiring == Wiring::bahdanau
                ? tanh(decoder.readout(concat(std::vector<Tensor>{h, c, word}, 1)))
                : tanh(decoder.readout(concat(std::vector<Tensor>{c, h}, 1)));
      CHECK(apart(position(y, t), fed) < 1e-6);
    }
  }
}

namespace {

/// A factory that no wiring without attention may call.
std::unique_ptr<Attention> never(const AttentionConfig&, Rng&) {
  FAIL("a fixed context needs no attention");
  return nullptr;
}

}  // namespace

TEST_CASE("seq2seq: without attention the decoder gets the last state alone, and no map is recorded") {
  const DefaultDevice device(any_device());
  const Example example;
  for (const Seq2SeqOptions& options : with_fixed_context()) {
    const NoGrad quiet;
    Rng rng(1);
    Seq2Seq model(tiny(2), options, 11, 13, never, rng);
    const RecurrentDecoder& decoder = model.decoder;
    CHECK_FALSE(decoder.cross);
    const bool cho = options.wiring == Wiring::cho;
    CHECK(static_cast<bool>(decoder.fed.weight) == cho);
    CHECK(static_cast<bool>(decoder.readout.weight) == cho);
    const Tensor encoded = model.encode(example.source, example.long_as, {});
    MapRecorder recorder;
    const Tensor y = model.decode(example.target, encoded, example.long_as, {.recorder = &recorder});
    CHECK(recorder.maps.empty());
    // The expected numbers are computed by hand, from the equations.
    const RecurrentCell &first = *decoder.cells[0], &second = *decoder.cells[1];
    const Tensor x = model.target(example.target, 0, nullptr), c = model.encoder.last(encoded);
    const Tensor begin = reshape(tanh(decoder.bridge(c)), Shape{2, 2 * first.parts(), 8});
    const auto state_of = [&](int64_t layer) {
      const Tensor own = slice(begin, 1, layer * first.parts(), (layer + 1) * first.parts());
      return contiguous(transpose(own, 0, 1));
    };
    Tensor low = state_of(0), high = state_of(1);
    for (int64_t t = 0; t < 4; ++t) {
      const Tensor word = position(x, t);
      Tensor from_input = first.input(word);
      if (cho) from_input = from_input + decoder.fed(c);
      low = first.step(from_input, low);
      high = second.step(second.input(first.hidden(low)), high);
      const Tensor h = second.hidden(high);
      const Tensor expected = cho ? tanh(decoder.readout(concat(std::vector<Tensor>{h, c, word}, 1))) : h;
      CHECK(apart(position(y, t), expected) < 1e-6);
    }
    // Whatever else the encoder gives does not matter: its states between the ends.
    std::vector<float> other = encoded.to_host();
    for (size_t i = 0; i < 8; ++i) other[2 * 8 + i] += 1;  // position 2 of 5 of the first sentence
    const Tensor changed = Tensor::of<float>(other, encoded.shape()).to(encoded.device());
    CHECK(apart(model.decode(example.target, changed, example.long_as, {}), y) == 0);
  }
}

TEST_CASE("seq2seq: tables are tied as asked, and what cannot be is refused") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  TransformerConfig config = tiny();
  config.tie_embeddings = Tie::all;
  Seq2Seq model(config, {}, 12, 12, plain_attention, rng);
  CHECK_FALSE(model.output);
  CHECK(model.source.tokens.weight.storage() == model.target.tokens.weight.storage());
  CHECK_THROWS_WITH(Seq2Seq(config, {}, 11, 12, plain_attention, rng),
                    containing("model.tie_embeddings = all"));
  config.d_model = 9;
  config.heads = 3;
  config.tie_embeddings = Tie::none;
  CHECK_THROWS_WITH(Seq2Seq(config, {}, 11, 12, plain_attention, rng), containing("two directions"));
  class NoMemory final : public Attention {
   public:
    Tensor forward(const AttentionInput& input) override { return input.queries; }
    void fields(Fields&) override {}
  };
  const AttentionFactory without = [](const AttentionConfig&, Rng&) { return std::make_unique<NoMemory>(); };
  CHECK_THROWS_WITH(Seq2Seq(tiny(), {}, 11, 12, without, rng), containing("step by step"));
  Decoding other;
  const Seq2Seq fine(tiny(), {}, 11, 12, plain_attention, rng);
  CHECK_THROWS_WITH(fine.next(ids({1}, 1), other), containing("another model's"));
}

TEST_CASE("seq2seq: nothing of a step stays alive after it") {
  const DefaultDevice device(any_device());
  const Example example;
  Rng rng(1);
  for (const Seq2SeqOptions& options : all_options()) {
    const Seq2Seq model(tiny(), options, 11, 13, plain_attention, rng);
    const int64_t nodes = live_nodes(), bytes = memory_use().live;
    int64_t second = 0, last = 0;
    for (int step = 1; step <= 5; ++step) {
      backward(sum(model.logits(example.hidden(model, {.rng = &rng}))));
      last = memory_use().live;
      if (step == 2) second = last;
    }
    CHECK(last == second);
    CHECK(live_nodes() == nodes);
    CHECK(bytes <= last);
  }
}

}  // namespace heed
