// Defaults of MapProvider, and views of recorded maps.
#include "heed/train/tasks/map_provider.h"

#include "heed/attention/inspect/head_calls.h"

namespace heed {

std::vector<MapView> MapProvider::maps_with(Module& model, const std::string& text, const MapParts&,
                                            std::string& caption) const {
  return maps(model, text, caption);
}

LensView MapProvider::logit_lens(Module&, const std::string&) const {
  fail(
      "this task gives no logit lens: its models do not predict tokens. Language models and translators do "
      "(tasks lm and translate).");
}

const MapProvider& map_provider(const Task& task) {
  const auto* provider = dynamic_cast<const MapProvider*>(&task);
  if (provider == nullptr)
    fail("this task gives no attention maps. A task gives them by deriving from MapProvider, too.");
  return *provider;
}

MapView map_view(Module& model, const MapRecorder::Map& map, const std::string& kind, int64_t layer,
                 const std::vector<std::string>& query_tokens, const std::vector<std::string>& key_tokens,
                 int64_t row) {
  const auto queries = static_cast<int64_t>(query_tokens.size());
  const auto keys = static_cast<int64_t>(key_tokens.size());
  const Tensor cut =
      view::slice(view::slice(view::slice(map.weights, 0, row, row + 1), 2, 0, queries), 3, 0, keys);
  return {.name = name_of(model, map.module),
          .kind = kind,
          .layer = layer,
          .heads = map.weights.extent(1),
          .queries = queries,
          .keys = keys,
          .weights = cut.to_host(),
          .query_tokens = query_tokens,
          .key_tokens = key_tokens};
}

MapView map_view(Module& model, const MapRecorder& recorder, size_t index, const std::string& kind,
                 int64_t layer, const std::vector<std::string>& query_tokens,
                 const std::vector<std::string>& key_tokens) {
  MapView view = map_view(model, recorder.maps.at(index), kind, layer, query_tokens, key_tokens);
  add_head_parts(view, recorder, index);
  return view;
}

std::vector<MapView> self_attention_views(Module& model, const MapRecorder& recorder, const std::string& kind,
                                          const std::vector<std::string>& tokens) {
  std::vector<MapView> views;
  for (size_t i = 0; i < recorder.maps.size(); ++i)
    views.push_back(map_view(model, recorder, i, kind, static_cast<int64_t>(i), tokens, tokens));
  return views;
}

}  // namespace heed
