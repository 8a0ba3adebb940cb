// tests data/tokenizers/llama2_c.h
#include "heed/data/tokenizers/llama2_c.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/core/io/number_text.h"
#include "heed/core/random.h"
#include "heed/data/tokenizers/streamed_text.h"
#include "heed/tests/catch.h"
#include "heed/tests/data/llama2_c_tokenizer.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

/// The ids of a text by the rule as it stands: of all neighbours the best are joined, again and again.
std::vector<int32_t> encoded_plainly(const std::vector<ScoredText>& pieces, const std::string& text) {
  const auto id_of = [&](const std::string& piece) {
    const auto found = std::ranges::find(pieces, piece, &ScoredText::piece);
    return found == pieces.end() ? -1 : static_cast<int32_t>(found - pieces.begin());
  };
  std::vector<int32_t> ids;
  for (const char letter : " " + text) {  // ASCII
    const int32_t id = id_of(std::string(1, letter));
    ids.push_back(id >= 0 ? id : 3 + static_cast<unsigned char>(letter));
  }
  for (;;) {
    float best = -std::numeric_limits<float>::infinity();
    size_t at = 0;
    int32_t into = -1;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const int32_t id =
          id_of(pieces[static_cast<size_t>(ids[i])].piece + pieces[static_cast<size_t>(ids[i + 1])].piece);
      if (id < 0 || pieces[static_cast<size_t>(id)].score <= best) continue;
      best = pieces[static_cast<size_t>(id)].score, at = i, into = id;
    }
    if (into < 0) return ids;
    ids[at] = into;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

}  // namespace

TEST_CASE("llama2.c tokenizer: pairs are joined by their scores, as the rule says") {
  const std::vector<ScoredText> pieces = llama2_c_pieces();
  const auto tokenizer = parse_llama2_c_tokenizer(llama2_c_tokenizer(pieces), "tokenizer.bin");
  CHECK(tokenizer->kind() == "llama2_c");
  CHECK(tokenizer->size() == static_cast<int64_t>(pieces.size()));
  Rng rng(1);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int64_t i = 1 + rng.below(40); i > 0; --i) text += "abc d!"[rng.below(6)];
    const std::vector<int32_t> ids = tokenizer->encode(text);
    CAPTURE(text);
    CHECK(ids == encoded_plainly(pieces, text));
    CHECK(tokenizer->decode(ids) == text);
  }
}

TEST_CASE("llama2.c tokenizer: unknown characters are bytes, and an input begins with the start token") {
  const auto tokenizer = parse_llama2_c_tokenizer(llama2_c_tokenizer(llama2_c_pieces()), "tokenizer.bin");
  const std::vector<int32_t> ids = tokenizer->encode("\u00e9\n");
  CHECK(std::vector<int32_t>(ids.end() - 3, ids.end()) == std::vector<int32_t>{3 + 0xC3, 3 + 0xA9, 3 + '\n'});
  CHECK(tokenizer->decode(ids) == "\u00e9\n");
  CHECK(tokenizer->encode("").empty());
  CHECK(encode_prompt(*tokenizer, "a").front() == 1);
  CHECK(encode_prompt(*tokenizer, "").empty());
  CHECK(tokenizer->encode("a").front() != 1);
  CHECK(tokenizer->decode(encode_prompt(*tokenizer, "ab a")) == "ab a");
  CHECK(tokenizer->piece(tokenizer->encode("a").front()).starts_with("\u2581"));
  const auto again = load_tokenizer(tokenizer->kind(), tokenizer->save());
  CHECK(again->save() == tokenizer->save());
  CHECK(again->encode("abc d") == tokenizer->encode("abc d"));
}

TEST_CASE("llama2.c tokenizer: what is no such file is refused with the byte") {
  const std::vector<ScoredText> good = llama2_c_pieces();
  const auto refused = [&](const std::string& bytes, const std::string& reason) {
    INFO(reason);
    CHECK(fault_of([&] { parse_llama2_c_tokenizer(bytes, "tokenizer.bin"); }) == Fault::data);
    CHECK_THROWS_WITH(parse_llama2_c_tokenizer(bytes, "tokenizer.bin"),
                      containing("tokenizer.bin: byte ") && containing(reason));
  };
  const auto with = [&](size_t id, const ScoredText& piece) {
    std::vector<ScoredText> pieces = good;
    pieces[id] = piece;
    return llama2_c_tokenizer(pieces);
  };
  const std::string bytes = llama2_c_tokenizer(good);
  for (size_t size = 0; size < 60; ++size)
    CHECK(fault_of([&] { parse_llama2_c_tokenizer(bytes.substr(0, size), "t"); }) == Fault::data);
  refused(bytes.substr(0, bytes.size() - 1), "within the file");
  refused(with(270, {"", 0}), "piece 270 has 0 bytes");
  refused(with(270, {std::string(1025, 'x'), 0}), "piece 270 has 1025 bytes");
  refused(with(261, {"a", std::nanf("")}), "the score of piece 261 is no finite number");
  refused(with(5, {"<0x03>", 0}), "piece 5 is '<0x03>', not <0x02>");
  refused(with(262, {" ", 0}), "the piece ' ' is there twice");
  refused(llama2_c_tokenizer({good.begin(), good.begin() + 200}), "there are 200 pieces, less than 259");
  CHECK_THROWS_WITH(load_tokenizer("llama2_c", "x"), containing("no saved tokenizer of llama2.c"));
}
