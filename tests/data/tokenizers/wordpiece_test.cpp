// WordPiece: normalisation, words, pieces, special tokens, and the files that it is read from.
#include "heed/data/tokenizers/wordpiece.h"

#include <functional>

#include "heed/data/tokenizers/vocabulary.h"
#include "heed/tests/data/scratch.h"

namespace heed {
namespace {

using Ids = std::vector<int32_t>;
using Words = std::vector<std::string_view>;

/// A tokenizer.json of few pieces, with this change.
Json small_wordpiece_json(const std::function<void(Json& json, Json& model)>& change = [](Json&, Json&) {}) {
  Json json = parse_json(
      R"({"added_tokens": [{"id": 0, "content": "[PAD]", "special": true}, {"id": 1, "content": "[UNK]"},
           {"id": 2, "content": "[CLS]"}, {"id": 3, "content": "[SEP]"}, {"id": 4, "content": "[MASK]"}],
          "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                         "strip_accents": null, "lowercase": true},
          "pre_tokenizer": {"type": "BertPreTokenizer"},
          "post_processor": {"type": "TemplateProcessing",
                             "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                                        {"Sequence": {"id": "A", "type_id": 0}},
                                        {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]}})",
      "small");
  Json model = parse_json(
      R"({"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
          "max_input_chars_per_word": 6,
          "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "un": 5, "##aff": 6, "##able": 7,
                    "##a": 8, "cafe": 9, "!": 10, "\u65e5": 11, "##\u00e8": 12, "a": 13, "Un": 14}})",
      "model");
  change(json, model);
  return json.set("model", std::move(model));
}

std::unique_ptr<Tokenizer> tokenizer_of(const Json& json) {
  return detail::wordpiece_of_json(json, "small.json");
}

}  // namespace

TEST_CASE("bert text: normalisation cleans, parts ideographs, strips accents and lowers letters") {
  CHECK(bert_normalized("A\u00c9\u0301\tb\u200b\u00a0\x01\u65e5\u304b", {}) == "ae b  \u65e5 \u304b");
  CHECK(bert_normalized("\xFF\uFFFD"
                        "a",
                        {}) == "a");
  const BertNormalizer cased{.strip_accents = false, .lower_case = false};
  CHECK(bert_normalized("\u00c9 A", cased) == "\u00c9 A");
  const BertNormalizer lower{.strip_accents = false};
  CHECK(bert_normalized("\u00c9\u0130", lower) == "\u00e9i\u0307");
  const BertNormalizer none{
      .clean_text = false, .space_ideographs = false, .strip_accents = false, .lower_case = false};
  CHECK(bert_normalized("\u65e5\t\u200b", none) == "\u65e5\t\u200b");
  // Characters that came after Unicode 7 count as letters, as in the tables of Hugging Face's tokenizers.
  CHECK(bert_normalized("a\u1ac0\u0300\u0890", {}) == "a\u1ac0\u0890");
}

TEST_CASE("bert text: words end at white space, and punctuation stands alone") {
  CHECK(bert_words("  don't, \u00bfno?\u00a0p+q_\u2028x ") ==
        Words{"don", "'", "t", ",", "\u00bf", "no", "?", "p", "+", "q", "_", "x"});
  CHECK(bert_words("a\u20acb \u2e43"
                   "c") == Words{"a\u20acb",
                                 "\u2e43"
                                 "c"});
  CHECK(bert_words("").empty());
}

TEST_CASE("wordpiece: the longest piece first, and words without pieces are unknown") {
  const auto tokenizer = tokenizer_of(small_wordpiece_json());
  CHECK(tokenizer->kind() == "wordpiece");
  CHECK(tokenizer->encode("unaff una") == Ids{5, 6, 5, 8});
  CHECK(tokenizer->encode("unable") == Ids{5, 7});  // six code points
  CHECK(tokenizer->encode("unaable") == Ids{1});    // seven
  CHECK(tokenizer->encode("unx a") == Ids{1, 13});  // no part of a word is kept
  CHECK(tokenizer->encode("Caf\u00e8!") == Ids{9, 10});
  CHECK(tokenizer->encode("a\u65e5"
                          "a") == Ids{13, 11, 13});
  CHECK(tokenizer->encode("##a") == Ids{1, 1, 13});  // the text's own ## is punctuation
  const auto cased = tokenizer_of(small_wordpiece_json([](Json& json, Json&) {
    json.set("normalizer", Json::object({{"type", "BertNormalizer"}, {"lowercase", false}}));
  }));
  CHECK(cased->encode("Un un\u00e8") == Ids{14, 5, 12});
}

