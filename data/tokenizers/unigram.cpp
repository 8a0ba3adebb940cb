// Viterbi over the pieces that begin at each character.
#include "heed/data/tokenizers/unigram.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "heed/core/error.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

constexpr double unknown_penalty = 10;

/// The piece of one byte: <0x0A>.
std::string piece_of_byte(int byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  return text("<0x", digits[static_cast<size_t>(byte / 16)], digits[static_cast<size_t>(byte % 16)], ">");
}

}  // namespace

Unigram::Unigram(std::span<const std::string> pieces, std::span<const double> scores, int32_t unknown,
                 bool byte_fallback)
    : pieces_(pieces),
      scores_(scores),
      unknown_(unknown),
      byte_fallback_(byte_fallback),
      sorted_(pieces_.size()) {
  std::iota(sorted_.begin(), sorted_.end(), 0);
  std::sort(sorted_.begin(), sorted_.end(), [this](int32_t left, int32_t right) {
    return pieces_[static_cast<size_t>(left)] < pieces_[static_cast<size_t>(right)];
  });
  for (int byte = 0; byte < 256; ++byte) byte_ids_[static_cast<size_t>(byte)] = find(piece_of_byte(byte));
  const auto lowest = std::min_element(scores_.begin(), scores_.end());
  unknown_score_ =
      (lowest == scores_.end() ? std::numeric_limits<double>::infinity() : *lowest) - unknown_penalty;
}

int32_t Unigram::find(std::string_view piece) const {
  const auto found = std::lower_bound(
      sorted_.begin(), sorted_.end(), piece,
      [this](int32_t id, std::string_view value) { return pieces_[static_cast<size_t>(id)] < value; });
  return found != sorted_.end() && pieces_[static_cast<size_t>(*found)] == piece ? *found : -1;
}

size_t Unigram::extend(std::string_view text, size_t begin, std::vector<Node>& nodes) const {
  size_t next = begin;
  next_code_point(text, next);
  bool is_piece_alone = false;
  const auto reach = [&](size_t end, int32_t id, double score) {
    Node& node = nodes[end];
    const double sum = score + nodes[begin].score;
    if (node.begin == std::string_view::npos || sum > node.score)
      node = {.score = sum, .begin = begin, .id = id};
  };
  // The pieces that share the bytes read so far are a range of sorted_; the one that is all of them is first.
  auto first = sorted_.begin(), last = sorted_.end();
  for (size_t at = begin; at < text.size() && first != last; ++at) {
    const auto byte_of = [&](int32_t id) {
      const std::string& piece = pieces_[static_cast<size_t>(id)];
      return at - begin < piece.size() ? static_cast<unsigned char>(piece[at - begin]) : -1;
    };
    const int byte = static_cast<unsigned char>(text[at]);
    first = std::partition_point(first, last, [&](int32_t id) { return byte_of(id) < byte; });
    last = std::partition_point(first, last, [&](int32_t id) { return byte_of(id) == byte; });
    const size_t end = at + 1;
    if (first == last || pieces_[static_cast<size_t>(*first)].size() != end - begin) continue;
    reach(end, *first, scores_[static_cast<size_t>(*first)]);
    if (end == next) is_piece_alone = true;
  }
  if (is_piece_alone) return next - begin;
  if (unknown_ < 0)
    fail("unigram: '", shown(text.substr(begin, next - begin)),
         "' is not among the pieces, and the tokenizer has no unknown token. Leave it out of the text.");
  reach(next, unknown_, unknown_score_);
  return next - begin;
}

void Unigram::encode_unknown(std::string_view part, std::vector<int32_t>& ids) const {
  if (const int32_t id = find(part); id >= 0) return ids.push_back(id);
  const auto id_of = [this](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  if (!byte_fallback_ || std::any_of(part.begin(), part.end(), [&](char byte) { return id_of(byte) < 0; }))
    return ids.push_back(unknown_);
  for (const char byte : part) ids.push_back(id_of(byte));
}

void Unigram::encode(std::string_view text, std::vector<int32_t>& ids) const {
  std::vector<Node> nodes(text.size() + 1);
  for (size_t begin = 0; begin < text.size();) begin += extend(text, begin, nodes);
  std::vector<std::string_view> unknown_parts;
  std::vector<int32_t> backwards;  // from the last piece; -1: the next of the unknown parts
  for (size_t end = text.size(); end > 0;) {
    const Node& node = nodes[end];
    const std::string_view part = text.substr(node.begin, end - node.begin);
    if (node.id != unknown_) {
      backwards.push_back(node.id);
    } else if (!backwards.empty() && backwards.back() < 0) {  // unknown parts in a row are one
      unknown_parts.back() = text.substr(node.begin, part.size() + unknown_parts.back().size());
    } else {
      backwards.push_back(-1);
      unknown_parts.push_back(part);
    }
    end = node.begin;
  }
  for (size_t i = backwards.size(); i-- > 0;) {
    if (backwards[i] >= 0) {
      ids.push_back(backwards[i]);
    } else {
      encode_unknown(unknown_parts.back(), ids);
      unknown_parts.pop_back();
    }
  }
}

}  // namespace heed
