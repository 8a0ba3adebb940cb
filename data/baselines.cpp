// Baselines: most frequent label, byte n-grams, histograms.
#include "heed/data/baselines.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heed/core/io/number_text.h"

namespace heed {
namespace {

constexpr size_t hashed_buckets = size_t{1} << 18;

int64_t classes_of(const Sequences& one, const Sequences& other) {
  uint8_t max_label = 1;
  for (const Sequences* set : {&one, &other}) {
    for (const uint8_t label : set->labels) max_label = std::max(max_label, label);
  }
  return max_label + 1;
}

/// Calls f(bucket) for each byte n-gram of an example, each bucket once unless `times`.
class ByteNgrams {
 public:
  ByteNgrams(int64_t length, bool times)
      : length_(static_cast<size_t>(length)), times_(times), buckets_(length == 1 ? 256 : hashed_buckets) {
    if (!times) seen_.assign(buckets_, 0);
  }
  size_t buckets() const { return buckets_; }

  template <class F>
  void operator()(const Sequences& set, int64_t example, F f) {
    ++example_;
    for (int64_t part = 0; part < set.parts; ++part) {
      const std::string_view text = set.at(example, part);
      for (size_t at = 0; at + length_ <= text.size(); ++at) {
        uint64_t hash = 0;
        for (size_t i = 0; i < length_; ++i)
          hash = (hash << 8 | static_cast<uint8_t>(text[at + i])) * (length_ > 1 ? 0x9E3779B97F4A7C15u : 1);
        const size_t bucket = length_ > 1 ? static_cast<size_t>(hash >> 46) : static_cast<size_t>(hash);
        if (!times_) {
          if (seen_[bucket] == example_) continue;
          seen_[bucket] = example_;
        }
        f(bucket);
      }
    }
  }

 private:
  size_t length_;
  bool times_;
  size_t buckets_;
  std::vector<uint32_t> seen_;  // the call that found each bucket last
  uint32_t example_ = 0;        // number of the current call
};

/// Cosine of the byte histograms of an example's two parts.
double cosine(const Sequences& set, int64_t example) {
  std::array<double, 256> counts[2]{};
  for (int64_t part = 0; part < 2; ++part) {
    for (const char byte : set.at(example, part)) ++counts[part][static_cast<uint8_t>(byte)];
  }
  double both = 0, one = 0, other = 0;
  for (size_t i = 0; i < 256; ++i) {
    both += counts[0][i] * counts[1][i];
    one += counts[0][i] * counts[0][i];
    other += counts[1][i] * counts[1][i];
  }
  return one > 0 && other > 0 ? both / std::sqrt(one * other) : 0;
}

}  // namespace

double majority(const Sequences& train_set, const Sequences& test_set) {
  std::vector<int64_t> times(static_cast<size_t>(classes_of(train_set, test_set)));
  for (const uint8_t label : train_set.labels) ++times[label];
  const int64_t commonest = std::max_element(times.begin(), times.end()) - times.begin();
  return accuracy_of(test_set, [&](int64_t) { return commonest; });
}

double byte_runs(const Sequences& train_set, const Sequences& test_set, int64_t length, bool times) {
  if (train_set.count() == 0) return 0;
  const auto classes = static_cast<size_t>(classes_of(train_set, test_set));
  ByteNgrams ngrams(length, times);
  std::vector<std::vector<double>> counts(classes, std::vector<double>(ngrams.buckets(), 1));
  std::vector<double> prior(classes, 1), sums(classes, static_cast<double>(ngrams.buckets()));
  for (int64_t i = 0; i < train_set.count(); ++i) {
    const uint8_t label = train_set.labels[static_cast<size_t>(i)];
    ++prior[label];
    ngrams(train_set, i, [&](size_t bucket) {
      ++counts[label][bucket];
      ++sums[label];
    });
  }
  for (size_t label = 0; label < classes; ++label) {
    for (double& count : counts[label]) count = std::log(count / sums[label]);
  }
  std::vector<double> score(classes);
  return accuracy_of(test_set, [&](int64_t i) {
    for (size_t label = 0; label < classes; ++label) score[label] = std::log(prior[label]);
    ngrams(test_set, i, [&](size_t bucket) {
      for (size_t label = 0; label < classes; ++label) score[label] += counts[label][bucket];
    });
    return std::max_element(score.begin(), score.end()) - score.begin();
  });
}

double histogram_cosine(const Sequences& train_set, const Sequences& test_set) {
  std::vector<std::pair<double, uint8_t>> all;
  for (int64_t i = 0; i < train_set.count(); ++i)
    all.emplace_back(cosine(train_set, i), train_set.labels[static_cast<size_t>(i)]);
  std::sort(all.begin(), all.end());
  // Predicts 1 above the threshold; at first that is everything.
  auto correct =
      static_cast<int64_t>(std::count(train_set.labels.begin(), train_set.labels.end(), uint8_t{1}));
  int64_t best = correct;
  double threshold = -1;
  for (size_t i = 0; i < all.size(); ++i) {
    correct += all[i].second == 0 ? 1 : -1;
    const bool tied = i + 1 < all.size() && all[i + 1].first == all[i].first;  // no threshold between equals
    if (!tied && correct > best) {
      best = correct;
      threshold = all[i].first;
    }
  }
  return accuracy_of(test_set, [&](int64_t i) { return cosine(test_set, i) > threshold ? 1 : 0; });
}

std::string to_string(const std::vector<Baseline>& baselines) {
  std::string out;
  for (const Baseline& one : baselines)
    out += text(out.empty() ? "" : ", ", one.name, " ", formatted("%.3f", one.accuracy));
  return out;
}

}  // namespace heed
