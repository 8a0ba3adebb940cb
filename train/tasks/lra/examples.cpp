// Test examples of long inputs by their numbers: tokens, lengths, batches and scores.
#include <algorithm>
#include <numeric>

#include "heed/train/tasks/lra/lra.h"
#include "heed/train/tasks/lra/token_prediction.h"

namespace heed {

std::vector<int32_t> LongTask::places_of(std::string_view bytes) const {
  const auto count = static_cast<int32_t>(static_cast<int64_t>(bytes.size()) / tokens().bytes);
  std::vector<int32_t> out;
  for (int32_t place = 0; place < count; ++place) {
    if (!tokens().drop_zeros || bytes[static_cast<size_t>(place)] != '\0') out.push_back(place);
  }
  return out;
}

std::string LongTask::token_name(uint8_t byte, int64_t) const {
  if (byte == ' ') return "_";
  return byte > 0x20 && byte < 0x7F ? std::string(1, static_cast<char>(byte))
                                    : text("#", static_cast<int64_t>(byte));
}

std::vector<std::string> LongTask::token_names(std::string_view bytes) const {
  std::vector<std::string> names;
  if (options_.pool == Pool::first) names.emplace_back("first");
  for (const int32_t place : places_of(bytes)) {
    const char byte = bytes[static_cast<size_t>(place * tokens().bytes)];
    names.push_back(token_name(static_cast<uint8_t>(byte), place));
  }
  if (names.empty()) names.emplace_back("nothing");
  return names;
}

Sequences LongTask::cut_examples(std::span<const int64_t> numbers, int64_t max_tokens) const {
  const Sequences& set = splits_.test;
  Sequences out{.parts = set.parts, .bytes = "", .ends = {}, .labels = {}};
  const int64_t length = max_tokens > 0 ? std::min(max_tokens, max_tokens_) : max_tokens_;
  for (const int64_t number : numbers) {
    for (int64_t part = 0; part < set.parts; ++part) out.add(first_tokens(set.at(number, part), length));
    out.labels.push_back(set.labels[static_cast<size_t>(number)]);
  }
  return out;
}

int64_t LongTask::test_examples() const { return splits_.test.count(); }

std::vector<int64_t> LongTask::test_lengths(int64_t number, int64_t max_tokens) const {
  const Sequences one = cut_examples(std::span(&number, 1), max_tokens);
  std::vector<int64_t> lengths;
  for (int64_t part = 0; part < one.parts; ++part) {
    const std::string_view bytes = one.at(0, part);
    const auto zeros = tokens().drop_zeros ? std::count(bytes.begin(), bytes.end(), '\0') : 0;
    lengths.push_back(static_cast<int64_t>(bytes.size()) / tokens().bytes - zeros);
    if (keeps_zeros()) lengths.push_back(static_cast<int64_t>(bytes.size()));
  }
  return lengths;
}

ExampleBatch LongTask::test_batch(std::span<const int64_t> numbers, int64_t max_tokens) const {
  const Sequences cut = cut_examples(numbers, max_tokens);
  std::vector<int64_t> all(numbers.size());
  std::iota(all.begin(), all.end(), 0);
  // Which tokens are hidden depends on an example's number, so whole examples keep theirs.
  const bool whole = max_tokens <= 0 || max_tokens >= max_tokens_;
  ExampleBatch out{
      .batch = whole ? tensors(splits_.test, numbers, drawn_for_scores) : tensors(cut, all, drawn_for_scores),
      .rows = {}};
  for (int64_t part = 0; part < cut.parts; ++part) {
    for (size_t i = 0; i < numbers.size(); ++i)
      out.rows.push_back({.number = numbers[i],
                          .caption = text("test example ", numbers[i], ", ", classes()[cut.labels[i]]),
                          .input = token_names(cut.at(all[i], part))});
  }
  return out;
}

std::vector<ExampleScore> LongTask::example_scores(Module& model, const ExampleBatch& examples,
                                                   const ForwardContext& context) const {
  const NoGrad no_grad;
  const Batch& batch = examples.batch;
  const Tensor scores = logits(model, batch, context);
  const auto rows = static_cast<int64_t>(examples.rows.size()), count = rows / splits_.test.parts;
  if (predicts_classes())
    return scores_of_examples(scores, batch.tensors[1], std::vector<int64_t>(static_cast<size_t>(count), 1));
  std::vector<ExampleScore> out(static_cast<size_t>(count));
  const std::vector<ExampleScore> of_rows = scores_of_examples(
      scores, batch.tensors[1], asked_of_each(asked_rows(batch), rows, batch.tensors[0].extent(1)));
  for (size_t row = 0; row < of_rows.size(); ++row) {  // the parts of an example are not adjacent
    ExampleScore& score = out[row % out.size()];
    score.loss += of_rows[row].loss;
    score.targets += of_rows[row].targets;
    score.right += of_rows[row].right;
  }
  return out;
}

}  // namespace heed
