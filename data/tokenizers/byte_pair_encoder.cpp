// The byte-pair encoder.
#include "heed/data/tokenizers/byte_pair.h"

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>

#include "heed/core/parallel/thread_pool.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

/// Merges by pair: a hash table with open addressing, at most half full.
class MergeTable {
 public:
  struct Slot {
    int32_t left = -1, right = -1, rank = -1, into = -1;
  };

  explicit MergeTable(const std::vector<detail::PieceMerge>& merges) {
    size_t size = 16;
    while (size < 2 * merges.size()) size *= 2;
    slots_.resize(size);
    for (size_t rank = 0; rank < merges.size(); ++rank) {
      const detail::PieceMerge& merge = merges[rank];
      Slot& slot = slots_[place(merge.left, merge.right)];
      if (slot.rank < 0) slot = {merge.left, merge.right, static_cast<int32_t>(rank), merge.into};
    }
  }

  /// The merge of a pair; its rank is -1 where the pair is never merged.
  const Slot& find(int32_t left, int32_t right) const { return slots_[place(left, right)]; }

 private:
  size_t place(int32_t left, int32_t right) const {
    const uint64_t key = (static_cast<uint64_t>(left) << 32) | static_cast<uint32_t>(right);
    size_t at = static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 20) & (slots_.size() - 1);
    while (slots_[at].rank >= 0 && (slots_[at].left != left || slots_[at].right != right))
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  std::vector<Slot> slots_;
};

/// Applies merges within a word. Its buffers are reused, so words need no allocation.
class WordMerger {
 public:
  WordMerger(const MergeTable& table, const std::array<int32_t, 256>& bytes) : table_(table), bytes_(bytes) {}

  /// Appends the ids of a word of at least one byte.
  void encode(std::string_view word, std::vector<int32_t>& out) {
    const auto count = static_cast<int32_t>(word.size());
    pieces_.resize(word.size());
    heap_.clear();
    for (int32_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      pieces_[at] = {bytes_[static_cast<unsigned char>(word[at])], i - 1, i + 1 < count ? i + 1 : -1};
    }
    for (int32_t i = 0; i + 1 < count; ++i) {
      if (const int32_t rank = merge_at(i).rank; rank >= 0) heap_.push_back(candidate(rank, i));
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const auto rank = static_cast<int32_t>(heap_.back() >> 32);
      const auto at = static_cast<int32_t>(heap_.back() & 0xFFFFFFFF);
      heap_.pop_back();
      Piece& left = piece(at);
      if (left.id < 0 || left.next < 0) continue;
      const MergeTable::Slot& merge = merge_at(at);
      if (merge.rank != rank) continue;  // another merge has taken one of the two
      Piece& right = piece(left.next);
      left.id = merge.into;
      left.next = right.next;
      right.id = -1;
      if (left.next >= 0) {
        piece(left.next).before = at;
        push_merge(at);
      }
      if (left.before >= 0) push_merge(left.before);
    }
    for (int32_t i = 0; i >= 0; i = piece(i).next) out.push_back(piece(i).id);
  }

 private:
  struct Piece {
    int32_t id, before, next;
  };

  /// The key of a merge of this rank at this piece: the heap's top is the lowest rank, in ties the leftmost.
  static uint64_t candidate(int32_t rank, int32_t at) {
    return (static_cast<uint64_t>(rank) << 32) | static_cast<uint32_t>(at);
  }

  Piece& piece(int32_t at) { return pieces_[static_cast<size_t>(at)]; }

  /// The merge of this piece and the next one.
  const MergeTable::Slot& merge_at(int32_t at) { return table_.find(piece(at).id, piece(piece(at).next).id); }

  /// Adds the merge of this piece and the next one to the heap, if there is one.
  void push_merge(int32_t at) {
    const int32_t rank = merge_at(at).rank;
    if (rank < 0) return;
    heap_.push_back(candidate(rank, at));
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  const MergeTable& table_;
  const std::array<int32_t, 256>& bytes_;
  std::vector<Piece> pieces_;
  std::vector<uint64_t> heap_;  // a heap of candidates
};

class BytePairTokenizer final : public Tokenizer {
 public:
  BytePairTokenizer(std::vector<std::string> pieces, std::vector<detail::PieceMerge> merges, int32_t end)
      : Tokenizer({.unknown = -1, .pad = -1, .start = -1, .end = end}),
        pieces_(std::move(pieces)),
        merges_(std::move(merges)),
        table_(merges_) {
    for (size_t id = pieces_.size(); id-- > 0;) {
      if (pieces_[id].size() == 1)
        bytes_[static_cast<unsigned char>(pieces_[id][0])] = static_cast<int32_t>(id);
    }
  }

