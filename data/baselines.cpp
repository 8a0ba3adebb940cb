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
class Runs {
 public:
  Runs(int64_t length, bool times)
      : length_(static_cast<size_t>(length)), times_(times), buckets_(length == 1 ? 256 : hashed_buckets) {
    if (!times) seen_.assign(buckets_, 0);
  }
  size_t buckets() const { return buckets_; }

  template <class F>
  void operator()(const Sequences& set, int64_t example, F f) {
    ++now_;
    for (int64_t part = 0; part < set.parts; ++part) {
      const std::string_view text = set.at(example, part);
      for (size_t at = 0; at + length_ <= text.size(); ++at) {
        uint64_t hash = 0;
        for (size_t i = 0; i < length_; ++i)
          hash = (hash << 8 | static_cast<uint8_t>(text[at + i])) * (length_ > 1 ? 0x9E3779B97F4A7C15u : 1);
        const size_t bucket = length_ > 1 ? static_cast<size_t>(hash >> 46) : static_cast<size_t>(hash);
        if (!times_) {
          if (seen_[bucket] == now_) continue;
          seen_[bucket] = now_;
        }
        f(bucket);
      }
    }
  }

 private:
  size_t length_;
  bool times_;
  size_t buckets_;
  std::vector<uint32_t> seen_;
  uint32_t now_ = 0;
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

double share(int64_t right, const Sequences& test_set) {
  return static_cast<double>(right) / static_cast<double>(std::max<int64_t>(test_set.count(), 1));
}

}  // namespace

double majority(const Sequences& train_set, const Sequences& test_set) {
  std::vector<int64_t> times(static_cast<size_t>(classes_of(train_set, test_set)));
  for (const uint8_t label : train_set.labels) ++times[label];
  const auto commonest = static_cast<uint8_t>(std::max_element(times.begin(), times.end()) - times.begin());
  return share(std::count(test_set.labels.begin(), test_set.labels.end(), commonest), test_set);
}

double byte_runs(const Sequences& train_set, const Sequences& test_set, int64_t length, bool times) {
  if (train_set.count() == 0) return 0;
  const auto classes = static_cast<size_t>(classes_of(train_set, test_set));
  Runs runs(length, times);
  std::vector<std::vector<double>> counts(classes, std::vector<double>(runs.buckets(), 1));
  std::vector<double> prior(classes, 1), sums(classes, static_cast<double>(runs.buckets()));
  for (int64_t i = 0; i < train_set.count(); ++i) {
    const uint8_t label = train_set.labels[static_cast<size_t>(i)];
    ++prior[label];
    runs(train_set, i, [&](size_t bucket) {
      ++counts[label][bucket];
      ++sums[label];
    });
  }
  for (size_t label = 0; label < classes; ++label) {
    for (double& count : counts[label]) count = std::log(count / sums[label]);
  }
  int64_t right = 0;
  std::vector<double> score(classes);
  for (int64_t i = 0; i < test_set.count(); ++i) {
    for (size_t label = 0; label < classes; ++label) score[label] = std::log(prior[label]);
    runs(test_set, i, [&](size_t bucket) {
      for (size_t label = 0; label < classes; ++label) score[label] += counts[label][bucket];
    });
    const auto guess = std::max_element(score.begin(), score.end()) - score.begin();
    right += guess == test_set.labels[static_cast<size_t>(i)] ? 1 : 0;
  }
  return share(right, test_set);
}

double histogram_cosine(const Sequences& train_set, const Sequences& test_set) {
  std::vector<std::pair<double, uint8_t>> all;
  for (int64_t i = 0; i < train_set.count(); ++i)
    all.emplace_back(cosine(train_set, i), train_set.labels[static_cast<size_t>(i)]);
  std::sort(all.begin(), all.end());
  // Predicts 1 above the threshold; at first that is everything.
  auto right = static_cast<int64_t>(std::count(train_set.labels.begin(), train_set.labels.end(), uint8_t{1}));
  int64_t best = right;
  double threshold = -1;
  for (size_t i = 0; i < all.size(); ++i) {
    right += all[i].second == 0 ? 1 : -1;
    const bool tied = i + 1 < all.size() && all[i + 1].first == all[i].first;  // no threshold between equals
    if (!tied && right > best) {
      best = right;
      threshold = all[i].first;
    }
  }
  int64_t hits = 0;
  for (int64_t i = 0; i < test_set.count(); ++i)
    hits += (cosine(test_set, i) > threshold ? 1 : 0) == test_set.labels[static_cast<size_t>(i)] ? 1 : 0;
  return share(hits, test_set);
}

std::string to_string(const std::vector<Baseline>& baselines) {
  std::string out;
  for (const Baseline& anchor : baselines)
    out += text(out.empty() ? "" : ", ", anchor.name, " ", formatted("%.3f", anchor.accuracy));
  return out;
}

}  // namespace heed
