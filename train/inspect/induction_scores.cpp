// Scores of heads on repeated random sequences.
#include "heed/train/inspect/induction_scores.h"

#include <algorithm>

#include "heed/data/batching/shuffle.h"

namespace heed {

Tensor repeated_sequences(const RepeatOptions& options) {
  const auto refuse = [](const char* name, int64_t value, const char* legal) {
    fail("RepeatOptions::", name, " = ", value, ". It must be at least ", legal, ".");
  };
  if (options.vocabulary < 2) refuse("vocabulary", options.vocabulary, "2");
  if (options.period < 2) refuse("period", options.period, "2");
  if (options.sequences < 1) refuse("sequences", options.sequences, "1");
  std::vector<int32_t> ids;
  for (int64_t row = 0; row < options.sequences; ++row)
    for (int64_t i = 0; i < 2 * options.period; ++i)
      ids.push_back(
          static_cast<int32_t>(counter_below(options.seed, static_cast<uint64_t>(row),
                                             static_cast<uint64_t>(i % options.period), options.vocabulary)));
  return Tensor::of<int32_t>(ids, Shape{options.sequences, 2 * options.period});
}

std::vector<std::vector<RepeatScores>> mean_repeat_scores(const MapRecorder& recorder, int64_t period) {
  std::vector<std::vector<RepeatScores>> out;
  for (const MapRecorder::Map& map : recorder.maps) {
    const Shape& shape = map.weights.shape();  // [B, H, T, T]
    std::vector<RepeatScores> means(static_cast<size_t>(shape[1]));
    for (int64_t row = 0; row < shape[0]; ++row) {
      const MapView view{.heads = shape[1],
                         .queries = shape[2],
                         .keys = shape[3],
                         .weights = contiguous(view::slice(map.weights, 0, row, row + 1)).to_host()};
      for (int64_t head = 0; head < shape[1]; ++head) {
        const RepeatScores scores = repeat_scores(view, head, period);
        RepeatScores& mean = means[static_cast<size_t>(head)];
        mean.induction += scores.induction / static_cast<double>(shape[0]);
        mean.previous += scores.previous / static_cast<double>(shape[0]);
      }
    }
    out.push_back(std::move(means));
  }
  return out;
}

std::vector<HeadRepeatScores> induction_scores(
    Module& model, const std::function<void(const Tensor& ids, const ForwardContext& context)>& forward,
    const RepeatOptions& options) {
  const NoGrad no_grad;
  const Tensor ids = repeated_sequences(options);
  MapRecorder recorder;
  const std::vector<ModelHead> heads = heads_of_model(model, [&](const ForwardContext& context) {
    forward(ids, {.recorder = &recorder, .editor = context.editor});
  });
  for (const ModelHead& head : heads) {
    const auto is_of_head = [&](const MapRecorder::Map& map) { return map.module == head.module; };
    if (std::ranges::none_of(recorder.maps, is_of_head))
      fail("induction_scores: the attention ", head.layer,
           " recorded no map. Call it with the context that the function gets; an attention of your own "
           "calls ",
           "context.recorder->record().");
  }
  const std::vector<std::vector<RepeatScores>> scores = mean_repeat_scores(recorder, options.period);
  std::vector<HeadRepeatScores> out;
  for (size_t map = 0; map < scores.size(); ++map)
    for (const ModelHead& head : heads)
      if (head.module == recorder.maps[map].module && head.head < std::ssize(scores[map]))
        out.push_back({.head = head, .scores = scores[map][static_cast<size_t>(head.head)]});
  return out;
}

}  // namespace heed
