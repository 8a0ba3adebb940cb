// Tests check_decoding() on models that decode as they should, and on models that forget a part of their
// state.
#include "heed/train/decode/check_decoding.h"

#include "heed/tests/catch.h"
#include "heed/tests/train/decode/own_model.h"

namespace heed {
namespace {

constexpr int64_t num_tokens = 11;

/// A model of its own that forgets a part of its state between two steps.
struct Forgetful final : AutoregressiveModel {
  enum class Part { nothing, length, cache, tensor };
  explicit Forgetful(Part part)
      : rng(3), model(num_tokens, 9, attention_factory("softmax"), rng), forgets(part) {}
  Tensor next(const Tensor& ids, Decoding& state) const override {
    const int64_t length = state.length;
    Tensor logits = model.next(ids, state);
    if (forgets == Part::length) state.length = length;
    if (forgets == Part::cache) state.cache[0].self = model.attention->new_cache();
    if (forgets == Part::tensor) state.tensors[0] = Tensor();
    return logits;
  }
  Decoding start() const override { return model.start(); }
  int64_t max_length() const override { return model.max_length(); }
  void fields(Fields& f) override { f("model", model); }
  Rng rng;
  OwnModel model;
  Part forgets;
};

}  // namespace

TEST_CASE("check decoding: models that keep their state pass, a translator with its own start, too") {
  CHECK_NOTHROW(check_decoding(Forgetful(Forgetful::Part::nothing), num_tokens));
  Rng rng(1);
  const TransformerConfig config{.d_model = 8, .heads = 2, .d_ff = 8, .max_length = 6, .dropout = 0};
  for (const char* spec : {"softmax", "linear", "gla"})
    CHECK_NOTHROW(check_decoding(DecoderOnly(config, num_tokens, attention_factory(spec), rng), num_tokens));
  const AttentionFactory softmax = attention_factory("softmax");
  const EncoderDecoder translator(config, num_tokens, num_tokens, {softmax, softmax, softmax}, rng);
  const NoGrad no_grad;
  const Tensor ids = Tensor::of<int32_t>(std::vector<int32_t>{1, 2, 3}, Shape{1, 3}),
               lengths = Tensor::of<int32_t>(std::vector<int32_t>{3}, Shape{1}),
               encoded = translator.encode(ids, lengths, {});
  CHECK_NOTHROW(check_decoding(translator, {4, 5, 6}, [&] { return translator.start(encoded, lengths); }));
}

TEST_CASE("check decoding: the first position that differs is named, and what was forgotten") {
  for (const auto part : {Forgetful::Part::length, Forgetful::Part::cache, Forgetful::Part::tensor}) {
    const Forgetful model(part);
    CHECK_THROWS_WITH(check_decoding(model, {1, 2, 3}),
                      containing("check_decoding: at position 1 ") && containing("state.cache as") &&
                          containing("that of the 2 tokens read at once. "));
    CHECK_THROWS_WITH(check_decoding(model, num_tokens), containing("at position 1 "));
  }
  CHECK_THROWS_WITH(check_decoding(Forgetful(Forgetful::Part::length), {1, 2, 3}),
                    containing("It left state.length at 0 after 2 tokens: next() adds ids.extent(1)"));
}

TEST_CASE("check decoding: ids that cannot show a difference are refused") {
  const Forgetful model(Forgetful::Part::nothing);
  CHECK_THROWS_WITH(check_decoding(model, std::vector<int32_t>{1}), containing("1 ids. Give at least 2"));
  CHECK_THROWS_WITH(check_decoding(model, std::vector<int32_t>(10, 1)), containing("the model reads 9"));
  CHECK_THROWS_WITH(check_decoding(model, 0), containing("vocabulary = 0. It must be at least 1."));
}

}  // namespace heed
