// Draws the sequences of multi-query associative recall.
#include "heed/data/synthetic/multi_query_recall.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

namespace heed {
namespace {

/// `count` different numbers of first, first + 1, ..., end - 1, in the order in which they are drawn.
std::vector<int64_t> distinct(CounterRng& rng, int64_t count, int64_t first, int64_t end) {
  std::vector<int64_t> out;
  std::unordered_set<int64_t> drawn;
  while (static_cast<int64_t>(out.size()) < count) {
    const int64_t number = first + rng.below(end - first);
    if (drawn.insert(number).second) out.push_back(number);
  }
  return out;
}

/// `count` different gaps of 0 to `places` - 1, in the order of a drawing without replacement in which gap
/// n - 1 has the weight n^(alpha - 1). Exponential times with these rates arrive in that order (Efraimidis
/// and Spirakis 2006), so one pass over the places suffices.
std::vector<int64_t> power_law_gaps(CounterRng& rng, int64_t count, int64_t places, double alpha) {
  std::vector<std::pair<double, int64_t>> arrivals;
  for (int64_t place = 0; place < places; ++place) {
    const double time = -std::log1p(-rng.uniform());
    arrivals.emplace_back(time * std::pow(static_cast<double>(place + 1), 1 - alpha), place);
  }
  std::partial_sort(arrivals.begin(), arrivals.begin() + count, arrivals.end());
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(arrivals[static_cast<size_t>(i)].second);
  return out;
}

}  // namespace

ScoredSequence multi_query_recall(const MultiQueryRecall& options, CounterRng rng) {
  const int64_t half = options.vocabulary / 2, questions = 2 * options.pairs;
  const std::vector<int64_t> keys = distinct(rng, options.pairs, 1, half),
                             values = distinct(rng, options.pairs, half, options.vocabulary),
                             gaps = power_law_gaps(rng, options.pairs, (options.length - questions) / 2,
                                                   options.alpha);
  ScoredSequence out;
  for (size_t i = 0; i < keys.size(); ++i) {
    out.add(keys[i]);
    out.add(values[i]);
  }
  out.tokens.resize(static_cast<size_t>(options.length), 0);
  out.targets.resize(static_cast<size_t>(options.length), not_scored);
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto place = static_cast<size_t>(questions + 2 * gaps[i]);
    out.tokens[place] = static_cast<int32_t>(keys[i]);
    out.targets[place] = static_cast<int32_t>(values[i]);
  }
  if (options.random_filler) {
    // Filler is any token, also a key or a value of this sequence: the published code draws it so.
    for (int32_t& token : out.tokens)
      if (token == 0) token = static_cast<int32_t>(rng.below(options.vocabulary));
  }
  return out;
}

}  // namespace heed
