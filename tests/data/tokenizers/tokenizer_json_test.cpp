// tokenizer.json: byte pairs written and read, and every file that is none of them.
#include "heed/data/tokenizers/tokenizer_json.h"

#include <functional>

#include "heed/core/io/json.h"
#include "heed/data/synthetic/language_model_text.h"
#include "heed/data/tokenizers/byte_pair.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/tests/data/scratch.h"

namespace heed {
namespace {

/// Byte pairs of verse whose words are cut in this way.
std::unique_ptr<Tokenizer> pairs_of_verse(PreTokenizer pre_tokenizer) {
  const BytePairLists lists = byte_pair_lists(*train_byte_pair(verse(20000, 1), {.size = 300}));
  return byte_pair_of(lists.tokens, lists.merges, pre_tokenizer, "verse");
}

std::unique_ptr<Tokenizer> tokenizer_of_json(const std::string& bytes) {
  const Scratch scratch;
  return read_tokenizer_json(scratch.file("tokenizer.json", bytes));
}

/// A tokenizer.json of few tokens, as Hugging Face's tokenizers write it, with this change.
std::string small_json(const std::function<void(Json& json, Json& model)>& change) {
  Json vocabulary = Json::object({{"a", 0}, {"b", 1}, {"ab", 2}, {"1", 3}});
  Json model =
      Json::object({{"type", "BPE"}, {"vocab", std::move(vocabulary)}, {"merges", Json::List{"a b"}}});
  Json words = parse_json(
      R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
          {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]})",
      "words");
  Json json = Json::object({{"version", "1.0"},
                            {"added_tokens", Json::List()},
                            {"normalizer", Json()},
                            {"pre_tokenizer", std::move(words)},
                            {"post_processor", Json()}});
  change(json, model);
  return json.set("model", std::move(model)).dump();
}

Json added_token(const char* content, int64_t id, bool is_special) {
  return Json::object({{"id", id}, {"content", content}, {"special", is_special}});
}

}  // namespace

TEST_CASE("tokenizer.json: byte pairs that were written and read are the same, for both cuts of words") {
  for (const PreTokenizer kind : {PreTokenizer::gpt2, PreTokenizer::individual_digits}) {
    const auto written = pairs_of_verse(kind);
    REQUIRE(written->end() >= 0);
    const std::string bytes = tokenizer_json(*written);
    const auto read = tokenizer_of_json(bytes);
    CHECK(read->save() == written->save());
    CHECK(read->end() == written->end());
    CHECK(read->encode("the moon in 2026\n") == written->encode("the moon in 2026\n"));
    const Json json = parse_json(bytes, "tokenizer.json");
    REQUIRE(json.at("added_tokens").list().size() == 1);
    CHECK(json.at("added_tokens").list()[0].at("content").text() == end_of_text);
    CHECK(json.at("added_tokens").list()[0].at("id").integer() == written->end());
  }
  CHECK(fault_of([] { tokenizer_json(*make_byte_tokenizer()); }) == Fault::usage);
}

TEST_CASE("tokenizer.json: merges are texts or lists of two") {
  const auto texts = tokenizer_of_json(small_json([](Json&, Json&) {}));
  const auto lists = tokenizer_of_json(small_json([](Json&, Json& model) {
    model.set("merges", Json::List{Json(Json::List{"a", "b"})});
  }));
  CHECK(texts->encode("abba") == std::vector<int32_t>{2, 1, 0});
  CHECK(lists->save() == texts->save());
}

TEST_CASE("tokenizer.json: special tokens may be in the vocabulary, or be added behind it") {
  const auto added = tokenizer_of_json(small_json([](Json& json, Json&) {
    json.set("added_tokens", Json::List{added_token("<|endoftext|>", 4, true)});
  }));
  CHECK(added->size() == 5);
  CHECK(added->end() == 4);
  const auto known = tokenizer_of_json(small_json([](Json& json, Json& model) {
    model.set("vocab", Json(model.at("vocab")).set("<|endoftext|>", 4));
    json.set("added_tokens", Json::List{added_token("<|endoftext|>", 4, true)});
  }));
  CHECK(known->save() == added->save());
}

