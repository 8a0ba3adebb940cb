// Edit distance with one row of the table in memory.
#include "heed/train/metrics/edit_distance.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "heed/core/error.h"
#include "heed/data/text/text.h"
#include "heed/train/metrics/whitespace.h"

namespace heed {
namespace {

/// Numbers the words of sentences, so that equal words get equal numbers.
class WordNumbers {
 public:
  std::vector<int64_t> operator()(const std::string& sentence) {
    std::vector<int64_t> numbers;
    for (const std::string_view word : score_words(sentence)) {
      numbers.push_back(
          numbers_.try_emplace(std::string(word), static_cast<int64_t>(numbers_.size())).first->second);
    }
    return numbers;
  }

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

std::vector<int64_t> code_point_numbers(const std::string& sentence) {
  std::vector<int64_t> numbers;
  for (size_t at = 0; at < sentence.size();) {
    numbers.push_back(static_cast<int64_t>(next_code_point(sentence, at)));
  }
  return numbers;
}

/// Sums the edits of all sentences; `units` turns a sentence into numbers to compare.
template <class Units>
ErrorRate error_rate(std::span<const std::string> outputs, std::span<const std::string> references,
                     Units units) {
  check_references("error rate", outputs, references);
  ErrorRate sum;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<int64_t> reference = units(references[i]);
    sum.edits += edit_distance(units(outputs[i]), reference);
    sum.reference_length += static_cast<int64_t>(reference.size());
  }
  return sum;
}

}  // namespace

int64_t edit_distance(std::span<const int64_t> from, std::span<const int64_t> to) {
  // row[j]: distance of the units of `from` read so far from the first j units of `to`.
  std::vector<int64_t> row(to.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (const int64_t unit : from) {
    int64_t diagonal = row[0]++;
    for (size_t j = 1; j < row.size(); ++j) {
      const int64_t substituted = diagonal + (to[j - 1] == unit ? 0 : 1);
      const int64_t deleted = row[j] + 1, inserted = row[j - 1] + 1;
      diagonal = row[j];
      row[j] = std::min({substituted, deleted, inserted});
    }
  }
  return row.back();
}

double ErrorRate::rate() const {
  if (reference_length == 0) return edits == 0 ? 0 : 1;
  return static_cast<double>(edits) / static_cast<double>(reference_length);
}

ErrorRate word_error_rate(std::span<const std::string> outputs, std::span<const std::string> references) {
  WordNumbers numbers;
  return error_rate(outputs, references, [&](const std::string& sentence) { return numbers(sentence); });
}

ErrorRate character_error_rate(std::span<const std::string> outputs,
                               std::span<const std::string> references) {
  return error_rate(outputs, references, code_point_numbers);
}

}  // namespace heed
