// Learns byte pairs from a text.
#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "heed/core/parallel/thread_pool.h"
#include "heed/data/tokenizers/byte_pair.h"

namespace heed {
namespace {

/// A distinct word and its count.
using CountedWord = std::pair<std::string_view, int64_t>;

using WordCounts = std::unordered_map<std::string_view, int64_t>;

/// The distinct words of at least two bytes, in byte order, which does not depend on a hash table.
std::vector<CountedWord> count_words(std::string_view text) {
  const std::vector<size_t> cuts = detail::byte_pair_cuts(text);
  std::vector<WordCounts> counts(cuts.size() - 1);  // one for each part of the text
  parallel_for(static_cast<int64_t>(counts.size()), [&](int64_t index) {
    const auto i = static_cast<size_t>(index);
    const std::string_view part = text.substr(cuts[i], cuts[i + 1] - cuts[i]);
    for (size_t begin = 0; begin < part.size();) {
      const size_t end = byte_pair_word(part, begin);
      ++counts[i][part.substr(begin, end - begin)];
      begin = end;
    }
  });
  for (size_t i = 1; i < counts.size(); ++i) {
    for (const auto& [word, count] : counts[i]) counts[0][word] += count;
  }
  std::vector<CountedWord> words;
  for (const CountedWord word : counts[0]) {
    if (word.first.size() >= 2) words.push_back(word);
  }
  std::sort(words.begin(), words.end());
  return words;
}

using Pair = uint64_t;  // left << 32 | right: ordered as the ids

Pair pair_of(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(left) << 32) | static_cast<uint32_t>(right);
}

/// A place in TokenText.
using TokenPlace = uint32_t;

/// The distinct words as tokens. A word of n bytes has n places, whatever its tokens are, so a merge moves
/// nothing. The place of a token's first byte holds its id, the place of its last byte the complement of the
/// id
/// (~id); places between them, and between words, hold markers.
class TokenText {
 public:
  explicit TokenText(const std::vector<CountedWord>& words) {
    std::array<int32_t, 256> id_of{};
    for (size_t id = 0; id < 256; ++id)
      id_of[static_cast<unsigned char>(detail::byte_pair_bytes()[id])] = static_cast<int32_t>(id);
    lengths_.assign(256, 1);
    size_t size = 1;
    for (const CountedWord& word : words) size += word.first.size() + 1;
    if (size > std::numeric_limits<TokenPlace>::max()) {
      fail(Fault::data, "byte pairs: the distinct words of the text have ", size, " bytes; at most ",
           std::numeric_limits<TokenPlace>::max(), " can be learned from. Give a part of the text.");
    }
    places_.reserve(size);
    places_.push_back(border);
    for (const auto& [word, count] : words) {
      starts_.push_back(static_cast<TokenPlace>(places_.size()));
      counts_.push_back(count);
      for (const char c : word) places_.push_back(id_of[static_cast<unsigned char>(c)]);
      places_.push_back(border);
    }
  }

  TokenPlace size() const { return static_cast<TokenPlace>(places_.size()); }
  /// The id of the token that begins at this place; negative where no token begins.
  int32_t token(TokenPlace at) const { return places_[at]; }
  /// The place where the next token of the word begins; 0 behind the last one.
  TokenPlace next(TokenPlace at) const {
    const TokenPlace end = at + lengths_[static_cast<size_t>(places_[at])];
    return places_[end] == border ? 0 : end;
  }
  /// The place where the token before this one begins; 0 before the first one of a word.
  TokenPlace previous(TokenPlace at) const {
    const int32_t left_end = places_[at - 1];
    if (left_end == border) return 0;
    return left_end >= 0 ? at - 1 : at - lengths_[static_cast<size_t>(~left_end)];
  }
  /// The number of occurrences of the word that has this place. `word` is a hint, the index of this word or
  /// of an earlier one, and becomes the index of this word.
  int64_t count(TokenPlace at, size_t& word) const {
    if (word + 1 < starts_.size() && starts_[word + 1] <= at) {
      const auto later_words = starts_.begin() + static_cast<std::ptrdiff_t>(word) + 1;
      word = static_cast<size_t>(std::upper_bound(later_words, starts_.end(), at) - starts_.begin()) - 1;
    }
    return counts_[word];
  }

  /// Records the length of the token `into`, the sum of both.
  void add_token(int32_t left, int32_t right, int32_t into) {
    if (static_cast<size_t>(into) == lengths_.size())
      lengths_.push_back(lengths_[static_cast<size_t>(left)] + lengths_[static_cast<size_t>(right)]);
  }
  /// Replaces the token at this place and the next one by the token `into`.
  void merge(TokenPlace at, int32_t into) {
    places_[next(at)] = inside;
    places_[at] = into;
    places_[at + lengths_[static_cast<size_t>(into)] - 1] = ~into;
  }