TEST_CASE("tokenizer.json: a template of the text alone is read, and one that begins texts is refused") {
  const auto with_template = [](const char* parts) {
    return small_json([&](Json& json, Json&) {
      Json processor = Json::object({{"type", "TemplateProcessing"}, {"single", parse_json(parts, "parts")}});
      json.set("post_processor", std::move(processor));
    });
  };
  const char* text_alone = R"([{"Sequence": {"id": "A", "type_id": 0}}])";
  CHECK(tokenizer_of_json(with_template(text_alone))->size() == 4);
  const char* begun =
      R"([{"SpecialToken": {"id": "a", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}])";
  CHECK_THROWS_WITH(tokenizer_of_json(with_template(begun)),
                    containing("its post_processor adds tokens to each text"));
}

TEST_CASE("tokenizer.json: what is no byte pairs is refused by its reason") {
  const Scratch scratch;
  const auto refused = [&](const std::string& reason,
                           const std::function<void(Json & json, Json & model)>& change) {
    INFO(reason);
    const Path file = scratch.file("tokenizer.json", small_json(change));
    CHECK_THAT(refusal(Fault::data, [&] { read_tokenizer_json(file); }),
               containing("tokenizer.json: ") && containing(reason) && containing(" Give "));
  };
  const Json bytes = Json::object({{"type", "ByteLevel"}, {"add_prefix_space", true}});
  refused("not of the type BPE", [](Json&, Json& model) { model.set("type", "WordPiece"); });
  refused("byte_fallback is set", [](Json&, Json& model) { model.set("byte_fallback", true); });
  refused("ignore_merges is set", [](Json&, Json& model) { model.set("ignore_merges", true); });
  CHECK_NOTHROW(tokenizer_of_json(small_json([](Json&, Json& model) { model.set("dropout", 0.0); })));
  refused("dropped at random", [](Json&, Json& model) { model.set("dropout", 0.1); });
  refused("end_of_word_suffix is set", [](Json&, Json& model) { model.set("end_of_word_suffix", "</w>"); });
  refused("continuing_subword_prefix is set",
          [](Json&, Json& model) { model.set("continuing_subword_prefix", "##"); });
  refused("no vocab", [](Json&, Json& model) { model.set("vocab", Json()); });
  refused("no merges", [](Json&, Json& model) { model.set("merges", Json()); });
  refused("merge 0 is no pair", [](Json&, Json& model) { model.set("merges", Json::List{7}); });
  refused("merge 0: ", [](Json&, Json& model) { model.set("merges", Json::List{"a z"}); });
  refused("the id of ", [](Json&, Json& model) { model.set("vocab", Json::object({{"a", 1}})); });
  refused("it has a normalizer", [](Json& json, Json&) {
    json.set("normalizer", Json::object({{"type", "NFC"}}));
  });
  refused("its post_processor adds tokens", [](Json& json, Json&) {
    json.set("post_processor", Json::object({{"type", "TemplateProcessing"}}));
  });
  refused("its pre_tokenizer is null", [](Json& json, Json&) { json.set("pre_tokenizer", Json()); });
  refused("its pre_tokenizer is {\"type\": \"ByteLevel\"",
          [&](Json& json, Json&) { json.set("pre_tokenizer", bytes); });
  refused("no token is the byte", [&](Json& json, Json&) {  // as in GPT-2, where every byte has a token
    json.set("pre_tokenizer", Json(bytes).set("add_prefix_space", false));
  });
  refused("added_tokens is no list", [](Json& json, Json&) { json.set("added_tokens", 3); });
  refused("has no content or id", [](Json& json, Json&) {
    json.set("added_tokens", Json::List{Json::object({{"id", 4}})});
  });
  refused("the added token 'ba' is not special",
          [](Json& json, Json&) { json.set("added_tokens", Json::List{added_token("ba", 4, false)}); });
  refused("the added token 'ab' has two ids",
          [](Json& json, Json&) { json.set("added_tokens", Json::List{added_token("ab", 4, true)}); });
  refused("the id of '<pad>' is 9",
          [](Json& json, Json&) { json.set("added_tokens", Json::List{added_token("<pad>", 9, true)}); });
  CHECK_THROWS_WITH(read_tokenizer_json(scratch.file("tokenizer.json", "[1]")),
                    containing("it is no object"));
}

}  // namespace heed
