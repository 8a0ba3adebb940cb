// Models on packed tokens: the logits and gradients of padded batches, without work on padding.
#include "heed/attention/variant.h"
#include "heed/autograd/node.h"
#include "heed/core/operation_count.h"
#include "heed/nn/encoder_models.h"
#include "heed/nn/packing.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/nn/sequences.h"

namespace heed {
namespace {

using test::apart;
using test::ids;
using test::lengths;

constexpr int32_t longest = 21, vocabulary = 9;

TransformerConfig small_config() {
  TransformerConfig config;
  config.d_model = 16;
  config.heads = 2;
  config.d_ff = 24;
  config.layers = 2;
  config.max_length = longest + 1;
  config.dropout = 0.2;
  config.attention_dropout = 0.3;
  config.activation = Activation::gelu;
  return config;
}

/// Ids of four sequences, the padding too.
Tensor some_ids() {
  std::vector<int32_t> values;
  for (int32_t i = 0; i < 4 * longest; ++i) values.push_back((i * i + 3 * i + 1) % vocabulary);
  return ids(values, 4);
}

/// The logits of a model, followed by the gradients of their weighted sum by every parameter.
template <class Model, class Run>
std::vector<Tensor> results(Model& model, ForwardContext context, bool trains, const Run& run) {
  Rng rng(5);
  context.rng = trains ? &rng : nullptr;
  const std::vector<Named> own = parameters(model);
  for (const Named& named : own) named.tensor->node()->grad = Tensor();
  const Tensor logits = run(model, context);
  backward(sum(logits * test::normal(logits.shape(), 3)));
  std::vector<Tensor> out{logits.detach()};
  for (const Named& named : own) out.push_back(grad_of(*named.tensor).detach());
  return out;
}

/// Compares a model on packed tokens with the same on padded ones, without and with dropout: packed from
/// lengths on the CPU, and from tables of `tabled`, with as much padding as those keep.
template <class Model, class Run>
void check_packed(Model& model, const ForwardContext& tabled, const Run& run) {
  convert(model, DType::f64);
  for (const bool trains : {false, true}) {
    const std::vector<Tensor> padded = results(model, {.packs = false}, trains, run);
    for (const bool with_tables : {false, true}) {
      CAPTURE(trains, with_tables);
      const std::vector<Tensor> packed = results(model, with_tables ? tabled : ForwardContext{}, trains, run);
      for (size_t i = 0; i < padded.size(); ++i) {
        CAPTURE(i);
        CHECK(apart(packed[i], padded[i]) < 1e-10);
      }
    }
  }
}

/// check_packed() of sequences with these lengths, padded to T tokens.
template <class Model, class Run>
void check_packed(Model& model, const std::vector<int32_t>& real, int64_t padded_length, const Run& run) {
  constexpr int64_t row_step = 29;  // more than a sequence has, so that two keep padding
  check_packed(model, {.packing_table = packing_table(real, padded_length, row_step)}, run);
}

/// 1 for each row of a packing on the CPU that is a token, 0 for one of padding: f64 [N, 1].
Tensor tokens_of(const Packing& packing) {
  std::vector<double> out;
  for (int64_t n = 0; n < packing.num_tokens(); ++n) {
    const int64_t place = packing.places.places.data<int32_t>()[n], longest_row = packing.sequences.longest;
    out.push_back(place % longest_row < packing.lengths.data<int32_t>()[place / longest_row] ? 1 : 0);
  }
  return Tensor::of<double>(out, Shape{packing.num_tokens(), 1}, Device::cpu);
}

void check_classifier(const TransformerConfig& config, const Classifier::Options& options,
                      const char* attention = "softmax") {
  CAPTURE(attention);
  Rng rng(1);
  Classifier model(config, options, attention_factory(attention), rng);
  const bool has_first = options.pool == Pool::first;
  const std::vector<int32_t> real =
      has_first ? std::vector<int32_t>{longest + 1, 8, 1, 13} : std::vector<int32_t>{longest, 7, 0, 12};
  check_packed(model, real, longest + (has_first ? 1 : 0),
               [&](const Classifier& classifier, const ForwardContext& context) {
                 return classifier(some_ids(), lengths(real), context);
               });
}

}  // namespace

TEST_CASE("packed models: a classifier has the logits and gradients of padded tokens") {
  const DefaultDevice here(any_device());
  for (const Pool pool : {Pool::mean, Pool::first, Pool::last}) {
    check_classifier(small_config(), {.vocabulary = vocabulary, .classes = 3, .pool = pool});
    check_classifier(small_config(), {.vocabulary = vocabulary, .classes = 3, .pool = pool, .causal = true});
  }
  check_classifier(small_config(), {.vocabulary = vocabulary, .mean_over = longest});
  check_classifier(small_config(), {.vocabulary = vocabulary, .mean_of_all = true});
  check_classifier(small_config(), {.vocabulary = vocabulary, .pairing = Pairing::products});
}

TEST_CASE("packed models: every position encoding and kind of block") {
  const DefaultDevice here(any_device());
  for (const PositionKind position :
       {PositionKind::none, PositionKind::learned, PositionKind::rope, PositionKind::rope_interleaved,
        PositionKind::alibi, PositionKind::t5, PositionKind::shaw}) {
    CAPTURE(static_cast<int>(position));
    TransformerConfig config = small_config();
    config.position = position;
    config.modifiers.position_span = 20;
    config.norm = NormPlace::post;
    check_classifier(config, {.vocabulary = vocabulary});
  }
  TransformerConfig config = small_config();
  config.activation = Activation::swiglu;
  config.short_convolution = 3;
  config.norm_scale = kernel::NormScale::rms;
  config.kv_heads = 1;
  check_classifier(config, {.vocabulary = vocabulary});
  check_classifier(config, {.vocabulary = vocabulary, .causal = true});
}

TEST_CASE("packed models: attentions that take packed tokens, and others") {
  const DefaultDevice here(any_device());
  for (const char* attention : {"fastmax:p=1", "fastmax:p=2", "fastmax:p=3", "linear", "performer_relu",
                                "differential", "nystromformer", "window:left=3,right=3", "linformer", "mla"})
    check_classifier(small_config(), {.vocabulary = vocabulary}, attention);
}

TEST_CASE("packed models: vectors, given positions, and predicted tokens") {
  const DefaultDevice here(any_device());
  Rng rng(2);
  Classifier patches(small_config(), {.features = 3}, attention_factory("softmax"), rng);
  const std::vector<int32_t> real{longest, 7, 1, 12};
  check_packed(patches, real, longest, [&](const Classifier& model, const ForwardContext& context) {
    return model(test::normal(Shape{4, longest, 3}, 8), lengths(real), context);
  });
  Classifier placed(small_config(), {.vocabulary = vocabulary}, attention_factory("softmax"), rng);
  std::vector<int32_t> places;
  for (int32_t i = 0; i < 4 * longest; ++i) places.push_back(i * 5 % longest);
  check_packed(placed, real, longest, [&](const Classifier& model, const ForwardContext& context) {
    return model(some_ids(), lengths(real), context, ids(places, 4));
  });
  for (const bool has_first : {false, true}) {
    TokenPredictor predictor(small_config(), {.vocabulary = vocabulary, .first = has_first},
                             attention_factory("softmax"), rng);
    const int32_t one = has_first ? 1 : 0;
    const std::vector<int32_t> with_first{longest + one, 7 + one, 1 + one, 12 + one};
    check_packed(predictor, with_first, longest + one,
                 [&](const TokenPredictor& model, const ForwardContext& context) {
                   return model(some_ids(), lengths(with_first), lengths({0, 20, 24, 70}), context);
                 });
  }
}

TEST_CASE("packed models: a translator has the logits and gradients of padded sentences") {
  constexpr int32_t length = 11;
  std::vector<int32_t> values;
  for (int32_t i = 0; i < 3 * length; ++i) values.push_back((i * i + 5 * i + 2) % vocabulary);
  const Tensor targets = lengths({11, 4, 1}).to(Device::cpu);
  const Packing exact = Packing::of(targets, length), with_padding = Packing::of(targets, length, 20);
  const Device device = any_device();
  const DefaultDevice here(device);
  for (const char* attention : {"softmax", "linear", "window:left=3,right=3"}) {
    for (const std::vector<int32_t>& real : {std::vector<int32_t>{21, 5, 1}, {21, 21, 21}}) {
      CAPTURE(attention, real);
      Rng rng(4);
      TransformerConfig config = small_config();
      config.position = PositionKind::rope;
      const AttentionFactory cross = attention_factory(attention[0] == 'w' ? "softmax" : attention);
      EncoderDecoder model(config, vocabulary, vocabulary,
                           {attention_factory(attention), attention_factory(attention), cross}, rng);
      for (const Packing& decoded : {exact, with_padding}) {
        ForwardContext tabled{.packing_table = packing_table(real, longest, 8)};
        tabled.target_packing_table = Packing::of(targets, length, decoded.num_tokens()).table().to(device);
        const Tensor places = decoded.places.places.to(device);
        // Logits of padding mean nothing.
        const Tensor kept = tokens_of(decoded).to(device);
        check_packed(model, tabled, [&](const EncoderDecoder& translator, const ForwardContext& context) {
          const Tensor source = view::slice(some_ids(), 0, 0, 3);
          const Tensor encoded = translator.encode(source, lengths(real), context);
          return translator.logits(
                     translator.decode_at(ids(values, 3), encoded, lengths(real), places, context)) *
                 kept;
        });
      }
    }
  }
}

TEST_CASE("packed models: documents in one row are as if each were alone") {
  for (const char* attention : {"softmax", "linear", "gla", "window:left=2,right=0"}) {
    CAPTURE(attention);
    Rng rng(6);
    TransformerConfig config = small_config();
    config.position = PositionKind::learned;
    DecoderOnly model(config, vocabulary, attention_factory(attention), rng);
    convert(model, DType::f64);
    const Tensor text = ids({1, 4, 2, 7, 5, 3, 3, 1, 8, 0, 6, 2}, 1);
    const Tensor logits = model.documents(text, lengths({5, 1, 6}), {});
    // A table for documents of up to max_length tokens, some of them empty, gives the same.
    const std::vector<int32_t> with_empty = {5, 0, 1, 6, 0};
    const ForwardContext tabled{.packing_table = packing_table(with_empty, config.max_length)};
    CHECK(apart(model.documents(text, lengths(with_empty), tabled).detach(), logits.detach()) < 1e-11);
    int64_t first = 0;
    for (const int64_t length : {5, 1, 6}) {
      const Tensor alone = model(view::slice(text, 1, first, first + length), {});
      CHECK(apart(view::slice(logits.detach(), 1, first, first + length), alone.detach()) < 1e-11);
      first += length;
    }
    CHECK_THROWS_WITH(model.documents(text, lengths({5, -1, 8}), {}), Catch::Contains("at least 1"));
    CHECK_THROWS_WITH(model.documents(text, lengths({5, 1}), {}),
                      Catch::Contains("[1, 12]") && Catch::Contains("6 tokens"));
  }
}

TEST_CASE("packed models: a table is read without a look at its numbers, and refused in another shape") {
  const Packing packing = Packing::of(lengths({3, 0, 1}), 4, 9);
  const Packing read = Packing::of_table(packing.table(), 3, 4);
  CHECK(read.num_tokens() == 9);
  CHECK(read.sequences.starts.to_doubles() == std::vector<double>{0, 3, 5, 9});
  CHECK(read.sections.to_doubles() == std::vector<double>{0, 3, 3, 3, 5, 6, 9});
  CHECK(read.last_rows.to_doubles() == std::vector<double>{2, -1, 5});
  CHECK(read.places.places.to_doubles() == std::vector<double>{0, 1, 2, 4, 5, 8, 9, 10, 11});
  CHECK(read.positions.to_doubles() == std::vector<double>{0, 1, 2, 0, 1, 0, 1, 2, 3});
  CHECK(packing_table({3, 0, 1}, 4, 3).size() == packing_table({3, 0, 1}, 4, 6).size());
  CHECK_THROWS_WITH(Packing::of_table(packing.table(), 2, 4), Catch::Contains("5 B + 2 + 2 N"));
  CHECK_THROWS_WITH(Packing::of(lengths({3, 0, 1}), 4, 13), Catch::Contains("13 rows for 4 tokens"));
  CHECK_THROWS_WITH(Packing::of(lengths({3, 0, 1}), 4, 3), Catch::Contains("3 rows for 4 tokens"));
}

TEST_CASE("packed models: only the first places of each sequence, in order, are a packing") {
  CHECK(Packing::of_places(lengths({0, 1, 2, 5, 6}), 2, 5)->num_tokens() == 5);
  for (const std::vector<int32_t>& places :
       {std::vector<int32_t>{0, 2}, {1}, {5, 0}, {0, 0}, {0, 10}, {-1, 0}}) {
    CAPTURE(places);
    CHECK(Packing::of_places(lengths(places), 2, 5) == nullptr);
  }
}

TEST_CASE("packed models: no operation is spent on padding") {
  const auto operations = [](const Classifier& model, const Tensor& tokens, const Tensor& real) {
    Rng rng(5);
    Count::reset();
    backward(sum(model(tokens, real, {.rng = &rng})));
    return Count::flops().load();
  };
  // Multiples of 16 tokens, since attention computes groups of 16 queries.
  constexpr int64_t padded_length = 64;
  for (const char* attention : {"softmax", "linear", "fastmax:p=1"}) {
    CAPTURE(attention);
    Rng rng(1);
    TransformerConfig config = small_config();
    config.max_length = padded_length;
    const Classifier model(config, {.vocabulary = vocabulary}, attention_factory(attention), rng);
    const Tensor tokens = Tensor::full(Shape{3, padded_length}, 2, DType::i32);
    const int64_t full = operations(model, tokens, lengths({64, 64, 64}));
    const int64_t packed = operations(model, tokens, lengths({64, 16, 32}));
    int64_t alone = 0;
    for (const int64_t length : {64, 16, 32})
      alone += operations(model, Tensor::full(Shape{1, length}, 2, DType::i32), {});
    CAPTURE(full, packed, alone);
    // Sums over parameters and the classifying layer take a few operations more a call.
    CHECK(std::abs(static_cast<double>(packed - alone)) < 0.01 * static_cast<double>(alone));
    CHECK(static_cast<double>(packed) < 0.6 * static_cast<double>(full));
  }
}

}  // namespace heed
