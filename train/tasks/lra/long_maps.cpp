// Attention maps of one long input, with the picture that its tokens are pixels of.
#include <algorithm>

#include "heed/attention/inspect/head_calls.h"
#include "heed/train/tasks/lra/lra.h"
#include "heed/train/tasks/lra/token_prediction.h"

namespace heed {
namespace {

constexpr int64_t default_max_shown = 256;  // tokens shown in a map
// Longer inputs are cut for maps: a map has the square of this many numbers for every head of every layer.
constexpr int64_t default_max_read = 1024;  // tokens

}  // namespace

std::vector<MapView> LongTask::maps_with(Module& module, const std::string& given, const MapParts& parts,
                                         std::string& caption) const {
  std::optional<NoGrad> no_grad;
  turn_gradients_off(no_grad, parts);
  const int64_t max_read = parts.longest > 0 ? parts.longest : default_max_read,
                max_shown = parts.longest > 0 ? parts.longest : default_max_shown;
  const Sequences& set = splits_.test;
  const int64_t index = example_number(given, set.count(), "test example");
  Sequences example{
      .parts = set.parts, .bytes = "", .ends = {}, .labels = {set.labels[static_cast<size_t>(index)]}};
  for (int64_t part = 0; part < set.parts; ++part)
    example.add(first_tokens(set.at(index, part), std::min(max_tokens_, max_read)));
  const int64_t only_index[] = {0};
  MapRecorder recorder = recorder_for(parts);
  const Tensor scores =
      logits(module, tensors(example, only_index, drawn_for_scores), {.recorder = &recorder});
  explain_choice(scores, parts);
  std::vector<std::string> labels = token_names(example.at(0));
  std::vector<int32_t> places = places_of(example.at(0));
  const int64_t first = options_.pool == Pool::first ? 1 : 0;
  labels.resize(std::min(labels.size(), static_cast<size_t>(max_shown)));
  places.resize(std::min(places.size(), static_cast<size_t>(max_shown - first)));
  caption = text("test example ", index, ", ", classes()[set.labels[static_cast<size_t>(index)]]);
  if (predicts_classes())
    caption += "; the model says " + classes()[static_cast<size_t>(likeliest(scores)[0])];
  if (const int64_t all = length(set, index); all > static_cast<int64_t>(labels.size()))
    caption += text(
        ", the first ", labels.size(), " of ", all, " tokens",
        length(example, 0) < all ? text(", cut to ", length(example, 0), " for this map") : std::string());
  const std::shared_ptr<TokenPicture> picture = places.empty() ? nullptr : this->picture(set.at(index, 0));
  if (picture) {
    picture->first = first;
    picture->places = places;
  }
  std::vector<MapView> views = self_attention_views(module, recorder, "encoder self", labels);
  for (MapView& view : views) view.picture = picture;
  return views;
}

}  // namespace heed
