// The tokenizer interface: ids, text, labels, and saved bytes.
#include "heed/data/tokenizers/tokenizer.h"

#include "heed/data/tokenizers/vocabulary.h"
#include "heed/tests/data/scratch.h"

using namespace heed;

namespace {

using Ids = std::vector<int32_t>;

std::unique_ptr<Tokenizer> words(Joining joining = Joining::natural) {
  const std::vector<std::string_view> sentences = {"l'uomo , la casa .", "l'uomo , la casa ."};
  return make_word_tokenizer(Vocabulary::train(sentences), joining);
}

/// Every damaged form of the saved bytes is refused as bad data or gives a tokenizer that saves the same.
void check_damage(const Tokenizer& tokenizer, uint64_t tries) {
  const std::string saved = tokenizer.save();
  for (size_t cut = 0; cut < saved.size(); ++cut) {
    INFO("cut to " << cut << " bytes");
    CHECK_FALSE(accepted([&] { load_tokenizer(tokenizer.kind(), std::string_view(saved).substr(0, cut)); }));
  }
  for (uint64_t i = 0; i < tries; ++i) {
    const std::string bytes = damaged(saved, i);
    std::string again = bytes;
    accepted([&] { again = load_tokenizer(tokenizer.kind(), bytes)->save(); });
    CHECK(again == bytes);
  }
}

}  // namespace

TEST_CASE("tokenizer: words to ids and back") {
  const auto tokenizer = words();
  CHECK(tokenizer->kind() == "word");
  CHECK(tokenizer->size() == 11);
  const Ids ids = tokenizer->encode("la casa, l'uomo.");
  CHECK(tokenizer->decode(ids) == "la casa, l'uomo.");
  CHECK(tokenizer->piece(ids[0]) == "la");
  CHECK(tokenizer->piece(2) == "[SOS]");
  CHECK(tokenizer->encode("gatto") == Ids{tokenizer->unknown()});
  CHECK(tokenizer->encode("").empty());
  CHECK(tokenizer->decode(Ids{}).empty());
  refusal(Fault::usage, [&] { tokenizer->decode(Ids{99}); });
  refusal(Fault::usage, [&] { tokenizer->piece(-1); });
}

TEST_CASE("tokenizer: pad, start and end leave no trace in text, unknown words do") {
  const auto tokenizer = words();
  Ids ids = {tokenizer->start()};
  for (const int32_t id : tokenizer->encode("la gatto.")) ids.push_back(id);
  ids.push_back(tokenizer->end());
  ids.push_back(tokenizer->pad());
  CHECK(tokenizer->decode(ids) == "la [UNK].");
  CHECK(words(Joining::blanks)->decode(ids) == "la .");
}

TEST_CASE("tokenizer: words joined by blanks, as the hkproj recipe compares them") {
  const auto tokenizer = words(Joining::blanks);
  CHECK(tokenizer->decode(tokenizer->encode("la casa, l'uomo.")) == "la casa , l ' uomo .");
}

TEST_CASE("tokenizer: character ids are ranks") {
  const auto tokenizer = make_character_tokenizer("hello\nè");
  CHECK(tokenizer->kind() == "character");
  CHECK(tokenizer->size() == 6);
  CHECK(tokenizer->encode("\nehloè") == Ids{0, 1, 2, 3, 4, 5});
  CHECK(tokenizer->decode(Ids{2, 5}) == "hè");
  CHECK(tokenizer->piece(0) == "\\n");
  CHECK(tokenizer->piece(5) == "è");
  CHECK(tokenizer->unknown() == -1);
  const std::string text = refusal(Fault::usage, [&] { tokenizer->encode("heß"); });
  CHECK_THAT(text, containing("'ß' (U+00DF, byte 3)"));
  CHECK_THAT(refusal(Fault::usage, [&] { tokenizer->decode(Ids{6}); }), containing("id 6"));
  refusal(Fault::usage, [&] { tokenizer->piece(6); });
  refusal(Fault::data, [] { make_character_tokenizer(""); });
  refusal(Fault::data, [] { make_character_tokenizer("a\xFF"); });
}

