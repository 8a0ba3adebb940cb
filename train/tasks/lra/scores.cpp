// Scores of models of long inputs: of classes or of tokens.
#include <algorithm>

#include "heed/core/counted_work.h"
#include "heed/train/tasks/lra/lra.h"
#include "heed/train/tasks/lra/token_prediction.h"

namespace heed {
namespace {

constexpr int64_t max_batch_tokens = int64_t{1} << 16;  // limit of a batch that is scored

}  // namespace

std::vector<std::vector<int64_t>> LongTask::scored_together(const Sequences& set, int64_t count) const {
  std::vector<std::pair<int64_t, int64_t>> order;  // length, number: batches hold inputs of similar length
  for (int64_t i = 0; i < count; ++i) order.emplace_back(columns(set, i), i);
  std::sort(order.begin(), order.end());
  std::vector<std::vector<int64_t>> batches;
  for (const auto& [length, number] : order) {
    const auto rows = static_cast<int64_t>(batches.empty() ? 0 : batches.back().size());
    if (rows == 0 || (rows + 1) * set.parts * length > max_batch_tokens) batches.emplace_back();
    batches.back().push_back(number);
  }
  return batches;
}

double LongTask::tokens_of(const Sequences& set, std::span<const std::vector<int64_t>> batches) const {
  double sum = 0;
  for (const std::vector<int64_t>& numbers : batches) {
    for (const int64_t number : numbers) sum += static_cast<double>(columns(set, number));
  }
  return sum;
}

ClassificationTally LongTask::score(Module& model, const Sequences& set, int64_t count) const {
  const NoGrad no_grad;
  ClassificationTally tally(predicts_classes() ? static_cast<int64_t>(classes().size()) : 0);
  const auto batches = scored_together(set, count);
  CountedWork work(tokens_of(set, batches));
  for (const std::vector<int64_t>& numbers : batches) {
    const Batch batch = tensors(set, numbers, drawn_for_scores);
    tally.add(logits(model, batch, {}), batch.tensors[1], batch.weight);
    work.add(tokens_of(set, std::span(&numbers, 1)));
  }
  return tally;
}

Scores LongTask::scores_of(const ClassificationTally& tally) const {
  if (predicts_classes()) return tally.scores();
  return {.list = {{"loss", tally.loss()}, {"accuracy", tally.accuracy()}}, .lower_is_better = true};
}

int64_t LongTask::scored_of(int64_t count) const {
  return options_.whole_batches && count > batch_size_ ? count / batch_size_ * batch_size_ : count;
}

int64_t LongTask::tested_count() const {
  const int64_t all = splits_.test.count();
  return scored_of(options_.scored > 0 ? std::min(options_.scored, all) : all);
}

Scores LongTask::validate(Module& model) const {
  return scores_of(
      score(model, splits_.validation, scored_of(std::min(splits_.validation.count(), options_.validation))));
}

std::vector<ValidationPart> LongTask::validation_cost(Module& model) const {
  const Sequences& set = splits_.validation;
  const auto batches = scored_together(set, scored_of(std::min(set.count(), options_.validation)));
  const auto tokens = [&](const std::vector<int64_t>& numbers) {
    return tokens_of(set, std::span(&numbers, 1));
  };
  const double all_tokens = tokens_of(set, batches);
  // Test inputs are assumed to have the lengths of validation inputs.
  const double test_ratio =
      tokens_of(splits_.test, scored_together(splits_.test, tested_count())) / std::max(all_tokens, 1.0);
  const auto part = [&](const std::vector<int64_t>& numbers, double all) {
    return ValidationPart{
        .compute =
            [this, &model, numbers] {
              const NoGrad no_grad;
              logits(model, tensors(splits_.validation, numbers, drawn_for_scores), {}).to_host();
            },
        .some = tokens(numbers),
        .all = all,
        .test = all * test_ratio};
  };
  if (batches.empty()) return {};
  // Long inputs come last, maybe in a small batch: the batch with most rows times length squared needs most
  // memory. The middle batch represents the shorter ones.
  const auto memory = [&](const std::vector<int64_t>& numbers) {
    const auto columns = static_cast<double>(batch_columns(set, numbers));
    return static_cast<double>(numbers.size()) * columns * columns;
  };
  const auto largest = std::max_element(batches.begin(), batches.end(),
                                        [&](const auto& a, const auto& b) { return memory(a) < memory(b); });
  const double largest_tokens = tokens(*largest);
  if (batch_columns(set, batches.front()) == batch_columns(set, batches.back()))
    return {part(*largest, all_tokens)};
  std::vector<ValidationPart> parts{part(*largest, largest_tokens)};
  if (batches.size() > 1)
    parts.push_back(part(batches[(batches.size() - 1) / 2], all_tokens - largest_tokens));
  return parts;
}

Evaluation LongTask::test(Module& model, const DecodeOptions&) const {
  const Sequences& set = splits_.test;
  const int64_t count = tested_count();
  const ClassificationTally tally = score(model, set, count);
  const std::vector<std::string> names = classes();
  Evaluation out;
  out.scores = scores_of(tally);
  out.notes = {text(count, count < set.count() ? text(" of ", set.count()) : std::string(),
                    " test examples; baselines: ", baseline_words_)};
  if (!predicts_classes()) {
    out.notes.push_back(
        text(static_cast<int64_t>(tally.weight()), " tokens predicted; the loss is in nats a token"));
    return out;
  }
  std::string answers;
  int64_t max_count = 0;
  for (size_t predicted = 0; predicted < names.size(); ++predicted) {
    int64_t num_predicted = 0;
    for (size_t label = 0; label < names.size(); ++label)
      num_predicted += tally.confusion()[label * names.size() + predicted];
    max_count = std::max(max_count, num_predicted);
    answers += text(predicted == 0 ? "" : ", ", names[predicted], " ", num_predicted);
  }
  out.notes.push_back(text("answers     ", answers, max_count == count ? ": always the same" : ""));
  out.confusion = Confusion{.labels = names, .counts = tally.confusion()};
  return out;
}

}  // namespace heed