 private:
  // Markers: between words, and inside of a token. Ids are below 1,000,000, so these are no complements of
  // ids.
  static constexpr int32_t border = std::numeric_limits<int32_t>::min(), inside = border + 1;

  std::vector<int32_t> places_;
  std::vector<TokenPlace> starts_;  // first place of each word
  std::vector<int64_t> counts_;     // number of occurrences of each word
  std::vector<uint32_t> lengths_;   // bytes of each token, by id
};

/// Count of a pair, and the head of the list of its occurrences, which PairCounts links.
struct PairEntry {
  static constexpr Pair none = ~Pair{0};
  Pair pair = none;
  int64_t count = 0;
  TokenPlace first = 0;    // place of the list's first occurrence; 0: there is none
  bool has_grown = false;  // whether the count has grown since the last settle()
};

/// Entries by pair: a hash table with open addressing, since a text without spaces has millions of pairs.
class PairTable {
 public:
  PairTable() : entries_(1024) {}

  /// The entry of a pair, added if there is none; the reference is valid until the next call.
  PairEntry& of(Pair pair) {
    PairEntry* entry = &entries_[slot_of(pair)];
    if (entry->pair == pair) return *entry;
    if (4 * ++num_used_ > 3 * entries_.size()) {
      rehash();
      entry = &entries_[slot_of(pair)];
    }
    entry->pair = pair;
    return *entry;
  }
  int64_t count(Pair pair) const {
    const PairEntry& entry = entries_[slot_of(pair)];
    return entry.pair == pair ? entry.count : 0;
  }

 private:
  /// Index of the pair's entry, or of the free one where it belongs (linear probing).
  size_t slot_of(Pair pair) const {
    const size_t mask = entries_.size() - 1;
    size_t slot = static_cast<size_t>((pair * 0x9E3779B97F4A7C15u) >> 24) & mask;
    while (entries_[slot].pair != PairEntry::none && entries_[slot].pair != pair) slot = (slot + 1) & mask;
    return slot;
  }

  /// Drops pairs that no longer occur, and doubles the table where many remain.
  void rehash() {
    const auto num_live = static_cast<size_t>(std::count_if(
        entries_.begin(), entries_.end(), [](const PairEntry& entry) { return entry.count > 0; }));
    std::vector<PairEntry> old(2 * num_live > entries_.size() ? 2 * entries_.size() : entries_.size());
    old.swap(entries_);
    num_used_ = num_live + 1;  // with the pair that of() is about to add
    for (const PairEntry& entry : old) {
      if (entry.count > 0) entries_[slot_of(entry.pair)] = entry;
    }
  }

  std::vector<PairEntry> entries_;  // a power of two of them
  size_t num_used_ = 0;
};

/// Counts and occurrences of all pairs, and the most frequent of them. A merge visits the occurrences of its
/// pair and the tokens beside them alone, so its time does not grow with the length of words.
class PairCounts {
 public:
  PairCounts(const std::vector<CountedWord>& words, int64_t min_frequency)
      : text_(words),
        min_frequency_(min_frequency),
        next_occurrence_(text_.size(), 0),
        previous_occurrence_(text_.size(), 0) {
    size_t word = 0;
    for (TokenPlace left = 1; left < text_.size(); ++left) {
      if (text_.token(left) < 0) continue;
      if (const TokenPlace right = text_.next(left); right != 0) add(left, right, text_.count(left, word));
    }
    settle();
  }

  struct Best {
    int32_t left = 0, right = 0;
    int64_t count = 0;  // 0: no pair is frequent enough
  };

  /// The most frequent pair, in ties that with the smaller ids.
  Best best() {
    while (!heap_.empty()) {
      const auto [count, pair] = heap_.front();
      const int64_t present_count = pairs_.count(pair);
      if (present_count == count)
        return {static_cast<int32_t>(pair >> 32), static_cast<int32_t>(pair & 0xFFFFFFFF), count};
      std::pop_heap(heap_.begin(), heap_.end());  // merges of other pairs have lowered its count
      heap_.pop_back();
      push(pair, present_count);
    }
    return {};
  }

