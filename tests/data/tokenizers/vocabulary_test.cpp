// Words, vocabularies and natural text.
#include "heed/data/tokenizers/vocabulary.h"

#include "heed/data/text/parallel_text.h"
#include "heed/tests/data/scratch.h"

using namespace heed;

namespace {

using Pieces = std::vector<std::string_view>;

std::string round_trip(std::string_view text) { return detokenise(word_pieces(text)); }

}  // namespace

TEST_CASE("vocabulary: pieces are runs of word characters and runs of the rest") {
  CHECK(word_pieces("L'uomo, disse: \"È così!\"") ==
        Pieces{"L", "'", "uomo", ",", "disse", ":", "\"", "È", "così", "!\""});
  CHECK(word_pieces("self-deception--to 3.5_x") ==
        Pieces{"self", "-", "deception", "--", "to", "3", ".", "5_x"});
  CHECK(word_pieces("e\u0301te\u0301\u00A0ici") == Pieces{"e\u0301te\u0301", "ici"});
  CHECK(word_pieces(" \t ").empty());
  CHECK(word_pieces("").empty());
  CHECK(word_pieces("…a\xFF"
                    "b") == Pieces{"…", "a", "\xFF", "b"});  // bad bytes are no letters
}

TEST_CASE("vocabulary: ids fall by frequency, ties in the order of bytes") {
  const Pieces sentences = {"b a a c", "c b z", "a È E è y", "È E è y rare"};
  const Vocabulary words = Vocabulary::train(sentences);
  CHECK(words.pieces() ==
        std::vector<std::string>{"[UNK]", "[PAD]", "[SOS]", "[EOS]", "a", "E", "b", "c", "y", "È", "è"});
  CHECK(words.id("a") == 4);
  CHECK(words.id("z") == 0);
  CHECK(words.id("rare") == 0);
  CHECK(words.piece(10) == "è");
  CHECK(words.contains("b"));
  CHECK_FALSE(words.contains("z"));
  refusal(Fault::usage, [&] { words.piece(11); });
  refusal(Fault::usage, [&] { words.piece(-1); });
}

TEST_CASE("vocabulary: minimum frequency and largest size") {
  const Pieces sentences = {"a a a b b c"};
  CHECK(Vocabulary::train(sentences, {.min_frequency = 1}).size() == 7);
  CHECK(Vocabulary::train(sentences, {.min_frequency = 3}).size() == 5);
  const Vocabulary two = Vocabulary::train(sentences, {.min_frequency = 1, .max_size = 6});
  CHECK(two.size() == 6);
  CHECK(two.piece(5) == "b");
  CHECK_THAT(refusal(Fault::usage, [&] { Vocabulary::train(sentences, {.max_size = 4}); }),
             containing("max_size = 4"));
  refusal(Fault::usage, [&] { Vocabulary::train(sentences, {.min_frequency = 0}); });
  CHECK_THAT(refusal(Fault::data, [] { Vocabulary({"a", "b", "a"}); }), containing("'a', is there twice"));
  refusal(Fault::data, [] { Vocabulary({""}); });
  refusal(Fault::data, [] { Vocabulary({"[PAD]"}); });
}

TEST_CASE("vocabulary: the published opus_books vocabularies load with their exact sizes") {
  const Path english = real_data("opus_books-vocab/tokenizer_en.json");
  const Path italian = real_data("opus_books-vocab/tokenizer_it.json");
  if (english.empty() || italian.empty()) return;
  const Vocabulary en = Vocabulary::load_huggingface(english);
  const Vocabulary it = Vocabulary::load_huggingface(italian);
  CHECK(en.size() == 15698);
  CHECK(it.size() == 22463);
  CHECK(en.id("the") == 5);
  CHECK(en.id(",'") == 53);
  CHECK(it.piece(6) == "e");
  // What is in them are pieces as ours, and their rarest words stand in the order of bytes, as ours do.
  for (const Vocabulary* words : {&en, &it}) {
    const auto& pieces = words->pieces();
    int64_t whole = 0;
    for (size_t i = 4; i < pieces.size(); ++i) whole += word_pieces(pieces[i]) == Pieces{pieces[i]} ? 1 : 0;
    CHECK(whole == words->size() - 4);
    CHECK(std::is_sorted(pieces.end() - 3000, pieces.end()));
  }
}

