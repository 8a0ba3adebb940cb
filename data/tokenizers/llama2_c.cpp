// Reads tokenizer.bin, and merges pairs by their scores.
#include "heed/data/tokenizers/llama2_c.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <queue>
#include <unordered_map>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/io/number_text.h"

namespace heed {
namespace {

constexpr std::string_view llama2_c_title = "heed llama2.c 1\n";
constexpr int32_t start_id = 1, end_id = 2, first_byte_id = 3, num_first_ids = 259;
constexpr int64_t max_llama2_c_pieces = 1 << 20;
constexpr size_t max_llama2_c_piece = 1024;  // bytes

/// A piece and its score, the higher the earlier it is made.
struct ScoredPiece {
  std::string bytes;
  float score;
};

/// Reads the file from its beginning to its end; errors name the byte.
std::vector<ScoredPiece> read_pieces(std::string_view file, std::string_view name) {
  size_t at = 0;
  const auto refuse = [&](const auto&... parts) {
    fail(Fault::data, name, ": byte ", at, ": ", parts...,
         ". Give the tokenizer.bin that llama2.c made for this model.");
  };
  const auto number = [&]<class T>(T) {
    T value;
    if (file.size() - at < sizeof value) refuse("the file is cut short");
    std::memcpy(&value, file.data() + at, sizeof value);
    at += sizeof value;
    return value;
  };
  number(int32_t{});  // the length of the longest piece
  std::vector<ScoredPiece> out;
  while (at < file.size()) {
    const auto score = number(float{});
    if (!std::isfinite(score)) refuse("the score of piece ", out.size(), " is no finite number");
    const auto length = number(int32_t{});
    if (length < 1 || static_cast<size_t>(length) > std::min(max_llama2_c_piece, file.size() - at))
      refuse("piece ", out.size(), " has ", length, " bytes, where it must have 1 to ", max_llama2_c_piece,
             " within the file");
    out.push_back({std::string(file.substr(at, static_cast<size_t>(length))), score});
    at += static_cast<size_t>(length);
    if (std::ssize(out) > max_llama2_c_pieces) refuse("there are more than ", max_llama2_c_pieces, " pieces");
  }
  if (out.size() < num_first_ids) refuse("there are ", out.size(), " pieces, less than ", num_first_ids);
  for (int32_t byte = 0; byte < 256; ++byte) {
    const std::string& piece = out[static_cast<size_t>(first_byte_id + byte)].bytes;
    const std::string wanted = formatted("<0x%02X>", static_cast<unsigned>(byte));
    if (piece != wanted) refuse("piece ", first_byte_id + byte, " is '", shown(piece), "', not ", wanted);
  }
  return out;
}

class Llama2CTokenizer final : public Tokenizer {
 public:
  Llama2CTokenizer(std::string file, std::string_view name)
      : Tokenizer({.unknown = 0, .pad = -1, .start = start_id, .end = end_id}),
        file_(std::move(file)),
        pieces_(read_pieces(file_, name)) {
    for (size_t id = 0; id < pieces_.size(); ++id) {
      if (!ids_.emplace(pieces_[id].bytes, static_cast<int32_t>(id)).second)
        fail(Fault::data, name, ": byte ", file_.size(), ": the piece '", shown(pieces_[id].bytes),
             "' is there twice. Give the tokenizer.bin that llama2.c made for this model.");
    }
  }

  std::string kind() const override { return "llama2_c"; }
  int64_t size() const override { return std::ssize(pieces_); }

  std::vector<int32_t> encode(std::string_view text) const override {
    if (text.empty()) return {};
    std::vector<Part> parts;
    add_character(parts, " ");
    for (size_t at = 0; at < text.size();) {
      size_t end = at + 1;
      while (end < text.size() && end - at < 4 && (text[end] & 0xC0) == 0x80) ++end;
      add_character(parts, text.substr(at, end - at));
      at = end;
    }
    merge(parts);
    std::vector<int32_t> ids;
    for (int64_t i = 0; i >= 0; i = parts[static_cast<size_t>(i)].next)
      ids.push_back(parts[static_cast<size_t>(i)].id);
    return ids;
  }

