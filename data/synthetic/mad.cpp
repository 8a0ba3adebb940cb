// Draws the sequences of MAD.
#include "heed/data/synthetic/mad.h"

#include <algorithm>
#include <map>
#include <set>

namespace heed {
namespace {

/// The sequence without its last token; the target of each place is the next token in training, and in the
/// test that one's answer. In `sequence` a target stands at the token that it equals.
ScoredSequence next_tokens(const ScoredSequence& sequence, MadUse use) {
  ScoredSequence out;
  for (size_t i = 0; i + 1 < sequence.tokens.size(); ++i)
    out.add(sequence.tokens[i], (use == MadUse::training ? sequence.tokens : sequence.targets)[i + 1]);
  return out;
}

using Run = std::vector<int64_t>;  // the tokens of a key or a value, in order

/// Draws keys and values.
class FuzzyVocabulary {
 public:
  FuzzyVocabulary(const MadOptions& options, MadUse use, CounterRng& rng)
      : options_(options), use_(use), rng_(rng), keys_((options.vocabulary - 1) / 2) {}

  Run key() {
    const int64_t size = use_ == MadUse::training ? rng_.between(1, options_.max_key) : options_.max_key;
    return run(size, 0, keys_);
  }
  Run value() {
    const int64_t size = rng_.between(1, options_.max_value);
    return run(size, keys_, options_.vocabulary - 1);
  }

 private:
  /// `size` different tokens of first, ..., end - 1; each order of them is as likely.
  Run run(int64_t size, int64_t first, int64_t end) {
    Run out;
    while (static_cast<int64_t>(out.size()) < size) {
      const int64_t token = first + rng_.below(end - first);
      if (std::find(out.begin(), out.end(), token) == out.end()) out.push_back(token);
    }
    return out;
  }

  const MadOptions& options_;
  MadUse use_;
  CounterRng& rng_;
  int64_t keys_;
};

/// Appends the tokens of a key and its value; the value's are targets if `asked`.
void add_pair(ScoredSequence& out, const Run& key, const Run& value, bool asked) {
  for (const int64_t token : key) out.add(token);
  for (const int64_t token : value) out.add(token, asked ? token : not_scored);
}

}  // namespace

ScoredSequence mad_recall(const MadOptions& options, MadUse use, CounterRng rng) {
  const int64_t plain = options.vocabulary - options.noise_vocabulary, keys = plain / 2,
                pairs = options.length / 2 - 1, never_noise = rng.below(pairs);
  std::vector<int64_t> value_of(static_cast<size_t>(keys), not_scored), shown;
  ScoredSequence out;
  for (int64_t i = 0; i < pairs; ++i) {
    if (i != never_noise && options.noise > 0 && rng.uniform() < options.noise) {
      for (int token = 0; token < 2; ++token) out.add(plain + rng.below(options.noise_vocabulary));
      continue;
    }
    const int64_t key = rng.below(keys);
    int64_t& value = value_of[static_cast<size_t>(key)];
    const bool is_new = value == not_scored;
    if (is_new) {
      value = keys + rng.below(plain - keys);
      shown.push_back(key);
    }
    out.add(key);
    out.add(value, is_new ? not_scored : value);
  }
  const int64_t asked = rng.pick(shown), answer = value_of[static_cast<size_t>(asked)];
  out.add(asked);
  out.add(answer, answer);
  return next_tokens(out, use);
}

ScoredSequence mad_fuzzy_recall(const MadOptions& options, MadUse use, CounterRng rng) {
  FuzzyVocabulary vocabulary(options, use, rng);
  const Run last_key = vocabulary.key(), last_value = vocabulary.value();
  const auto last_size = static_cast<int64_t>(last_key.size() + last_value.size());
  const int64_t end = options.length - last_size - options.max_key - options.max_value,
                due = rng.below(options.length - 2 * last_size);
  std::map<Run, Run> value_of{{last_key, last_value}};
  std::set<Run> shown;
  ScoredSequence pairs;
  for (auto size = int64_t{0}; size < end; size = static_cast<int64_t>(pairs.tokens.size())) {
    const bool is_last_due = size >= due && !shown.contains(last_key);
    const Run key = is_last_due ? last_key : vocabulary.key();
    if (!value_of.contains(key)) value_of.emplace(key, vocabulary.value());
    const bool is_known = !shown.insert(key).second;
    add_pair(pairs, key, value_of[key], is_known);
  }
  add_pair(pairs, last_key, last_value, true);
  ScoredSequence out;
  const auto length = static_cast<size_t>(options.length + 1);
  while (out.tokens.size() + pairs.tokens.size() < length) out.add(options.vocabulary - 1);
  for (size_t i = 0; i < pairs.tokens.size(); ++i) out.add(pairs.tokens[i], pairs.targets[i]);
  return next_tokens(out, use);
}

ScoredSequence mad_selective_copying(const MadOptions& options, CounterRng rng) {
  const int64_t asks = options.vocabulary - 1, blank = options.vocabulary - 2;
  std::vector<int64_t> tokens(static_cast<size_t>(options.copied)), blanks_before(tokens.size());
  for (int64_t& token : tokens) token = rng.below(blank);
  // Each blank is put before one of the tokens, so none lies between the last of them and the one that asks.
  for (int64_t i = 0; i < options.length - 2 * options.copied - 1; ++i)
    ++blanks_before[static_cast<size_t>(rng.below(options.copied))];
  ScoredSequence out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (int64_t n = 0; n < blanks_before[i]; ++n) out.add(blank);
    out.add(tokens[i]);
  }
  out.add(asks);
  for (const int64_t token : tokens) out.add(blank, token);
  return out;
}

ScoredSequence mad_compression(const MadOptions& options, CounterRng rng) {
  const int64_t last = options.vocabulary - 1;
  ScoredSequence out;
  for (int64_t i = 0; i + 1 < options.length; ++i) {
    const int64_t token = rng.below(last);
    out.add(token, token);
  }
  out.add(last, last);
  return out;
}

std::vector<int64_t> mad_memorized_values(const MadOptions& options, uint64_t seed) {
  constexpr uint64_t stream = uint64_t{1} << 61;  // that of no sequence
  const int64_t plain = options.vocabulary - 1, keys = plain / 2;
  std::vector<int64_t> out = shuffled(plain - keys, seed, stream);
  out.resize(static_cast<size_t>(keys));
  for (int64_t& value : out) value += keys;
  return out;
}

ScoredSequence mad_memorization(const MadOptions& options, const std::vector<int64_t>& values,
                                CounterRng rng) {
  ScoredSequence out;
  for (int64_t i = 0; i < options.length / 2; ++i) {
    const int64_t key = rng.below(static_cast<int64_t>(values.size()));
    out.add(key);
    out.add(options.vocabulary - 1, values[static_cast<size_t>(key)]);
  }
  return out;
}

}  // namespace heed