TEST_CASE("wordpiece: special tokens are found in texts as they stand, the longest first") {
  const auto tokenizer = tokenizer_of(small_wordpiece_json([](Json& json, Json&) {
    Json added = json.at("added_tokens");
    added.push(Json::object({{"id", 15}, {"content", "[MASK]a"}}));
    added.push(Json::object({{"id", 16}, {"content", "extra"}}));
    json.set("added_tokens", std::move(added));
  }));
  CHECK(tokenizer->size() == 17);
  CHECK(tokenizer->encode("un[MASK]un [SEP]") == Ids{5, 4, 5, 3});
  CHECK(tokenizer->encode("[MASK]a[mask]") == Ids{15, 1, 1, 1});
  CHECK(tokenizer->encode("aextraa") == Ids{13, 16, 13});
  CHECK(tokenizer->encode("EXTRA") == Ids{1});  // words are not cut into tokens behind the vocabulary
  CHECK(tokenizer->special().mask == 4);
  CHECK(tokenizer->start() == 2);
  CHECK(tokenizer->end() == 3);
  CHECK(tokenizer->pad() == 0);
  CHECK(tokenizer->decode(Ids{2, 5, 7, 10, 4, 13, 3, 0}) == "unable! [MASK] a");
  CHECK_THROWS_WITH(tokenizer->piece(17), containing("no piece has the id 17; ids are 0 .. 16"));
}

TEST_CASE("wordpiece: saved, written as tokenizer.json and read again it is the same") {
  const auto tokenizer = tokenizer_of(small_wordpiece_json());
  std::string bytes = tokenizer->save();
  CHECK(load_tokenizer("wordpiece", bytes)->save() == bytes);
  CHECK(tokenizer_of(wordpiece_json(*tokenizer))->save() == bytes);
  CHECK(wordpiece_lists(*tokenizer).max_word == 6);
  bytes[bytes.size() / 2] ^= 1;
  CHECK_THROWS_WITH(load_tokenizer("wordpiece", bytes, "saved"), containing("do not match their SHA-256"));
  CHECK(fault_of([&] { load_tokenizer("wordpiece", bytes.substr(0, 50), "saved"); }) == Fault::data);
  CHECK(fault_of([] { wordpiece_json(*make_byte_tokenizer()); }) == Fault::usage);
}

TEST_CASE("wordpiece: vocab.txt with tokenizer_config.json says what a tokenizer.json does") {
  const Scratch scratch;
  CHECK(fault_of([&] { read_wordpiece(scratch.path()); }) == Fault::file);
  scratch.file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##able\nUn\n");
  CHECK(read_wordpiece(scratch.path())->encode("Unable [MASK]") == Ids{5, 6, 4});
  scratch.file("tokenizer_config.json", R"({"do_lower_case": false, "cls_token": {"content": "un"}})");
  const auto cased = read_wordpiece(scratch.path());
  CHECK(cased->encode("Unable") == Ids{7, 6});
  CHECK(cased->start() == 5);
  scratch.file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\nun\n");
  CHECK_THROWS_WITH(read_wordpiece(scratch.path()), containing("vocab.txt: the piece un has two ids"));
  scratch.file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\nun\n");
  CHECK_THROWS_WITH(read_wordpiece(scratch.path()), containing("its vocabulary lacks [SEP]"));
  scratch.file("tokenizer.json", small_wordpiece_json().dump());  // it comes first
  CHECK(read_wordpiece(scratch.path())->size() == 15);
}

TEST_CASE("wordpiece: a tokenizer.json of another kind is refused by file and member") {
  const auto refused = [](const std::string& reason,
                          const std::function<void(Json & json, Json & model)>& change) {
    INFO(reason);
    const Json json = small_wordpiece_json(change);
    CHECK_THAT(refusal(Fault::data, [&] { tokenizer_of(json); }),
               containing("small.json") && containing(reason));
  };
  refused("not of the type WordPiece", [](Json&, Json& model) { model.set("type", "Unigram"); });
  refused("max_input_chars_per_word", [](Json&, Json& model) { model.set("max_input_chars_per_word", 0); });
  refused("its vocabulary lacks <unk>", [](Json&, Json& model) { model.set("unk_token", "<unk>"); });
  refused("the id of 'a' is 5", [](Json&, Json& model) {
    model.set("vocab", Json::object({{"b", 0}, {"a", 5}}));
  });
  refused("pre_tokenizer is not BertPreTokenizer", [](Json& json, Json&) {
    json.set("pre_tokenizer", Json::object({{"type", "Whitespace"}}));
  });
  refused("normalizer is not BertNormalizer", [](Json& json, Json&) { json.set("normalizer", Json()); });
  refused("lowercase is 1", [](Json& json, Json&) {
    json.set("normalizer", Json::object({{"type", "BertNormalizer"}, {"lowercase", 1}}));
  });
  refused("post_processor does not put", [](Json& json, Json&) { json.set("post_processor", Json()); });
  refused("the added token x has lstrip = true", [](Json& json, Json&) {
    json.set("added_tokens", Json::List{Json::object({{"id", 15}, {"content", "x"}, {"lstrip", true}})});
  });
  refused("the added token x has the id 20 in place of 15", [](Json& json, Json&) {
    json.set("added_tokens", Json::List{Json::object({{"id", 20}, {"content", "x"}})});
  });
}

}  // namespace heed
