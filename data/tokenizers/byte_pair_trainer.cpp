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
  std::vector<WordCounts> parts(cuts.size() - 1);
  parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t part) {
    const auto which = static_cast<size_t>(part);
    const std::string_view piece = text.substr(cuts[which], cuts[which + 1] - cuts[which]);
    for (size_t at = 0; at < piece.size();) {
      const size_t after = byte_pair_word(piece, at);
      ++parts[which][piece.substr(at, after - at)];
      at = after;
    }
  });
  for (size_t part = 1; part < parts.size(); ++part) {
    for (const auto& [word, count] : parts[part]) parts[0][word] += count;
  }
  std::vector<CountedWord> words;
  for (const auto& one : parts[0]) {
    if (one.first.size() >= 2) words.push_back(one);
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
/// nothing: a token has its id at the place of its first byte, and where it has several bytes the complement
/// of the id at that of its last one.
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
  /// The id of the token that begins at this place; negative where none does.
  int32_t token(TokenPlace at) const { return places_[at]; }
  /// The place where the next token of the word begins; 0 behind the last one.
  TokenPlace next(TokenPlace at) const {
    const TokenPlace after = at + lengths_[static_cast<size_t>(places_[at])];
    return places_[after] == border ? 0 : after;
  }
  /// The place where the token before this one begins; 0 before the first one of a word.
  TokenPlace before(TokenPlace at) const {
    const int32_t last = places_[at - 1];
    if (last == border) return 0;
    return last >= 0 ? at - 1 : at - lengths_[static_cast<size_t>(~last)];
  }
  /// The number of occurrences of the word that has this place. `word` is its index or that of an earlier
  /// word, and becomes its index.
  int64_t count(TokenPlace at, size_t& word) const {
    if (word + 1 < starts_.size() && starts_[word + 1] <= at) {
      const auto from = starts_.begin() + static_cast<std::ptrdiff_t>(word) + 1;
      word = static_cast<size_t>(std::upper_bound(from, starts_.end(), at) - starts_.begin()) - 1;
    }
    return counts_[word];
  }

  /// Declares that `into` has the bytes of both tokens.
  void declare(int32_t left, int32_t right, int32_t into) {
    if (static_cast<size_t>(into) == lengths_.size())
      lengths_.push_back(lengths_[static_cast<size_t>(left)] + lengths_[static_cast<size_t>(right)]);
  }
  /// Makes one token of the one at this place and the next.
  void merge(TokenPlace at, int32_t into) {
    places_[next(at)] = inside;
    places_[at] = into;
    places_[at + lengths_[static_cast<size_t>(into)] - 1] = ~into;
  }

 private:
  // No complements of ids, which are below 1,000,000.
  static constexpr int32_t border = std::numeric_limits<int32_t>::min(), inside = border + 1;

  std::vector<int32_t> places_;
  std::vector<TokenPlace> starts_;  // where each word begins in places_
  std::vector<int64_t> counts_;     // how often each word occurs
  std::vector<uint32_t> lengths_;   // bytes of each token, by id
};

/// Count and occurrences of a pair.
struct PairEntry {
  static constexpr Pair none = ~Pair{0};
  Pair pair = none;
  int64_t count = 0;
  TokenPlace first = 0;    // first of the pair's occurrences, which PairCounts links; 0: there are none
  bool has_grown = false;  // whether the count has grown since the last settle()
};

/// Entries by pair: a hash table with open addressing, since a text without spaces has millions of pairs.
class PairTable {
 public:
  PairTable() : entries_(1024) {}

  /// The entry of a pair, added if there is none; the reference is valid until the next call.
  PairEntry& of(Pair pair) {
    PairEntry* found = &entries_[place(pair)];
    if (found->pair == pair) return *found;
    if (4 * ++used_ > 3 * entries_.size()) {
      grow();
      found = &entries_[place(pair)];
    }
    found->pair = pair;
    return *found;
  }
  int64_t count(Pair pair) const {
    const PairEntry& found = entries_[place(pair)];
    return found.pair == pair ? found.count : 0;
  }

 private:
  size_t place(Pair pair) const {
    const size_t mask = entries_.size() - 1;
    size_t at = static_cast<size_t>((pair * 0x9E3779B97F4A7C15u) >> 24) & mask;
    while (entries_[at].pair != PairEntry::none && entries_[at].pair != pair) at = (at + 1) & mask;
    return at;
  }

  /// Drops pairs that no longer occur, and doubles the table where many remain.
  void grow() {
    const auto live = static_cast<size_t>(
        std::count_if(entries_.begin(), entries_.end(), [](const PairEntry& one) { return one.count > 0; }));
    std::vector<PairEntry> old(2 * live > entries_.size() ? 2 * entries_.size() : entries_.size());
    old.swap(entries_);
    used_ = live + 1;  // and the new one
    for (const PairEntry& one : old) {
      if (one.count > 0) entries_[place(one.pair)] = one;
    }
  }

  std::vector<PairEntry> entries_;
  size_t used_ = 0;
};

