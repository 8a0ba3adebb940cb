// Learns byte pairs from a text.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "heed/core/parallel/thread_pool.h"
#include "heed/data/tokenizers/byte_pair.h"

namespace heed {
namespace {

/// A distinct word as tokens, and its count.
struct CountedWord {
  std::vector<int32_t> ids;
  int64_t count = 0;
};

using WordCounts = std::unordered_map<std::string_view, int64_t>;

/// The distinct words of the text in byte order, which does not depend on a hash table.
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
  std::vector<std::pair<std::string_view, int64_t>> sorted(parts[0].begin(), parts[0].end());
  std::sort(sorted.begin(), sorted.end());
  std::array<int32_t, 256> id_of{};
  for (size_t id = 0; id < 256; ++id)
    id_of[static_cast<unsigned char>(detail::byte_pair_bytes()[id])] = static_cast<int32_t>(id);
  std::vector<CountedWord> words;
  words.reserve(sorted.size());
  for (const auto& [word, count] : sorted) {
    if (word.size() < 2) continue;
    CountedWord& made = words.emplace_back();
    made.count = count;
    for (const char c : word) made.ids.push_back(id_of[static_cast<unsigned char>(c)]);
  }
  return words;
}

using Pair = uint64_t;  // left << 32 | right: ordered as the ids

Pair pair_of(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(left) << 32) | static_cast<uint32_t>(right);
}

/// Counts of all pairs, and the most frequent of them.
class PairCounts {
 public:
  explicit PairCounts(std::vector<CountedWord> words) : words_(std::move(words)) {
    for (size_t word = 0; word < words_.size(); ++word) change(word, words_[word].count);
    settle();
  }

  struct Best {
    int32_t left = 0, right = 0;
    int64_t count = 0;  // 0: no pair is left
  };

  Best best() {
    while (!waiting_.empty()) {
      const auto [count, pair] = waiting_.front();
      const auto found = pairs_.find(pair);
      if (found != pairs_.end() && found->second.count == count)
        return {static_cast<int32_t>(pair >> 32), static_cast<int32_t>(pair & 0xFFFFFFFF), count};
      std::pop_heap(waiting_.begin(), waiting_.end());  // an outdated entry
      waiting_.pop_back();
    }
    return {};
  }

  /// Merges every occurrence of the pair.
  void merge(const Best& pair, int32_t into) {
    std::vector<uint32_t> where = std::move(pairs_[pair_of(pair.left, pair.right)].words);
    std::sort(where.begin(), where.end());
    where.erase(std::unique(where.begin(), where.end()), where.end());
    for (const uint32_t word : where) {
      change(word, -words_[word].count);
      std::vector<int32_t>& ids = words_[word].ids;
      size_t to = 0;
      for (size_t from = 0; from < ids.size(); ++to) {
        const bool both = from + 1 < ids.size() && ids[from] == pair.left && ids[from + 1] == pair.right;
        ids[to] = both ? into : ids[from];
        from += both ? 2 : 1;
      }
      ids.resize(to);
      change(word, words_[word].count);
    }
    settle();
  }

 private:
  struct Place {
    int64_t count = 0;
    bool changed = false;
    std::vector<uint32_t> words;  // words with this pair, and some that lost it
  };
  struct Waiting {
    int64_t count;
    Pair pair;
    bool operator<(const Waiting& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  /// Adds `by` to the counts of a word's pairs.
  void change(size_t word, int64_t by) {
    const std::vector<int32_t>& ids = words_[word].ids;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const Pair pair = pair_of(ids[i], ids[i + 1]);
      Place& place = pairs_[pair];
      place.count += by;
      if (by > 0 && (place.words.empty() || place.words.back() != word))
        place.words.push_back(static_cast<uint32_t>(word));
      if (!place.changed) changed_.push_back(pair);
      place.changed = true;
    }
  }

  /// Pushes pairs with changed counts on the heap; removes those that no longer occur.
  void settle() {
    for (const Pair pair : changed_) {
      const auto found = pairs_.find(pair);
      found->second.changed = false;
      if (found->second.count == 0) {
        pairs_.erase(found);
        continue;
      }
      waiting_.push_back({found->second.count, pair});
      std::push_heap(waiting_.begin(), waiting_.end());
    }
    changed_.clear();
  }

  std::vector<CountedWord> words_;
  std::unordered_map<Pair, Place> pairs_;
  std::vector<Waiting> waiting_;  // a heap
  std::vector<Pair> changed_;
};

}  // namespace

std::unique_ptr<Tokenizer> train_byte_pair(std::string_view text, const BytePairOptions& options) {
  if (options.size < 257 || options.size > 1000000) {
    fail("byte pairs: size = ", options.size,
         ". It must be 257 (every byte, and the end of text) to 1000000.");
  }
  if (options.minimum < 1) fail("byte pairs: minimum = ", options.minimum, ". It must be at least 1.");
  if (text.empty()) fail(Fault::data, "byte pairs: the text is empty, so there is no pair to learn.");
  std::vector<std::string> pieces;
  std::unordered_map<std::string, int32_t> ids;
  const auto id_of = [&](std::string bytes) {
    const auto [entry, fresh] = ids.try_emplace(std::move(bytes), static_cast<int32_t>(pieces.size()));
    if (fresh) pieces.push_back(entry->first);
    return entry->second;
  };
  for (const char byte : detail::byte_pair_bytes()) id_of(std::string(1, byte));
  PairCounts counts(count_words(text));
  std::vector<detail::PieceMerge> merges;
  while (static_cast<int64_t>(pieces.size()) + 1 < options.size) {
    const PairCounts::Best best = counts.best();
    if (best.count < options.minimum) break;
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
