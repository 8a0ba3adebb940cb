// Defaults of MapProvider, and views of recorded maps.
#include "heed/train/tasks/map_provider.h"

#include "heed/attention/inspect/head_calls.h"

namespace heed {

std::vector<MapView> MapProvider::maps_with(Module& model, const std::string& text, const MapParts&,
                                            std::string& caption) const {
  return maps(model, text, caption);
}

LensView MapProvider::logit_lens(Module&, const std::string&) const {
  fail("this task gives no logit lens. Language models and translators do (tasks lm and translate).");
}

const MapProvider& map_provider(const Task& task) {
  const auto* provider = dynamic_cast<const MapProvider*>(&task);
  if (provider == nullptr)
    fail("this task gives no attention maps. A task gives them by deriving from MapProvider, too.");
  return *provider;
}

MapView map_view(Module& model, const MapRecorder::Map& map, const MapViewOptions& options) {
  const auto queries = static_cast<int64_t>(options.query_tokens.size());
  const auto keys = static_cast<int64_t>(options.key_tokens.size());
  const Shape& shape = map.weights.shape();
  if (options.sequence < 0 || options.sequence >= shape[0])
    fail("map_view: sequence ", options.sequence, " of a batch of ", shape[0], ", counted from 0.");
  if (queries > shape[2] || keys > shape[3])
    fail("map_view: ", queries, " query tokens and ", keys, " key tokens for a map ", shape,
         ". Give at most one for each row and column.");
  const Tensor one = view::slice(map.weights, 0, options.sequence, options.sequence + 1);
  const Tensor cut = view::slice(view::slice(one, 2, 0, queries), 3, 0, keys);
  return {.name = name_of(model, map.module),
          .kind = options.kind,
          .layer = options.layer,
          .heads = shape[1],
          .queries = queries,
          .keys = keys,
          .weights = cut.to_host(),
          .query_tokens = options.query_tokens,
          .key_tokens = options.key_tokens};
}

MapView map_view(Module& model, const MapRecorder& recorder, size_t index, const MapViewOptions& options) {
  if (options.sequence != 0)
    fail("map_view: sequence ", options.sequence,
         " of a recorder, which keeps the parts of a map of sequence 0 "
         "alone. Pass recorder.maps[",
         index, "] for its map.");
  MapView view = map_view(model, recorder.maps.at(index), options);
  add_head_parts(view, recorder, index);
  return view;
}

std::vector<MapView> self_attention_views(Module& model, const MapRecorder& recorder, const std::string& kind,
                                          const std::vector<std::string>& tokens) {
  std::vector<MapView> views;
  for (size_t i = 0; i < recorder.maps.size(); ++i)
    views.push_back(map_view(
        model, recorder, i,
        {.kind = kind, .layer = static_cast<int64_t>(i), .query_tokens = tokens, .key_tokens = tokens}));
  return views;
}

}  // namespace heed
