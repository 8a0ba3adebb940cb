// Tokenizers of a tokenizer.json with a model Unigram or WordLevel: ids, steps before and behind, files that
// do not fit.
#include "heed/data/tokenizers/json_tokenizer.h"

#include <functional>

#include "heed/core/io/json.h"
#include "heed/data/tokenizers/text_steps.h"
#include "heed/data/tokenizers/tokenizer_json.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/tests/data/scratch.h"

namespace heed {
namespace {

using Ids = std::vector<int32_t>;
using Change = std::function<void(Json& json, Json& model)>;

/// A tokenizer.json of few pieces with a model Unigram, with this change.
Json unigram_json(const Change& change = [](Json&, Json&) {}) {
  Json json = parse_json(
      R"({"added_tokens": [{"id": 0, "content": "<unk>", "special": true},
            {"id": 1, "content": "<s>", "special": true},
            {"id": 2, "content": "</s>", "special": true}, {"id": 12, "content": "<pad>", "special": true}],
          "normalizer": null, "post_processor": null,
          "pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"},
          "decoder": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"}})",
      "small");
  Json model = parse_json(
      R"({"type": "Unigram", "unk_id": 0, "byte_fallback": false,
          "vocab": [["<unk>", 0], ["<s>", 0], ["</s>", 0], ["_", -2], ["a", -3], ["b", -3], ["ab", -5],
                    ["_a", -4.5], ["ba", -5.5], ["\u00e8", -4], ["<0xC3>", -9], ["<0xA9>", -9]]})",
      "model");
  change(json, model);
  return json.set("model", std::move(model));
}

/// A tokenizer.json of few words with a model WordLevel, with this change.
Json words_json(const Change& change = [](Json&, Json&) {}) {
  Json json = parse_json(
      R"({"added_tokens": [{"id": 4, "content": "[EOS]", "special": true}],
          "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"}})",
      "words");
  Json model = parse_json(
      R"({"type": "WordLevel", "unk_token": "?", "vocab": {"a": 0, "?": 1, "b_1": 2, "...": 3}})", "model");
  change(json, model);
  return json.set("model", std::move(model));
}

std::unique_ptr<Tokenizer> tokenizer_of(const Json& json) { return make_json_tokenizer(json, "small.json"); }

/// The tokenizer of unigram_json() with these normalizers and this pre-tokenizer, in JSON.
std::unique_ptr<Tokenizer> with_steps(const char* normalizer, const char* pre_tokenizer) {
  return tokenizer_of(unigram_json([&](Json& json, Json&) {
    json.set("normalizer", parse_json(normalizer, "normalizer"));
    json.set("pre_tokenizer", parse_json(pre_tokenizer, "pre_tokenizer"));
  }));
}

/// The words that these steps make of a text, as text of pieces.
std::string words_of(const char* normalizer, const char* pre_tokenizer, std::string_view text) {
  const Json json = unigram_json([&](Json& all, Json&) {
    all.set("normalizer", parse_json(normalizer, "normalizer"));
    all.set("pre_tokenizer", parse_json(pre_tokenizer, "pre_tokenizer"));
  });
  const detail::TokenizerJsonReader file(json, "steps.json", "");
  std::string out;
  for (const std::string& word : TextSteps(file).words(text, true)) out += "[" + word + "]";
  return out;
}

}  // namespace

TEST_CASE("unigram: the pieces with the highest sum of scores") {
  const auto tokenizer = tokenizer_of(unigram_json());
  CHECK(tokenizer->kind() == "tokenizer_json");
  CHECK(tokenizer->size() == 13);
  CHECK(tokenizer->encode("ab") == Ids{3, 6});  // _ ab: -7; _a b: -7.5
  CHECK(tokenizer->encode("a b") == Ids{7, 3, 5});
  CHECK(tokenizer->encode("ba") == Ids{3, 8});
  CHECK(tokenizer->encode("\u00e8xyb") == Ids{3, 9, 0, 5});  // x and y are one unknown part
  CHECK(tokenizer->encode("").empty());
  CHECK(tokenizer->encode("\xFF") == Ids{3, 0});
  // Two ways have the same sum: the one whose last piece begins first is taken.
  const auto even = tokenizer_of(unigram_json([](Json&, Json& model) {
    model.set(
        "vocab",
        parse_json(R"([["<unk>", 0], ["<s>", 0], ["</s>", 0], ["_", -1], ["a", -2], ["_a", -3], ["b", 0],
                                     ["c", 0], ["d", 0], ["e", 0], ["f", 0], ["g", 0]])",
                   "vocab"));
  }));
  CHECK(even->encode("a") == Ids{5});
}

