// Generates the distinct sentences of the phrasebook.
#include "heed/data/synthetic/phrasebook/phrasebook.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>

#include "heed/core/error.h"
#include "heed/data/synthetic/phrasebook/sentence_patterns.h"

namespace heed::phrases {

Pair compose(CounterRng& rng) {
  const std::array lists = {simple_patterns(), joined_patterns(), asked_patterns()};
  int64_t total = 0;
  for (const auto list : lists) {
    for (const Pattern& pattern : list) total += pattern.weight;
  }
  WordChooser choose(rng);
  while (true) {  // until a pattern fits its choices
    int64_t drawn = rng.below(total);
    for (const auto list : lists) {
      for (const Pattern& pattern : list) {
        const bool is_drawn = drawn >= 0 && drawn < pattern.weight;
        if (is_drawn) {
          Pair pair = pattern.make(choose);
          if (!pair.source.empty()) return pair;
        }
        drawn -= pattern.weight;
      }
    }
  }
}

}  // namespace heed::phrases

namespace heed {
namespace {

constexpr int64_t min_words = 2, max_words = 16;  // blank-separated words of the English side

int64_t num_words(const std::string& text) { return 1 + std::count(text.begin(), text.end(), ' '); }

}  // namespace

std::vector<Pair> phrasebook(const PhrasebookOptions& options) {
  if (options.count < 1 || options.count > 1'000'000) {
    fail("phrasebook: a count of ", options.count, " is outside 1 .. 1000000. Choose one inside.");
  }
  std::vector<Pair> out;
  out.reserve(static_cast<size_t>(options.count));
  std::unordered_set<std::string> seen;
  for (uint64_t number = 0; static_cast<int64_t>(out.size()) < options.count; ++number) {
    CounterRng rng(options.seed, number);
    Pair pair = phrases::compose(rng);
    const int64_t length = num_words(pair.source);
    if (length < min_words || length > max_words || !seen.insert(pair.source).second) continue;
    out.push_back(std::move(pair));
  }
  return out;
}

}  // namespace heed
