// Text of many lines, and characters split over several ids.
#include "heed/data/tokenizers/streamed_text.h"

#include <algorithm>

#include "heed/data/text/text.h"
#include "heed/data/tokenizers/byte_pair.h"
#include "heed/data/tokenizers/sentencepiece.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/tests/data/scratch.h"

using namespace heed;

namespace {

using Ids = std::vector<int32_t>;

/// The text, and that no piece of it ended within a character.
std::string streamed(const Tokenizer& tokenizer, const Ids& ids, size_t before = 0) {
  StreamedText stream(tokenizer, std::span(ids).first(before));
  std::string out;
  for (size_t i = before; i < ids.size(); ++i) {
    const std::string part = stream.add(ids[i]);
    CHECK(invalid_utf8(part) == std::string_view::npos);
    out += part;
  }
  return out + stream.rest();
}

const std::string story =
    "Una volta c'era un pezzo di legno.\n\nIl caff\u00E8 \u20AC 5, \U0001F600!\nThe cat sat on the mat.\n";

}  // namespace

TEST_CASE("streamed text: parts join up to the whole, in whole characters") {
  const auto characters = make_character_tokenizer(story), bytes = make_byte_tokenizer();
  const auto pairs = train_byte_pair(story, {.size = 280});
  for (const Tokenizer* tokenizer : {characters.get(), bytes.get(), pairs.get()}) {
    CAPTURE(tokenizer->kind());
    const Ids ids = encode_lines(*tokenizer, story);
    CHECK(ids == tokenizer->encode(story));
    CHECK(decode_lines(*tokenizer, ids) == story);
    CHECK(streamed(*tokenizer, ids) == story);
    const size_t before = ids.size() / 3;
    CHECK(tokenizer->decode(std::span(ids).first(before)) + streamed(*tokenizer, ids, before) == story);
  }
}

TEST_CASE("streamed text: bytes that never become a character come out all the same") {
  const std::string broken = "a\xC3z\xE2\x82";
  const auto bytes = make_byte_tokenizer();
  StreamedText stream(*bytes);
  std::string out;
  for (const int32_t id : bytes->encode(broken)) out += stream.add(id);
  CHECK(out == "a\xC3z");
  CHECK(stream.rest() == "\xE2\x82");
  CHECK(stream.rest().empty());
}

#if HEED_HAS_SENTENCEPIECE

TEST_CASE("streamed text: sentencepiece keeps its blanks and its lines") {
  std::vector<std::string> sentences;
  for (int i = 0; i < 60; ++i)
    sentences.push_back(text("the cat number ", i, " sat on the mat, then on hat ", i * 7));
  const std::vector<std::string_view> views(sentences.begin(), sentences.end());
  const auto tokenizer = train_sentencepiece(views, {.size = 60});
  const std::string lines = "the cat sat\n\non the mat, then\n";
  const Ids ids = encode_lines(*tokenizer, lines);
  CHECK(std::count(ids.begin(), ids.end(), tokenizer->end()) == 3);
  CHECK(decode_lines(*tokenizer, ids) == lines);
  CHECK(streamed(*tokenizer, ids) == lines);
  for (size_t before = 1; before < ids.size(); ++before) {
    CHECK(decode_lines(*tokenizer, std::span(ids).first(before)) + streamed(*tokenizer, ids, before) ==
          lines);
  }
}

#endif