TEST_CASE("unigram: added tokens are found in texts, of several the longest, and are left out of texts") {
  const auto tokenizer = tokenizer_of(unigram_json([](Json& json, Json&) {
    Json added = json.at("added_tokens");
    json.set("added_tokens", added.push(parse_json(R"({"id": 13, "content": "<s>a"})", "added")));
  }));
  CHECK(tokenizer->encode("a<s>b</s>") == Ids{7, 1, 3, 5, 2});
  CHECK(tokenizer->encode("<s>a") == Ids{13});
  CHECK(tokenizer->unknown() == 0);
  CHECK(tokenizer->start() == 1);
  CHECK(tokenizer->end() == 2);
  CHECK(tokenizer->pad() == 12);
  CHECK(special_added_ids(*tokenizer) == Ids{0, 1, 2, 12});
  CHECK(fault_of([] { special_added_ids(*make_byte_tokenizer()); }) == Fault::usage);
  CHECK(tokenizer->decode(Ids{1, 7, 3, 5, 12, 13, 2}) == "a b<s>a");  // 13 is not special
  CHECK(fault_of([&] { tokenizer->decode(Ids{14}); }) == Fault::usage);
}

TEST_CASE("unigram: unknown characters are bytes where all of them have pieces") {
  const auto bytes = tokenizer_of(unigram_json([](Json& json, Json& model) {
    model.set("byte_fallback", true);
    json.set("decoder", parse_json(R"({"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "_"}, "content": " "}, {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})",
                                   "decoder"));
  }));
  CHECK(bytes->encode("\u00e9") == Ids{3, 10, 11});
  CHECK(bytes->encode("\u00e0") == Ids{3, 0});        // its second byte has no piece
  CHECK(bytes->encode("\u00e9\u00e0") == Ids{3, 0});  // both are one part
  CHECK(bytes->encode("\u00e9 a") == Ids{3, 10, 11, 7});
  CHECK(bytes->decode(Ids{3, 10, 11, 7}) == "\u00e9 a");
  const auto none = tokenizer_of(unigram_json([](Json&, Json& model) { model.set("unk_id", Json()); }));
  CHECK(none->unknown() == -1);
  CHECK_THAT(refusal(Fault::usage, [&] { none->encode("ax"); }), containing("'x' is not among the pieces"));
}