  /// Merges every occurrence of the pair, in each word from the left.
  void merge(const Best& pair, int32_t into) {
    text_.add_token(pair.left, pair.right, into);
    occurrences_.clear();
    const TokenPlace first = pairs_.of(pair_of(pair.left, pair.right)).first;
    for (TokenPlace left = first; left != 0; left = next_occurrence_[left]) occurrences_.push_back(left);
    std::sort(occurrences_.begin(), occurrences_.end());
    size_t word = 0;
    for (const TokenPlace left : occurrences_) {
      // In "aaa" the second pair is gone once the first is merged.
      if (text_.token(left) != pair.left) continue;
      const TokenPlace right = text_.next(left);
      if (right == 0 || text_.token(right) != pair.right) continue;
      const int64_t count = text_.count(left, word);
      const TokenPlace previous = text_.previous(left), next = text_.next(right);
      if (previous != 0) remove(previous, left, count);
      if (next != 0) remove(right, next, count);
      remove(left, right, count);
      text_.merge(left, into);
      if (previous != 0) add(previous, left, count);
      if (next != 0) add(left, next, count);
    }
    settle();
  }

 private:
  struct HeapEntry {
    int64_t count;
    Pair pair;
    bool operator<(const HeapEntry& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  PairEntry& entry_of(TokenPlace left, TokenPlace right) {
    return pairs_.of(pair_of(text_.token(left), text_.token(right)));
  }

  /// Adds the occurrence of the tokens at these places, in a word that occurs `count` times, to its pair's
  /// list.
  void add(TokenPlace left, TokenPlace right, int64_t count) {
    PairEntry& entry = entry_of(left, right);
    entry.count += count;
    if (!entry.has_grown) grown_.push_back(entry.pair);
    entry.has_grown = true;
    previous_occurrence_[left] = 0;
    next_occurrence_[left] = entry.first;
    if (entry.first != 0) previous_occurrence_[entry.first] = left;
    entry.first = left;
  }

  /// Removes the occurrence of the tokens at these places from its pair's list.
  void remove(TokenPlace left, TokenPlace right, int64_t count) {
    PairEntry& entry = entry_of(left, right);
    entry.count -= count;
    const TokenPlace previous = previous_occurrence_[left], next = next_occurrence_[left];
    (previous != 0 ? next_occurrence_[previous] : entry.first) = next;
    if (next != 0) previous_occurrence_[next] = previous;
  }

  /// Pushes a pair on the heap if it is frequent enough.
  void push(Pair pair, int64_t count) {
    if (count < min_frequency_) return;
    heap_.push_back({count, pair});
    std::push_heap(heap_.begin(), heap_.end());
  }

  /// Pushes pairs whose counts have grown on the heap. Counts that have shrunk stay there until best()
  /// corrects them.
  void settle() {
    for (const Pair pair : grown_) {
      PairEntry& entry = pairs_.of(pair);
      entry.has_grown = false;
      push(pair, entry.count);
    }
    grown_.clear();
  }

  TokenText text_;
  const int64_t min_frequency_;
  PairTable pairs_;
  std::vector<TokenPlace> next_occurrence_,
      previous_occurrence_;              // lists, by the place of the left token; 0: end
  std::vector<HeapEntry> heap_;          // pairs with counts that may be too high
  std::vector<Pair> grown_;              // pairs for settle()
  std::vector<TokenPlace> occurrences_;  // places of the pair that merge() merges
};

}  // namespace

std::unique_ptr<Tokenizer> train_byte_pair(std::string_view text, const BytePairOptions& options) {
  if (options.size < 257 || options.size > 1000000) {
    fail("byte pairs: size = ", options.size,
         ". It must be 257 (every byte, and the end of text) to 1000000.");
  }
  if (options.min_frequency < 1)
    fail("byte pairs: min_frequency = ", options.min_frequency, ". It must be at least 1.");
  if (text.empty()) fail(Fault::data, "byte pairs: the text is empty, so there is no pair to learn.");
  std::vector<std::string> pieces;
  std::unordered_map<std::string, int32_t> ids;
  const auto id_of = [&](std::string bytes) {
    const auto [entry, is_new] = ids.try_emplace(std::move(bytes), static_cast<int32_t>(pieces.size()));
    if (is_new) pieces.push_back(entry->first);
    return entry->second;
  };
  for (const char byte : detail::byte_pair_bytes()) id_of(std::string(1, byte));
  PairCounts counts(count_words(text), options.min_frequency);
  std::vector<detail::PieceMerge> merges;
  while (static_cast<int64_t>(pieces.size()) + 1 < options.size) {
    const PairCounts::Best best = counts.best();
    if (best.count < options.min_frequency) break;
    // Two merges whose bytes are equal make one token.
    const int32_t into =
        id_of(pieces[static_cast<size_t>(best.left)] + pieces[static_cast<size_t>(best.right)]);
    merges.push_back({best.left, best.right, into});
    counts.merge(best, into);
  }
  if (!ids.contains(std::string(end_of_text))) pieces.emplace_back(end_of_text);
  return detail::make_byte_pair(std::move(pieces), std::move(merges));
}

}  // namespace heed
