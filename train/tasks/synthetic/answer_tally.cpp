// Accuracies and loss of predicted tokens.
#include "heed/train/tasks/synthetic/answer_tally.h"

#include <algorithm>

#include "heed/autograd/comparisons.h"
#include "heed/autograd/ops.h"

namespace heed {
namespace {

/// The mean over tokens that are targets or predictions of the share of their places that are right.
double mean_over_tokens(const std::vector<double>& predicted, const std::vector<double>& targets,
                        int64_t vocabulary) {
  struct Count {
    double asked = 0, right = 0;
    bool is_used = false;  // a target or a prediction
  };
  std::vector<Count> counts(static_cast<size_t>(vocabulary));
  for (size_t i = 0; i < targets.size(); ++i) {
    Count& of_target = counts[static_cast<size_t>(targets[i])];
    ++of_target.asked;
    of_target.right += predicted[i] == targets[i] ? 1 : 0;
    of_target.is_used = counts[static_cast<size_t>(predicted[i])].is_used = true;
  }
  double sum = 0, tokens = 0;
  for (const Count& one : counts) {
    if (!one.is_used) continue;
    sum += one.asked > 0 ? one.right / one.asked : 0;
    ++tokens;
  }
  return sum / std::max(tokens, 1.0);
}

}  // namespace

void AnswerTally::add(const Tensor& logits, const Tensor& targets, int64_t sequences) {
  const std::vector<double> predicted = argmax(logits, 1).to_doubles(), wanted = targets.to_doubles();
  const auto places = static_cast<double>(wanted.size()), weight = static_cast<double>(sequences);
  for (size_t i = 0; i < wanted.size(); ++i) right_ += predicted[i] == wanted[i] ? 1 : 0;
  loss_ += cross_entropy(logits, targets).item() * places;
  places_ += places;
  sequences_ += weight;
  if (kind_ == AccuracyKind::tokens_of_batches)
    sum_of_batches_ += mean_over_tokens(predicted, wanted, vocabulary_) * weight;
}

Scores AnswerTally::scores() const {
  const double places = std::max(places_, 1.0), micro = right_ / places;
  Scores out{.list = {{"accuracy", micro}}, .lower_is_better = false};
  if (kind_ == AccuracyKind::tokens_of_batches)
    out.list = {{"accuracy", sum_of_batches_ / std::max(sequences_, 1.0)}, {"micro_accuracy", micro}};
  out.list.emplace_back("loss", loss_ / places);
  return out;
}

}  // namespace heed
