// Encodes text by the merges of byte pairs, and decodes it.
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
      Slot& slot = slots_[slot_of(merge.left, merge.right)];
      if (slot.rank < 0) slot = {merge.left, merge.right, static_cast<int32_t>(rank), merge.into};
    }
  }

  /// The merge of a pair; its rank is -1 where the pair is never merged.
  const Slot& find(int32_t left, int32_t right) const { return slots_[slot_of(left, right)]; }

 private:
  /// Index of the pair's slot, or of the free one where it belongs (linear probing).
  size_t slot_of(int32_t left, int32_t right) const {
    const uint64_t key = (static_cast<uint64_t>(left) << 32) | static_cast<uint32_t>(right);
    size_t slot = static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 20) & (slots_.size() - 1);
    while (slots_[slot].rank >= 0 && (slots_[slot].left != left || slots_[slot].right != right))
      slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  std::vector<Slot> slots_;
};

/// Applies merges within a word. Its buffers are reused, so words need no allocation.
class WordMerger {
 public:
  WordMerger(const MergeTable& table, const std::array<int32_t, 256>& bytes) : table_(table), bytes_(bytes) {}

  /// Appends the ids of a word.
  void encode(std::string_view word, std::vector<int32_t>& out) {
    pieces_.clear();
    heap_.clear();
    int32_t count = 0;
    for (const char c : word) {
      const int32_t id = bytes_[static_cast<unsigned char>(c)];
      if (id < 0) continue;
      pieces_.push_back({.id = id, .previous = count - 1, .next = count + 1});
      ++count;
    }
    if (count == 0) return;
    piece(count - 1).next = -1;
    for (int32_t i = 0; i + 1 < count; ++i) {
      if (const int32_t rank = merge_at(i).rank; rank >= 0) heap_.push_back(candidate(rank, i));
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const auto rank = static_cast<int32_t>(heap_.back() >> 32);
      const auto left_index = static_cast<int32_t>(heap_.back() & 0xFFFFFFFF);
      heap_.pop_back();
      Piece& left = piece(left_index);
      if (left.id < 0 || left.next < 0) continue;
      const MergeTable::Slot& merge = merge_at(left_index);
      if (merge.rank != rank) continue;  // another merge has taken one of the two
      Piece& right = piece(left.next);
      left.id = merge.into;
      left.next = right.next;
      right.id = -1;
      if (left.next >= 0) {
        piece(left.next).previous = left_index;
        push_merge(left_index);
      }
      if (left.previous >= 0) push_merge(left.previous);
    }
    for (int32_t i = 0; i >= 0; i = piece(i).next) out.push_back(piece(i).id);
  }

 private:
  /// A token of the word in a linked list.
  struct Piece {
    int32_t id;              // -1: merged into the piece before it
    int32_t previous, next;  // indices of its neighbours; -1: none
  };

  /// The heap's key of a merge: its top is the lowest rank, in ties the leftmost piece.
  static uint64_t candidate(int32_t rank, int32_t left) {
    return (static_cast<uint64_t>(rank) << 32) | static_cast<uint32_t>(left);
  }

  Piece& piece(int32_t i) { return pieces_[static_cast<size_t>(i)]; }

  /// The merge of this piece and the next one.
  const MergeTable::Slot& merge_at(int32_t left) {
    return table_.find(piece(left).id, piece(piece(left).next).id);
  }

  /// Adds the merge of this piece and the next one to the heap, if there is one.
  void push_merge(int32_t left) {
    const int32_t rank = merge_at(left).rank;
    if (rank < 0) return;
    heap_.push_back(candidate(rank, left));
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  const MergeTable& table_;
  const std::array<int32_t, 256>& bytes_;
  std::vector<Piece> pieces_;
  std::vector<uint64_t> heap_;  // possible merges, as candidate()
};

class BytePairTokenizer final : public Tokenizer {
 public:
  BytePairTokenizer(std::vector<std::string> pieces, std::vector<detail::PieceMerge> merges, int32_t end,
                    PreTokenizer pre_tokenizer)
      : Tokenizer({.unknown = -1, .pad = -1, .start = -1, .end = end}),
        pieces_(std::move(pieces)),
        merges_(std::move(merges)),
        table_(merges_),
        pre_tokenizer_(pre_tokenizer) {
    bytes_.fill(-1);
    for (size_t id = pieces_.size(); id-- > 0;) {
      if (pieces_[id].size() == 1)
        bytes_[static_cast<unsigned char>(pieces_[id][0])] = static_cast<int32_t>(id);
    }
  }

  std::string kind() const override { return "byte_pair"; }
  int64_t size() const override { return static_cast<int64_t>(pieces_.size()); }
  const std::vector<std::string>& pieces() const { return pieces_; }
  const std::vector<detail::PieceMerge>& merges() const { return merges_; }
  PreTokenizer pre_tokenizer() const { return pre_tokenizer_; }