TEST_CASE("tokenizer: bytes are their own ids and take any input") {
  std::string all;
  for (int i = 255; i >= 0; --i) all += static_cast<char>(i);
  const auto tokenizer = make_byte_tokenizer();
  CHECK(tokenizer->size() == 256);
  CHECK(tokenizer->encode("aè") == Ids{97, 0xC3, 0xA8});
  CHECK(tokenizer->decode(tokenizer->encode(all)) == all);
  CHECK(tokenizer->piece(0xC3) == "0xC3");
  CHECK(tokenizer->piece(97) == "a");
  CHECK_THAT(refusal(Fault::usage, [&] { tokenizer->decode(Ids{256}); }), containing("0 .. 255"));
}

TEST_CASE("tokenizer: saved byte tokenizers that know fewer bytes load, and name what they lack") {
  const std::string few = "heed character vocabulary 1\nunit byte\ncount 3\n0x0A\n0x61\n0xC3\n";
  const auto tokenizer = load_tokenizer("character", few);
  CHECK(tokenizer->save() == few);
  CHECK(tokenizer->encode("a\n\xC3") == Ids{1, 0, 2});
  const std::string said = refusal(Fault::usage, [&] { tokenizer->encode("a\xC3\xA8"); });
  CHECK_THAT(said, containing("0xA8 (byte 3 of the text) is not one of the 3 bytes"));
  CHECK_THAT(said, containing("train the model again"));
}

TEST_CASE("tokenizer: Tiny Shakespeare has 65 characters") {
  const Path path = real_data("tinyshakespeare.txt");
  if (path.empty()) return;
  const std::string text = io::read_text(path);
  const auto tokenizer = make_character_tokenizer(text);
  CHECK(tokenizer->size() == 65);
  CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
}

TEST_CASE("tokenizer: saved bytes give the same tokenizer") {
  for (const auto& tokenizer : {words(), words(Joining::blanks)}) {
    const auto again = load_tokenizer("word", tokenizer->save());
    CHECK(again->save() == tokenizer->save());
    const Ids ids = tokenizer->encode("la casa, l'uomo.");
    CHECK(again->encode("la casa, l'uomo.") == ids);
    CHECK(again->decode(ids) == tokenizer->decode(ids));
  }
  for (const auto& tokenizer : {make_character_tokenizer("hello\nè𝄞"), make_byte_tokenizer()}) {
    const auto again = load_tokenizer("character", tokenizer->save());
    CHECK(again->save() == tokenizer->save());
    CHECK(again->encode("è𝄞") == tokenizer->encode("è𝄞"));
  }
  CHECK_THAT(refusal(Fault::data, [] { load_tokenizer("wird", ""); }), containing("Known: word"));
}

TEST_CASE("tokenizer: damaged bytes are refused, never crash") {
  check_damage(*words(), 4000);
  check_damage(*make_character_tokenizer("hello\nè𝄞"), 4000);
  check_damage(*make_byte_tokenizer(), 4000);
  const std::string huge = "heed word vocabulary 1\njoining natural\ncount 9000000000000000000\na\n";
  CHECK_THAT(refusal(Fault::data, [&] { load_tokenizer("word", huge); }), containing("line 3"));
  const std::string twice = "heed word vocabulary 1\njoining natural\ncount 2\na\na\n";
  CHECK_THAT(refusal(Fault::data, [&] { load_tokenizer("word", twice); }), containing("twice"));
  const std::string falling = "heed character vocabulary 1\nunit byte\ncount 2\n0x62\n0x61\n";
  CHECK_THAT(refusal(Fault::data, [&] { load_tokenizer("character", falling); }), containing("rise"));
}
