// Baselines on labelled sequences: accuracies of simple models.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "heed/data/text/labelled_sequences.h"

namespace heed {

/// A simple model and its accuracy.
struct Baseline {
  std::string name;     ///< the features it predicts from: "4-byte runs"
  double accuracy = 0;  ///< share of correct predictions, 0 to 1
};

/// The share of test examples whose label is predict(example number); 0 for an empty set.
template <class Predict>
double accuracy_of(const Sequences& test_set, Predict predict) {
  int64_t correct = 0;
  for (int64_t i = 0; i < test_set.count(); ++i)
    correct += predict(i) == int64_t{test_set.labels[static_cast<size_t>(i)]} ? 1 : 0;
  return static_cast<double>(correct) / static_cast<double>(std::max<int64_t>(test_set.count(), 1));
}

/// Accuracy of always predicting the most frequent label of `train_set`, scored on `test_set`.
double majority(const Sequences& train_set, const Sequences& test_set);

/// Whether an n-gram counts once in each example that has it, or each time: for length 1, the byte histogram.
enum class NgramFeature { presence, frequency };

/// Accuracy of naive Bayes with add-one smoothing over byte n-grams of `length`, fitted to `train_set`,
/// scored on `test_set`. N-grams of several bytes are hashed into 2^18 buckets.
double byte_ngrams(const Sequences& train_set, const Sequences& test_set, int64_t length,
                   NgramFeature feature);

/// For pairs: a threshold on the cosine of both byte histograms, fitted to `train_set`, scored on `test_set`.
double histogram_cosine(const Sequences& train_set, const Sequences& test_set);

/// The baselines in one line: "majority 0.5, 4-byte runs 0.83".
std::string to_string(const std::vector<Baseline>& baselines);

}  // namespace heed
