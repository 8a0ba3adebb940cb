// Loss, scores and maps of tasks that classify numbered examples.
#include "heed/train/tasks/classification/classification_task.h"

#include <algorithm>
#include <numeric>

#include "heed/attention/inspect/head_calls.h"
#include "heed/core/counted_work.h"
#include "heed/core/io/number_text.h"
#include "heed/nn/encoder_models.h"

namespace heed {
namespace {

constexpr int64_t scored_at_once = 500;

Tensor class_logits(Module& model, const Batch& batch, const ForwardContext& context) {
  return dynamic_cast<Classifier&>(model)(batch.tensors[0], {}, context);
}

}  // namespace

void ClassificationTally::add(const Tensor& logits, const Tensor& targets, double weight) {
  loss_ += cross_entropy(logits, targets).item() * weight;
  weight_ += weight;
  const std::vector<float> values = logits.to_host();
  const std::vector<double> labels = targets.to_doubles();
  const int64_t classes = logits.extent(1);
  for (size_t i = 0; i < labels.size(); ++i) {
    const float* row = values.data() + static_cast<int64_t>(i) * classes;
    const int64_t predicted = std::max_element(row, row + classes) - row,
                  label = static_cast<int64_t>(labels[i]);
    if (!confusion_.empty()) ++confusion_[static_cast<size_t>(label * classes + predicted)];
    correct_ += predicted == label ? 1 : 0;
  }
}

double ClassificationTally::accuracy() const {
  return static_cast<double>(correct_) / std::max(weight_, 1.0);
}

double ClassificationTally::loss() const { return loss_ / std::max(weight_, 1.0); }

Scores ClassificationTally::scores() const {
  return {.list = {{"accuracy", accuracy()}, {"loss", loss()}}, .lower_is_better = false};
}

void check_batch_size(const Config& config, const char* counted, int64_t max_batch) {
  const int64_t size = config.train.batch_size;
  if (size >= 1 && size <= max_batch) return;
  fail("train.batch_size = ", size, ". The task ", config.task_name, " counts ", counted, ": give ",
       max_batch < max_integer ? text("1 to ", max_batch) : std::string("at least 1"), ".");
}

int64_t example_number(const std::string& given, int64_t count, const char* name) {
  if (given.empty()) return 0;
  const std::optional<int64_t> number = parsed_integer(given);
  if (!number || *number < 0 || *number >= count)
    fail("'", given, "' is no ", name, ". Give its number, 0 to ", count - 1, ".");
  return *number;
}

void ClassificationTask::set_options(const TrainOptions& train) {
  batch_size_ = train.batch_size;
  seed_ = static_cast<uint64_t>(train.seed);
  label_smoothing_ = train.label_smoothing;
}

void ClassificationTask::load_artifacts(const Config& config, const std::vector<NamedBytes>& artifacts) {
  load(config, artifacts, [](const std::string&) {});
}

Tensor ClassificationTask::loss(Module& model, const Batch& batch, const ForwardContext& context) const {
  const Tensor logits = class_logits(model, batch, context);
  resolve_auxiliary_losses(context.losses, logits, batch.tensors[1]);
  return cross_entropy(logits, batch.tensors[1], context.training() ? label_smoothing_ : 0);
}

ClassificationTally ClassificationTask::score(Module& model, Split split, int64_t count,
                                              int64_t classes) const {
  const NoGrad no_grad;
  ClassificationTally tally(classes);
  CountedWork work(static_cast<double>(count));
  for (int64_t first = 0; first < count; first += scored_at_once) {
    std::vector<int64_t> numbers(static_cast<size_t>(std::min(scored_at_once, count - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    const Batch batch = examples(split, numbers);
    tally.add(class_logits(model, batch, {}), batch.tensors[1], batch.weight);
    work.add(batch.weight);
  }
  return tally;
}

std::vector<ValidationPart> ClassificationTask::validation_cost(Module& model) const {
  const int64_t all = num_examples(Split::validation), some = std::min(all, scored_at_once);
  return {{.compute = [this, &model, some] { score(model, Split::validation, some); },
           .some = static_cast<double>(some),
           .all = static_cast<double>(all),
           .test = static_cast<double>(num_examples(Split::test))}};
}

std::vector<MapView> ClassificationTask::maps_with(Module& model, const std::string& given,
                                                   const MapParts& parts, std::string& caption) const {
  std::optional<NoGrad> no_grad;
  turn_gradients_off(no_grad, parts);
  const int64_t number = example_number(given, test_examples(), example_name());
  const ExampleTokens tokens = tokens_of(number);
  MapRecorder recorder = recorder_for(parts);
  const Tensor logits =
      class_logits(model, examples(Split::test, std::span(&number, 1)), {.recorder = &recorder});
  explain_choice(logits, parts);
  caption = text(tokens.caption, "; the model says ", likeliest(logits)[0]);
  std::vector<MapView> views = self_attention_views(model, recorder, "encoder self", tokens.input);
  const std::shared_ptr<TokenPicture> shown = picture(number);
  for (MapView& view : views) view.picture = shown;
  return views;
}

std::vector<int64_t> ClassificationTask::test_lengths(int64_t number, int64_t) const {
  return {static_cast<int64_t>(tokens_of(number).input.size())};
}

ExampleBatch ClassificationTask::test_batch(std::span<const int64_t> numbers, int64_t) const {
  ExampleBatch out{.batch = examples(Split::test, numbers), .rows = {}};
  for (const int64_t number : numbers) out.rows.push_back(tokens_of(number));
  return out;
}

std::vector<ExampleScore> ClassificationTask::example_scores(Module& model, const ExampleBatch& examples,
                                                             const ForwardContext& context) const {
  const NoGrad no_grad;
  return scores_of_examples(class_logits(model, examples.batch, context), examples.batch.tensors[1],
                            std::vector<int64_t>(examples.rows.size(), 1));
}

}  // namespace heed