  int32_t document_start() const override { return start(); }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string out;
    for (const int32_t id : ids) {
      check(id);
      if (id >= first_byte_id && id < num_first_ids)
        out += static_cast<char>(id - first_byte_id);
      else if (id != start_id && id != end_id)
        out += pieces_[static_cast<size_t>(id)].bytes;
    }
    return out.starts_with(' ') ? out.substr(1) : out;  // the blank before each text
  }

  std::string piece(int32_t id) const override {
    check(id);
    std::string out;
    for (const char letter : pieces_[static_cast<size_t>(id)].bytes)
      out += letter == ' ' ? "\u2581" : letter == '\n' ? "\\n" : std::string(1, letter);
    return shown(out);
  }

  std::string save() const override { return std::string(llama2_c_title) + file_; }

 private:
  /// A piece of the text in a linked list.
  struct Part {
    int32_t id;              // -1: joined with the part before it
    int64_t previous, next;  // indices of its neighbours; -1: none
  };
  /// Two neighbours that may be joined.
  struct Pair {
    float score;
    int64_t left;               // index of the first
    int32_t left_id, right_id;  // pieces that they were when the pair was found
    int32_t into;
    /// The pair with the higher score is joined first; of equal ones the first in the text.
    bool operator<(const Pair& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };

  void check(int32_t id) const {
    if (id < 0 || id >= size())
      fail("llama2.c: no piece has the id ", id, "; ids are 0 .. ", size() - 1, ".");
  }

  /// Appends the piece of a character, or those of its bytes.
  void add_character(std::vector<Part>& parts, std::string_view character) const {
    const auto add = [&](int32_t id) {
      const auto index = std::ssize(parts);
      if (index > 0) parts.back().next = index;
      parts.push_back({.id = id, .previous = index - 1, .next = -1});
    };
    const auto found = ids_.find(std::string(character));
    if (found != ids_.end()) return add(found->second);
    for (const char byte : character) add(first_byte_id + static_cast<unsigned char>(byte));
  }

  /// Joins neighbours until none can be joined.
  void merge(std::vector<Part>& parts) const {
    std::priority_queue<Pair> pairs;
    const auto part = [&](int64_t index) -> Part& { return parts[static_cast<size_t>(index)]; };
    const auto find_pair = [&](int64_t left) {
      if (left < 0 || part(left).next < 0) return;
      const int32_t left_id = part(left).id, right_id = part(part(left).next).id;
      const auto found = ids_.find(pieces_[static_cast<size_t>(left_id)].bytes +
                                   pieces_[static_cast<size_t>(right_id)].bytes);
      if (found == ids_.end()) return;
      pairs.push({.score = pieces_[static_cast<size_t>(found->second)].score,
                  .left = left,
                  .left_id = left_id,
                  .right_id = right_id,
                  .into = found->second});
    };
    for (int64_t i = 0; i < std::ssize(parts); ++i) find_pair(i);
    while (!pairs.empty()) {
      const Pair pair = pairs.top();
      pairs.pop();
      Part& left = part(pair.left);
      if (left.id != pair.left_id || left.next < 0 || part(left.next).id != pair.right_id) continue;
      Part& right = part(left.next);
      left.id = pair.into;
      left.next = right.next;
      right.id = -1;
      if (left.next >= 0) part(left.next).previous = pair.left;
      find_pair(pair.left);
      find_pair(left.previous);
    }
  }

  std::string file_;
  std::vector<ScoredPiece> pieces_;
  std::unordered_map<std::string, int32_t> ids_;
};

}  // namespace

std::unique_ptr<Tokenizer> parse_llama2_c_tokenizer(std::string bytes, std::string_view name) {
  return std::make_unique<Llama2CTokenizer>(std::move(bytes), name);
}

std::unique_ptr<Tokenizer> detail::load_llama2_c(std::string_view bytes, std::string_view name) {
  if (!bytes.starts_with(llama2_c_title))
    fail(Fault::data, name, ": byte 0: this is no saved tokenizer of llama2.c.",
         " Take the one of another checkpoint of the run.");
  return parse_llama2_c_tokenizer(std::string(bytes.substr(llama2_c_title.size())), name);
}

}  // namespace heed