TEST_CASE("tokenizer.json steps: normalizers") {
  const char* whole =
      R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never", "split": false})";
  const auto normalized = [&](const char* step, std::string_view text) {
    return words_of(step, whole, text);
  };
  CHECK(normalized(R"({"type": "NFC"})", "e\u0301") == "[\u00e9]");
  CHECK(normalized(R"({"type": "NFD"})", "\u00e9") == "[e\u0301]");
  CHECK(normalized(R"({"type": "NFKC"})", "\ufb01\u2460\u33a1") == "[fi1m2]");
  CHECK(normalized(R"({"type": "NFKD"})", "\u1e9b\u0323") == "[s\u0323\u0307]");
  // Unicode 12 gave U+32FF its meaning, and Unicode 13 the mark U+1AC1 its class: the tables there are older.
  CHECK(normalized(R"({"type": "NFKC"})", "\u32ff") == "[\u32ff]");
  CHECK(normalized(R"({"type": "NFD"})", "a\u0301\u1ac1\u0316") == "[a\u0301\u1ac1\u0316]");
  CHECK(normalized(R"({"type": "NFD"})", "a\u0301\u0316") == "[a\u0316\u0301]");
  CHECK(normalized(R"({"type": "Lowercase"})", "A\u00c9\u0130\U00010d50\ua7cb") ==
        "[a\u00e9i\u0307\U00010d70\u0264]");
  CHECK(normalized(R"({"type": "Strip"})", " \u3000a b\n ") == "[a_b]");
  CHECK(normalized(R"({"type": "Strip", "strip_left": false, "strip_right": true})", " a ") == "[_a]");
  CHECK(normalized(R"({"type": "Strip", "strip_left": false, "strip_right": true})", "  ").empty());
  CHECK(normalized(R"({"type": "Prepend", "prepend": "x"})", "a") == "[xa]");
  CHECK(normalized(R"({"type": "Replace", "pattern": {"String": "aa"}, "content": "b"})", "aaaab") ==
        "[bbb]");
  CHECK(normalized(R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "-"})", "a   b c  ") ==
        "[a-b_c-]");
  CHECK(normalized(R"({"type": "BertNormalizer"})", "\u00c9\x01z") == "[ez]");
  CHECK(normalized(R"({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}]})",
                   "\u00c9") == "[e\u0301]");
}

TEST_CASE("tokenizer.json steps: pre-tokenizers") {
  const auto cut = [](const char* step, std::string_view text) { return words_of("null", step, text); };
  CHECK(cut(R"({"type": "Metaspace", "replacement": "_"})", "a  b_c ") == "[_a][_][_b][_c][_]");
  CHECK(cut(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"})", "_a b") == "[_a][_b]");
  CHECK(cut(R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": true, "str_rep": "_"})", "a") ==
        "[_a]");
  CHECK(cut(R"({"type": "WhitespaceSplit"})", " a,b\u2028c") == "[a,b][c]");
  CHECK(cut(R"({"type": "Whitespace"})", "a_1,.b \U00010d40") == "[a_1][,.][b][\U00010d40]");
  CHECK(cut(R"({"type": "BertPreTokenizer"})", "a_1,.b") == "[a][_][1][,][.][b]");
  CHECK(cut(R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
                {"type": "Metaspace", "replacement": "_"}]})",
            " a b") == "[_a][_b]");
  CHECK(cut("null", " a b") == "[ a b]");
}

TEST_CASE("tokenizer.json steps: a decoder Metaspace whose replacement is a blank ends") {
  const auto tokenizer = tokenizer_of(unigram_json([](Json& json, Json&) {
    Json added = json.at("added_tokens");
    json.set("added_tokens", added.push(parse_json(R"({"id": 13, "content": " b "})", "added")));
    json.set("decoder", parse_json(R"({"type": "Metaspace", "replacement": " "})", "decoder"));
  }));
  CHECK(tokenizer->decode(Ids{13, 4, 13}) == "ba b ");
}

TEST_CASE(
    "tokenizer.json steps: what they make of a text is bounded, and the step that makes more is named") {
  const std::string longest(256, 'x');
  const Json replace = Json::object(
                 {{"type", "Replace"}, {"pattern", Json::object({{"String", "x"}})}, {"content", longest}}),
             prepend = Json::object({{"type", "Prepend"}, {"prepend", longest}});
  const auto tokenizer = [&](const char* key, const char* list, const Json& first, const Json& second) {
    return tokenizer_of(unigram_json([&](Json& json, Json&) {
      json.set(key, Json::object({{"type", "Sequence"}, {list, Json::List{first, second}}}));
    }));
  };
  const auto grows = [&](const std::string& step, int64_t before, int64_t bytes,
                         const std::function<void()>& use) {
    CHECK_THAT(refusal(Fault::data, use),
               containing(text("the ", step, " makes ", bytes, " bytes of a text of ", before, ", and")));
  };
  CHECK_NOTHROW(tokenizer("normalizer", "normalizers", prepend, prepend)->encode("x"));
  grows("normalizer Replace", 1, 257 * 256,
        [&] { tokenizer("normalizer", "normalizers", prepend, replace)->encode("x"); });
  grows("decoder Replace", 2, 2 * 256 * 256, [&] {
    const Json from_a = Json(replace).set("pattern", Json::object({{"String", "a"}}));
    tokenizer("decoder", "decoders", from_a, replace)->decode(Ids{4, 4});
  });
}

