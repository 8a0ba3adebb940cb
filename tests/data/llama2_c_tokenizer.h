// Tokenizers of llama2.c for tests.
#pragma once

#include <string>
#include <vector>

#include "heed/core/io/number_text.h"

namespace heed {

/// A piece of text and its score.
struct ScoredText {
  std::string piece;
  float score;
};

/// The first pieces of every such tokenizer, and a few of "abc d".
inline std::vector<ScoredText> llama2_c_pieces() {
  std::vector<ScoredText> out{{"<unk>", 0}, {"\n<s>\n", 0}, {"\n</s>\n", 0}};
  for (int byte = 0; byte < 256; ++byte)
    out.push_back({formatted("<0x%02X>", static_cast<unsigned>(byte)), 0});
  float score = 0;
  for (const char* piece :
       {" ", "a", "b", "c", "d", "ab", "bc", " a", "abc", " d", "aa", "cd", " ab", "aab", "dd"})
    out.push_back({piece, score -= 1});
  out.push_back({"ba", score});  // as good as the one before it
  return out;
}

/// The bytes of their tokenizer.bin.
inline std::string llama2_c_tokenizer(const std::vector<ScoredText>& pieces) {
  std::string out;
  const auto put = [&](const auto& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put(int32_t{8});
  for (const auto& [piece, score] : pieces) {
    put(score);
    put(static_cast<int32_t>(piece.size()));
    out += piece;
  }
  return out;
}

}  // namespace heed
