// Unigram: cuts a text into the pieces with the highest sum of scores.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The model Unigram of Hugging Face's tokenizers 0.23. Kudo 2018, arXiv 1804.10959.
class Unigram {
 public:
  /// A piece an id, and its score, a log probability; pieces are distinct and not empty, and both must
  /// outlive it. `unknown`: the id of what no piece covers; -1: there is none. `byte_fallback`: such parts
  /// are pieces of bytes, <0x0A>, where the vocabulary has those of all their bytes.
  Unigram(std::span<const std::string> pieces, std::span<const double> scores, int32_t unknown,
          bool byte_fallback);

  /// Appends the ids of a text, which is UTF-8 (Viterbi). A character that is no piece alone scores 10 less
  /// than the lowest piece; such characters in a row are one unknown token. Fault::usage for one where there
  /// is no unknown id.
  void encode(std::string_view text, std::vector<int32_t>& ids) const;

 private:
  /// The best way to the end of a part of the text.
  struct Node {
    double score = 0;
    size_t begin = std::string_view::npos;  // where the last piece begins; npos: no way leads here
    int32_t id = -1;                        // id of the last piece
  };
  /// Fills the nodes that are reached from `begin`. Returns the bytes of the character there.
  size_t extend(std::string_view text, size_t begin, std::vector<Node>& nodes) const;
  /// Appends the ids of a part that no piece covers.
  void encode_unknown(std::string_view part, std::vector<int32_t>& ids) const;
  /// The id of a piece; -1 where there is none.
  int32_t find(std::string_view piece) const;

  std::span<const std::string> pieces_;
  std::span<const double> scores_;
  int32_t unknown_;
  bool byte_fallback_;
  std::vector<int32_t> sorted_;             // ids in the order of their pieces' bytes
  std::array<int32_t, 256> byte_ids_ = {};  // ids of the pieces of bytes; -1: none
  double unknown_score_ = 0;
};

}  // namespace heed