  std::vector<int32_t> encode(std::string_view text) const override {
    const std::vector<size_t> cuts = detail::byte_pair_cuts(text);
    std::vector<std::vector<int32_t>> parts(cuts.size() - 1);
    parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t index) {
      const auto i = static_cast<size_t>(index);
      parts[i] = encode_part(text.substr(cuts[i], cuts[i + 1] - cuts[i]));
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

  std::string save() const override { return detail::saved_byte_pair(pieces_, merges_, pre_tokenizer_); }

 private:
  void check(int32_t id) const {
    if (id < 0 || id >= size())
      fail("byte pairs: no piece has the id ", id, "; ids are 0 .. ", size() - 1, ".");
  }

  /// The ids of whole words. Words repeat, so each distinct one is merged once, and its ids are copied later.
  std::vector<int32_t> encode_part(std::string_view part) const {
    struct IdRange {
      size_t begin, count;  // range in `ids`
    };
    WordMerger merger(table_, bytes_);
    std::unordered_map<std::string_view, IdRange> encoded_words;
    std::vector<int32_t> ids;
    ids.reserve(part.size() / 3);
    for (size_t begin = 0; begin < part.size();) {
      const std::string_view word = part.substr(begin, byte_pair_word(part, begin, pre_tokenizer_) - begin);
      begin += word.size();
      if (word.size() == 1) {
        if (const int32_t id = bytes_[static_cast<unsigned char>(word[0])]; id >= 0) ids.push_back(id);
        continue;
      }
      const auto [entry, is_new] = encoded_words.try_emplace(word);
      const size_t first_id = ids.size();
      if (is_new) {
        merger.encode(word, ids);
        entry->second = {first_id, ids.size() - first_id};
      } else {
        const IdRange& earlier = entry->second;
        ids.resize(first_id + earlier.count);
        std::copy_n(ids.begin() + static_cast<std::ptrdiff_t>(earlier.begin), earlier.count,
                    ids.begin() + static_cast<std::ptrdiff_t>(first_id));
      }
    }
    return ids;
  }

  std::vector<std::string> pieces_;
  std::vector<detail::PieceMerge> merges_;
  MergeTable table_;
  PreTokenizer pre_tokenizer_;
  std::array<int32_t, 256> bytes_{};  // ids of the bytes; -1: none
};

}  // namespace

std::unique_ptr<Tokenizer> detail::make_byte_pair(std::vector<std::string> pieces,
                                                  std::vector<PieceMerge> merges,
                                                  PreTokenizer pre_tokenizer) {
  const auto found = std::find(pieces.begin(), pieces.end(), end_of_text);
  auto end = found == pieces.end() ? -1 : static_cast<int32_t>(found - pieces.begin());
  for (const PieceMerge& merge : merges) {
    if (merge.into == end) end = -1;  // a token that a merge makes is not special
  }
  return std::make_unique<BytePairTokenizer>(std::move(pieces), std::move(merges), end, pre_tokenizer);
}

namespace {

const BytePairTokenizer& as_byte_pair(const Tokenizer& tokenizer) {
  const auto* pairs = dynamic_cast<const BytePairTokenizer*>(&tokenizer);
  if (pairs == nullptr)
    fail("byte pairs: this is a tokenizer of the kind ", tokenizer.kind(),
         ", which has no vocab.json and merges.txt. Use one of the kind byte_pair.");
  return *pairs;
}

}  // namespace

BytePairLists byte_pair_lists(const Tokenizer& tokenizer) {
  const BytePairTokenizer& pairs = as_byte_pair(tokenizer);
  BytePairLists out{
      .tokens = detail::spelled_pieces(pairs.pieces()), .merges = {}, .pre_tokenizer = pairs.pre_tokenizer()};
  const std::string lines = detail::byte_pair_lines(pairs.pieces(), pairs.merges());
  for (const std::string_view line : split_lines(lines)) out.merges.emplace_back(line);
  for (size_t id = 0; id < pairs.pieces().size(); ++id) {
    if (pairs.pieces()[id].size() > 1) out.special.emplace(static_cast<int32_t>(id), pairs.pieces()[id]);
  }
  for (const detail::PieceMerge& merge : pairs.merges()) out.special.erase(merge.into);
  return out;
}

BytePairFiles byte_pair_files(const Tokenizer& tokenizer) {
  const BytePairTokenizer& pairs = as_byte_pair(tokenizer);
  if (pairs.pre_tokenizer() != PreTokenizer::gpt2)
    fail(
        "byte pairs: vocab.json and merges.txt belong to words that end as in GPT-2, and here each digit is "
        "a "
        "word of its own. Use a tokenizer with GPT-2's words.");
  return {.vocabulary = detail::byte_pair_json(pairs.pieces()),
          .merges = "#version: 0.2\n" + detail::byte_pair_lines(pairs.pieces(), pairs.merges())};
}

}  // namespace heed