TEST_CASE("tokenizer.json steps: prepend_scheme first marks the part that begins the text") {
  const char* first = R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"})";
  const auto tokenizer = with_steps(R"({"type": "NFKC"})", first);
  CHECK(tokenizer->encode("a<s>a") == Ids{7, 1, 4});
  const auto refused = [&](const char* normalizer, const char* pre_tokenizer) {
    CAPTURE(normalizer, pre_tokenizer);
    CHECK_THROWS_WITH(
        with_steps(normalizer, pre_tokenizer),
        containing("prepend_scheme = first behind a step that may leave out the first character"));
  };
  refused(R"({"type": "Strip"})", first);
  refused(R"({"type": "BertNormalizer"})", first);
  refused(R"({"type": "Replace", "pattern": {"String": "a"}, "content": ""})", first);
  refused(R"({"type": "Replace", "pattern": {"String": "ab"}, "content": "b"})", first);
  refused(
      R"({"type": "Sequence", "normalizers": [
              {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "_"},
              {"type": "NFC"}]})",
      first);
  CHECK_NOTHROW(with_steps(R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "_"})", first));
  refused("null", R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
                       {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}]})");
}

TEST_CASE("tokenizer.json: words of a model WordLevel") {
  const auto tokenizer = tokenizer_of(words_json());
  CHECK(tokenizer->encode("A B_1 c[EOS]...") == Ids{0, 2, 1, 4, 3});
  CHECK(tokenizer->decode(Ids{0, 2, 4}) == "a b_1");
  CHECK(tokenizer->end() == 4);
  const auto none = tokenizer_of(words_json([](Json&, Json& model) { model.set("unk_token", "[UNK]"); }));
  CHECK_THAT(refusal(Fault::usage, [&] { none->encode("a c"); }), containing("the word 'c' has no id"));
}

TEST_CASE("tokenizer.json: what was read is written and saved as the same tokenizer") {
  const Scratch scratch;
  for (const Json& json : {unigram_json(), words_json()}) {
    const auto read = read_tokenizer_json(scratch.file("tokenizer.json", json.dump()));
    const std::string saved = read->save();
    CHECK(load_tokenizer("tokenizer_json", saved)->save() == saved);
    const auto again = read_tokenizer_json(scratch.file("again.json", tokenizer_json(*read)));
    CHECK(again->save() == saved);
    CHECK(again->encode("a b_1<s> \u00e8c") == read->encode("a b_1<s> \u00e8c"));
    std::string damaged = saved;
    damaged[damaged.size() - 3] ^= 1;
    CHECK_THROWS_WITH(load_tokenizer("tokenizer_json", damaged, "saved"),
                      containing("do not match their SHA-256"));
  }
  CHECK(fault_of([] { json_of_tokenizer(*make_byte_tokenizer()); }) == Fault::usage);
}

TEST_CASE("tokenizer.json: a template may put one token before each text") {
  const auto with_template = [](const char* parts) {
    return tokenizer_of(unigram_json([&](Json& json, Json&) {
      json.set("post_processor",
               Json::object({{"type", "TemplateProcessing"}, {"single", parse_json(parts, "parts")}}));
    }));
  };
  CHECK(with_template(R"([{"Sequence": {"id": "A"}}])")->document_start() == -1);
  CHECK(with_template(R"([{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}])")->document_start() ==
        1);
  CHECK_THROWS_WITH(with_template(R"([{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "</s>"}}])"),
                    containing("other than one before it"));
  CHECK_THROWS_WITH(with_template(R"([{"SpecialToken": {"id": "<x>"}}, {"Sequence": {"id": "A"}}])"),
                    containing("its vocabulary lacks <x>"));
}

