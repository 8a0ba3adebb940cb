// Translating sentences: which tokens an output may hold.
#include "heed/train/decode/translator.h"

#include "heed/attention/variant.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("translator: the unknown token is generated where that is allowed, and left out of joined words") {
  const std::vector<std::string_view> sentences{"one two", "two one"};
  const auto natural =
                 make_word_tokenizer(Vocabulary::train(sentences, {.min_frequency = 1}), Joining::natural),
             joined =
                 make_word_tokenizer(Vocabulary::train(sentences, {.min_frequency = 1}), Joining::blanks);
  TransformerConfig config;
  config.d_model = 8;
  config.heads = 2;
  config.d_ff = 8;
  config.max_length = 12;
  config.dropout = 0;
  Rng rng(1);
  EncoderDecoder model(
      config, natural->size(), natural->size(),
      {attention_factory("softmax"), attention_factory("softmax"), attention_factory("softmax")}, rng);
  for (const Named& one : parameters(model)) {  // the unknown token scores highest, then the word "one"
    if (one.name != "output.bias") continue;
    std::vector<float> values(static_cast<size_t>(natural->size()), -1e3F);
    values[static_cast<size_t>(natural->unknown())] = 1e3F;
    values[static_cast<size_t>(natural->encode("one")[0])] = 1e2F;
    *one.tensor = leaf(Tensor::of<float>(values, Shape{natural->size()}));
  }
  const auto translated = [&](const Tokenizer& target, bool allowed) {
    return translate_all(model, {"two"}, *natural, target, config.max_length,
                         {.max_extra_tokens = 1, .allow_unknown = allowed})[0];
  };
  CHECK(translated(*natural, false) == "one one one one");
  CHECK_THAT(translated(*natural, true), containing("[UNK] [UNK]") && !containing("one"));
  CHECK(translated(*joined, true).empty());
  CHECK(translate_all(model, {"two"}, *natural, *natural, config.max_length,
                      {.beam_size = 2, .max_extra_tokens = 1, .allow_unknown = false})[0] ==
        "one one one one");
}
