// Baselines: most frequent label, byte n-grams, histograms.
#include "heed/data/baselines.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heed/core/io/number_text.h"

namespace heed {
namespace {

constexpr int hash_bits = 18;  // buckets of n-grams longer than a byte: 2^18

/// Classes that occur in either set, at least two.
int64_t num_classes(const Sequences& train_set, const Sequences& test_set) {
  uint8_t max_label = 1;
  for (const Sequences* set : {&train_set, &test_set}) {
    for (const uint8_t label : set->labels) max_label = std::max(max_label, label);
  }
  return max_label + 1;
}

/// Finds the hash buckets of an example's byte n-grams.
class ByteNgrams {
 public:
  ByteNgrams(int64_t length, NgramFeature feature)
      : length_(static_cast<size_t>(length)),
        counts_repeats_(feature == NgramFeature::frequency),
        buckets_(length == 1 ? 256 : size_t{1} << hash_bits) {
    if (!counts_repeats_) last_call_.assign(buckets_, 0);
  }
  size_t buckets() const { return buckets_; }

  /// Calls visit(bucket) for each n-gram of an example; for presence, once for each bucket.
  template <class Visit>
  void operator()(const Sequences& set, int64_t example, Visit visit) {
    ++call_;
    for (int64_t part = 0; part < set.parts; ++part) {
      const std::string_view text = set.at(example, part);
      for (size_t begin = 0; begin + length_ <= text.size(); ++begin) {
        const size_t bucket = bucket_of(text.substr(begin, length_));
        if (!counts_repeats_) {
          if (last_call_[bucket] == call_) continue;
          last_call_[bucket] = call_;
        }
        visit(bucket);
      }
    }
  }

 private:
  /// The byte itself, or the upper bits of a multiplicative hash (the golden ratio times 2^64).
  static size_t bucket_of(std::string_view ngram) {
    if (ngram.size() == 1) return static_cast<uint8_t>(ngram[0]);
    uint64_t hash = 0;
    for (const char byte : ngram) hash = (hash << 8 | static_cast<uint8_t>(byte)) * 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(hash >> (64 - hash_bits));
  }

  size_t length_;
  bool counts_repeats_;
  size_t buckets_;
  std::vector<uint32_t> last_call_;  // per bucket: the last call that visited it
  uint32_t call_ = 0;                // number of the current call, from 1
};

/// Cosine of the byte histograms of an example's two parts.
double cosine(const Sequences& set, int64_t example) {
  std::array<double, 256> counts[2]{};
  for (int64_t part = 0; part < 2; ++part) {
    for (const char byte : set.at(example, part)) ++counts[part][static_cast<uint8_t>(byte)];
  }
  double dot = 0, first_square = 0, second_square = 0;
  for (size_t i = 0; i < 256; ++i) {
    dot += counts[0][i] * counts[1][i];
    first_square += counts[0][i] * counts[0][i];
    second_square += counts[1][i] * counts[1][i];
  }
  return first_square > 0 && second_square > 0 ? dot / std::sqrt(first_square * second_square) : 0;
}

}  // namespace

double majority(const Sequences& train_set, const Sequences& test_set) {
  std::vector<int64_t> label_counts(static_cast<size_t>(num_classes(train_set, test_set)));
  for (const uint8_t label : train_set.labels) ++label_counts[label];
  const int64_t commonest = std::max_element(label_counts.begin(), label_counts.end()) - label_counts.begin();
  return accuracy_of(test_set, [&](int64_t) { return commonest; });
}

double byte_ngrams(const Sequences& train_set, const Sequences& test_set, int64_t length,
                   NgramFeature feature) {
  if (train_set.count() == 0) return 0;
  const auto classes = static_cast<size_t>(num_classes(train_set, test_set));
  ByteNgrams ngrams(length, feature);
  // Naive Bayes with add-one smoothing: all counts begin at 1.
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
  const std::vector<std::vector<double>>& log_likelihoods = counts;
  std::vector<double> score(classes);
  return accuracy_of(test_set, [&](int64_t i) {
    for (size_t label = 0; label < classes; ++label) score[label] = std::log(prior[label]);
    ngrams(test_set, i, [&](size_t bucket) {
      for (size_t label = 0; label < classes; ++label) score[label] += log_likelihoods[label][bucket];
    });
    return std::max_element(score.begin(), score.end()) - score.begin();
  });
}

double histogram_cosine(const Sequences& train_set, const Sequences& test_set) {
  std::vector<std::pair<double, uint8_t>> by_cosine;
  for (int64_t i = 0; i < train_set.count(); ++i)
    by_cosine.emplace_back(cosine(train_set, i), train_set.labels[static_cast<size_t>(i)]);
  std::sort(by_cosine.begin(), by_cosine.end());
  // The rule predicts 1 above the threshold; below all cosines it predicts 1 for every example.
  auto correct =
      static_cast<int64_t>(std::count(train_set.labels.begin(), train_set.labels.end(), uint8_t{1}));
  int64_t best = correct;
  double threshold = -1;
  for (size_t i = 0; i < by_cosine.size(); ++i) {
    correct += by_cosine[i].second == 0 ? 1 : -1;
    // No threshold lies between equal cosines.
    const bool tied = i + 1 < by_cosine.size() && by_cosine[i + 1].first == by_cosine[i].first;
    if (!tied && correct > best) {
      best = correct;
      threshold = by_cosine[i].first;
    }
  }
  return accuracy_of(test_set, [&](int64_t i) { return cosine(test_set, i) > threshold ? 1 : 0; });
}

std::string to_string(const std::vector<Baseline>& baselines) {
  std::string out;
  for (const Baseline& baseline : baselines)
    out += text(out.empty() ? "" : ", ", baseline.name, " ", formatted("%.3f", baseline.accuracy));
  return out;
}

}  // namespace heed