  std::string kind() const override { return "byte_pair"; }
  int64_t size() const override { return static_cast<int64_t>(pieces_.size()); }
  const std::vector<std::string>& pieces() const { return pieces_; }
  const std::vector<detail::PieceMerge>& merges() const { return merges_; }

  std::vector<int32_t> encode(std::string_view text) const override {
    const std::vector<size_t> cuts = detail::byte_pair_cuts(text);
    std::vector<std::vector<int32_t>> parts(cuts.size() - 1);
    parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t part) {
      const auto at = static_cast<size_t>(part);
      parts[at] = encode_part(text.substr(cuts[at], cuts[at + 1] - cuts[at]));
    });
    if (parts.size() == 1) return std::move(parts[0]);
    size_t total = 0;
    for (const auto& part : parts) total += part.size();
    std::vector<int32_t> ids;
    ids.reserve(total);
    for (const auto& part : parts) ids.insert(ids.end(), part.begin(), part.end());
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string out;
    for (const int32_t id : ids) {
      check(id);
      if (id != end()) out += pieces_[static_cast<size_t>(id)];
    }
    return out;
  }

  std::string piece(int32_t id) const override {
    check(id);
    const std::string& bytes = pieces_[static_cast<size_t>(id)];
    const bool is_utf8 = invalid_utf8(bytes) == std::string_view::npos;
    std::string out;
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      constexpr std::string_view digits = "0123456789ABCDEF";
      if (c == ' ')
        out += "\u2581";
      else if (c == '\n')
        out += "\\n";
      else if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !is_utf8))
        out += heed::text("<", digits[byte >> 4], digits[byte & 15], ">");
      else
        out += c;
    }
    return out;
  }

  std::string save() const override { return detail::saved_byte_pair(pieces_, merges_); }

 private:
  void check(int32_t id) const {
    if (id < 0 || id >= size())
      fail("byte pairs: no piece has the id ", id, "; ids are 0 .. ", size() - 1, ".");
  }

  /// Words repeat, so each distinct one is merged once.
  std::vector<int32_t> encode_part(std::string_view part) const {
    WordMerger merger(table_, bytes_);
    std::unordered_map<std::string_view, std::pair<size_t, size_t>> known;  // word -> place in `ids`, count
    std::vector<int32_t> ids;
    ids.reserve(part.size() / 3);
    for (size_t at = 0; at < part.size();) {
      const size_t after = byte_pair_word(part, at);
      const std::string_view word = part.substr(at, after - at);
      at = after;
      if (word.size() == 1) {
        ids.push_back(bytes_[static_cast<unsigned char>(word[0])]);
        continue;
      }
      const auto [entry, fresh] = known.try_emplace(word);
      const size_t begin = ids.size();
      if (fresh) {
        merger.encode(word, ids);
        entry->second = {begin, ids.size() - begin};
      } else {
        const auto [from, count] = entry->second;
        ids.resize(begin + count);
        std::copy_n(ids.begin() + static_cast<std::ptrdiff_t>(from), count,
                    ids.begin() + static_cast<std::ptrdiff_t>(begin));
      }
    }
    return ids;
  }

  std::vector<std::string> pieces_;
  std::vector<detail::PieceMerge> merges_;
  MergeTable table_;
  std::array<int32_t, 256> bytes_{};
};

const BytePairTokenizer& as_byte_pair(const Tokenizer& tokenizer) {
  const auto* found = dynamic_cast<const BytePairTokenizer*>(&tokenizer);
  if (found == nullptr)
    fail("byte pairs: this is a tokenizer of the kind ", tokenizer.kind(),
         ", which has no vocab.json and merges.txt. Use one of the kind byte_pair.");
  return *found;
}

}  // namespace

std::unique_ptr<Tokenizer> detail::make_byte_pair(std::vector<std::string> pieces,
                                                  std::vector<PieceMerge> merges) {
  const auto found = std::find(pieces.begin(), pieces.end(), end_of_text);
  auto end = found == pieces.end() ? -1 : static_cast<int32_t>(found - pieces.begin());
  for (const PieceMerge& merge : merges) {
    if (merge.into == end) end = -1;  // a merge makes it, so it is no special token
  }
  return std::make_unique<BytePairTokenizer>(std::move(pieces), std::move(merges), end);
}

BytePairFiles byte_pair_files(const Tokenizer& tokenizer) {
  const BytePairTokenizer& pairs = as_byte_pair(tokenizer);
  return {.vocabulary = detail::byte_pair_json(pairs.pieces()),
          .merges = "#version: 0.2\n" + detail::byte_pair_lines(pairs.pieces(), pairs.merges())};
}

}  // namespace heed
