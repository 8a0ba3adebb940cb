// The result of scoring a test split: scores, samples of outputs, the confusion matrix of a classifier.
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "heed/train/metrics/scores.h"

namespace heed {

/// An output of a model beside what it was given and what was expected; the reference may be empty.
struct ReportSample {
  std::string source{};      ///< what the model was given
  std::string reference{};   ///< what was expected
  std::string hypothesis{};  ///< what the model gave
};

/// Confusion matrix of a classifier: rows are true classes, columns are predictions.
struct Confusion {
  std::vector<std::string> labels{};  ///< names of the classes, in the order of rows and columns
  std::vector<int64_t> counts{};      ///< [labels, labels]
  /// The number of examples that were counted.
  int64_t total() const { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }
};

/// The result of scoring a test split.
struct Evaluation {
  Scores scores;                          ///< on the whole test split
  std::vector<std::string> notes;         ///< lines of text, such as a metric's signature
  std::vector<ReportSample> samples;      ///< some outputs, for the report
  std::vector<ReportSample> sentences{};  ///< every test sentence of a translator, with its output
  std::optional<Confusion> confusion;     ///< confusion matrix of a classifier; else empty
};

}  // namespace heed