/// Counts and occurrences of all pairs, and the most frequent of them. A merge changes what stands beside the
/// occurrences of its pair and nothing else, so its time does not grow with the length of words.
class PairCounts {
 public:
  PairCounts(const std::vector<CountedWord>& words, int64_t min_frequency)
      : text_(words), min_frequency_(min_frequency), after_(text_.size(), 0), before_(text_.size(), 0) {
    size_t word = 0;
    for (TokenPlace at = 1; at < text_.size(); ++at) {
      if (text_.token(at) < 0) continue;
      if (const TokenPlace right = text_.next(at); right != 0) add(at, right, text_.count(at, word));
    }
    settle();
  }

  struct Best {
    int32_t left = 0, right = 0;
    int64_t count = 0;  // 0: no pair is frequent enough
  };

  Best best() {
    while (!heap_.empty()) {
      const auto [count, pair] = heap_.front();
      const int64_t now = pairs_.count(pair);
      if (now == count)
        return {static_cast<int32_t>(pair >> 32), static_cast<int32_t>(pair & 0xFFFFFFFF), count};
      std::pop_heap(heap_.begin(), heap_.end());  // it has lost some since
      heap_.pop_back();
      push(pair, now);
    }
    return {};
  }

  /// Merges every occurrence of the pair, in each word from the left.
  void merge(const Best& pair, int32_t into) {
    text_.declare(pair.left, pair.right, into);
    occurrences_.clear();
    for (TokenPlace at = pairs_.of(pair_of(pair.left, pair.right)).first; at != 0; at = after_[at])
      occurrences_.push_back(at);
    std::sort(occurrences_.begin(), occurrences_.end());
    size_t word = 0;
    for (const TokenPlace at : occurrences_) {
      // In "aaa" the second pair is gone once the first is merged.
      if (text_.token(at) != pair.left) continue;
      const TokenPlace right = text_.next(at);
      if (right == 0 || text_.token(right) != pair.right) continue;
      const int64_t count = text_.count(at, word);
      const TokenPlace left_of = text_.before(at), right_of = text_.next(right);
      if (left_of != 0) remove(left_of, at, count);
      if (right_of != 0) remove(right, right_of, count);
      remove(at, right, count);
      text_.merge(at, into);
      if (left_of != 0) add(left_of, at, count);
      if (right_of != 0) add(at, right_of, count);
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

  Pair pair_at(TokenPlace at, TokenPlace right) const { return pair_of(text_.token(at), text_.token(right)); }

  /// Adds the occurrence of the tokens at these places to its pair.
  void add(TokenPlace at, TokenPlace right, int64_t count) {
    PairEntry& entry = pairs_.of(pair_at(at, right));
    entry.count += count;
    if (!entry.has_grown) grown_.push_back(entry.pair);
    entry.has_grown = true;
    before_[at] = 0;
    after_[at] = entry.first;
    if (entry.first != 0) before_[entry.first] = at;
    entry.first = at;
  }

  /// Removes the occurrence of the tokens at these places from its pair.
  void remove(TokenPlace at, TokenPlace right, int64_t count) {
    PairEntry& entry = pairs_.of(pair_at(at, right));
    entry.count -= count;
    (before_[at] != 0 ? after_[before_[at]] : entry.first) = after_[at];
    if (after_[at] != 0) before_[after_[at]] = before_[at];
  }

  /// Pushes a pair on the heap where it is frequent enough.
  void push(Pair pair, int64_t count) {
    if (count < min_frequency_) return;
    heap_.push_back({count, pair});
    std::push_heap(heap_.begin(), heap_.end());
  }

  /// Pushes pairs whose counts have grown on the heap. Shrunk ones keep their old counts there until best()
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
  std::vector<TokenPlace> after_, before_;  // the occurrences of each pair as a list
  std::vector<HeapEntry> heap_;
  std::vector<Pair> grown_;
  std::vector<TokenPlace> occurrences_;
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
    const auto [entry, fresh] = ids.try_emplace(std::move(bytes), static_cast<int32_t>(pieces.size()));
    if (fresh) pieces.push_back(entry->first);
    return entry->second;
  };
  for (const char byte : detail::byte_pair_bytes()) id_of(std::string(1, byte));
  PairCounts counts(count_words(text), options.min_frequency);
  std::vector<detail::PieceMerge> merges;
  while (static_cast<int64_t>(pieces.size()) + 1 < options.size) {
    const PairCounts::Best best = counts.best();
    if (best.count < options.min_frequency) break;
    // Two merges with the same bytes make the same token.
    const int32_t into =
        id_of(pieces[static_cast<size_t>(best.left)] + pieces[static_cast<size_t>(best.right)]);
    merges.push_back({best.left, best.right, into});
    counts.merge(best, into);
  }
  if (!ids.contains(std::string(end_of_text))) pieces.emplace_back(end_of_text);
  return detail::make_byte_pair(std::move(pieces), std::move(merges));
}

}  // namespace heed