TEST_CASE("vocabulary: few words of real opus_books pairs are unknown") {
  const Path excerpt = real_data("opus_books-excerpt.en-it.tsv");
  const Path english = real_data("opus_books-vocab/tokenizer_en.json");
  if (excerpt.empty() || english.empty()) return;
  const Vocabulary words = Vocabulary::load_huggingface(english);
  int64_t total = 0, unknown = 0;
  for (const Pair& pair : read_pairs(excerpt).pairs) {
    for (const std::string_view piece : word_pieces(pair.source)) {
      ++total;
      unknown += words.contains(piece) ? 0 : 1;
    }
  }
  CHECK(total == 1832);
  CHECK(unknown == 18);
}

TEST_CASE("vocabulary: tokenizer files of another kind or with holes are refused") {
  const Scratch scratch;
  const auto load = [&](std::string_view json) {
    return refusal(Fault::data, [&] { Vocabulary::load_huggingface(scratch.file("t.json", json)); });
  };
  const std::string head = R"({"model":{"type":"WordLevel","vocab":{"[UNK]":0,"[PAD]":1,"[SOS]":2,"[EOS]":3)";
  CHECK(Vocabulary::load_huggingface(scratch.file("t.json", head + R"(,"a":4}}})")).size() == 5);
  CHECK_THAT(load(head + R"(,"a":5}}})"), containing("the id of 'a' is 5"));
  CHECK_THAT(load(head + R"(,"a":3}}})"), containing("the id of 'a' is 3"));
  CHECK_THAT(load(head + R"(,"a":-1}}})"), containing("the id of 'a' is -1"));
  CHECK_THAT(load(head + R"(,"a":"4"}}})"), containing("'a'"));
  CHECK_THAT(load(head + R"(,"a":4,"a":4}}})"), containing("a"));
  CHECK_THAT(load(R"({"model":{"type":"BPE","vocab":{}}})"), containing("WordLevel"));
  CHECK_THAT(load(R"({"model":{"type":"WordLevel","vocab":{"a":0}}})"), containing("[UNK]"));
  load("[1]");
  load("{");
  load("");
  refusal(Fault::file, [&] { Vocabulary::load_huggingface(scratch.path() / "none.json"); });
}

TEST_CASE("vocabulary: natural text comes back from pieces") {
  const char* texts[] = {
      "The old man smiled.",
      "L'uomo dell'albero, un'altra volta: c'è!",
      "\"Well,\" said he, \"I don't know; it's o'clock (or so).\" \"Yes.\"",
      "un po' di pane",
      "E' vero.",
      "He said 'good morning' to us.",
      "'Yes', she said.",
      "Reed's face and the students' books",
      "1,000 people paid 3.5 at 10:30, in 2005, 300 of them",
      "an anti-hero, self-deception--to be reconciled",
      "Cos'è? Perché no?",
      "«Sì» disse; “bene” e ‘così’.",
      "alle 5 p.m. di ieri",
      "dell’uomo e l’altra",
      "",
  };
  for (const char* text : texts) CHECK(round_trip(text) == text);
}

TEST_CASE("vocabulary: most Europarl sentences come back letter by letter") {
  const Path path = real_data("europarl-sample.en-it.tsv.gz");
  if (path.empty()) return;
  const PairFile file = read_pairs(path);
  int64_t english = 0, italian = 0;
  for (const Pair& pair : file.pairs) {
    english += round_trip(pair.source) == pair.source ? 1 : 0;
    italian += round_trip(pair.target) == pair.target ? 1 : 0;
  }
  const auto share = [&](int64_t count) {
    return static_cast<double>(count) / static_cast<double>(file.pairs.size());
  };
  CHECK(share(english) > 0.97);  // the rest is spaced irregularly in the corpus itself
  CHECK(share(italian) > 0.955);
}