TEST_CASE("tokenizer.json: what does not fit is refused by its name") {
  const auto refused = [](const std::string& reason, const Json& json) {
    INFO(reason);
    CHECK_THAT(refusal(Fault::data, [&] { tokenizer_of(json); }),
               containing("small.json: ") && containing(reason) && containing(" Give "));
  };
  const auto unigram = [&](const std::string& reason, const Change& change) {
    refused(reason, unigram_json(change));
  };
  const auto step = [&](const std::string& reason, const char* key, const char* json) {
    unigram(reason, [&](Json& all, Json&) { all.set(key, parse_json(json, "step")); });
  };
  unigram("not of the type Unigram or WordLevel", [](Json&, Json& model) { model.set("type", "BPE"); });
  unigram("no vocab", [](Json&, Json& model) { model.set("vocab", Json::List()); });
  unigram("piece 0 is no pair", [](Json&, Json& model) { model.set("vocab", Json::List{"a"}); });
  unigram("piece 0 is empty",
          [](Json&, Json& model) { model.set("vocab", parse_json(R"([["", 1]])", "v")); });
  unigram("the piece a has two ids",
          [](Json&, Json& model) { model.set("vocab", parse_json(R"([["a", 1], ["a", 2]])", "v")); });
  unigram("unk_id is 12, and ids are 0 to 11", [](Json&, Json& model) { model.set("unk_id", 12); });
  unigram("byte_fallback is 3", [](Json&, Json& model) { model.set("byte_fallback", 3); });
  unigram("the added token <unk> has lstrip = true", [](Json& json, Json&) {
    json.set("added_tokens", Json::List{parse_json(R"({"id": 0, "content": "<unk>", "lstrip": true})", "a")});
  });
  step("the normalizer {\"type\": \"Nmt\"} is not one", "normalizer", R"({"type": "Nmt"})");
  step("the normalizer {\"type\": \"StripAccents\"} is not one", "normalizer", R"({"type": "StripAccents"})");
  step("the normalizer ", "normalizer", R"({"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""})");
  step("a Replace has no content", "normalizer", R"({"type": "Replace", "pattern": {"String": "a"}})");
  step("precompiled_charsmap is no base64", "normalizer",
       R"({"type": "Precompiled", "precompiled_charsmap": "?"})");
  step("precompiled_charsmap is damaged: at byte 0 is a table that is cut short", "normalizer",
       R"({"type": "Precompiled", "precompiled_charsmap": "AAAA"})");
  const std::string more(257, 'x');
  const auto long_step = [&](const std::string& reason, const char* key, const Json& json) {
    unigram(reason, [&](Json& all, Json&) { all.set(key, json); });
  };
  const Json long_replace =
      Json::object({{"type", "Replace"}, {"pattern", Json::object({{"String", "a"}})}, {"content", more}});
  for (const char* key : {"normalizer", "decoder"})
    long_step("the content of a Replace has 257 bytes, and at most 256 are legal", key, long_replace);
  long_step("the text of a Prepend has 257 bytes, and at most 256 are legal", "normalizer",
            Json::object({{"type", "Prepend"}, {"prepend", more}}));
  step("a Sequence has no normalizers", "normalizer", R"({"type": "Sequence"})");
  step("the pre_tokenizer {\"type\": \"ByteLevel\"} is not one", "pre_tokenizer", R"({"type": "ByteLevel"})");
  step("is not one character", "pre_tokenizer", R"({"type": "Metaspace", "replacement": "ab"})");
  step("prepend_scheme is last", "pre_tokenizer", R"({"type": "Metaspace", "prepend_scheme": "last"})");
  step("add_prefix_space does not match", "pre_tokenizer",
       R"({"type": "Metaspace", "add_prefix_space": false})");
  step("the decoder {\"type\": \"WordPiece\"} is not one", "decoder", R"({"type": "WordPiece"})");
  step("start of the decoder Strip", "decoder",
       R"({"type": "Strip", "content": " ", "start": -1, "stop": 0})");
  refused("the id of 'a' is 7", words_json([](Json&, Json& model) {
            model.set("vocab", Json::object({{"a", 7}}));
          }));
}

}  // namespace heed
