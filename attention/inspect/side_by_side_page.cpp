// Writes the maps of several models and the matching of their heads into a page.
#include "heed/attention/inspect/side_by_side_page.h"

#include <span>

#include "heed/attention/inspect/head_matching.h"
#include "heed/attention/inspect/html_page.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/embedded_files.h"

namespace heed {
namespace {

using picture::joined;
using picture::json;

constexpr int64_t max_map_bytes = int64_t{12} << 20;  // bytes of the weights of all models together

std::string side_map_json(const MapView& map) {
  return text("{\"name\":", json(map.name), ",\"kind\":", json(map.kind), ",\"layer\":", map.layer,
              ",\"heads\":", map.heads, ",\"rows\":", picture::visible_json_list(map.query_tokens),
              ",\"columns\":", picture::visible_json_list(map.key_tokens), ",\"weights\":\"",
              picture::base64_floats(map.weights), "\"}");
}

std::string match_json(const HeadMatch& match) {
  std::string out = text("{\"one\":[", match.one.map, ",", match.one.head, "]");
  if (match.distance >= 0)
    out +=
        text(",\"other\":[", match.other.map, ",", match.other.head, "],\"distance\":", json(match.distance));
  return out + "}";
}

}  // namespace

std::string side_by_side_page(const SideBySide& all) {
  if (all.models.size() < 2) fail("side_by_side_page: ", all.models.size(), " model. Give two or more.");
  const auto& [first_name, first] = all.models.front();
  const int64_t bytes_per_model = max_map_bytes / static_cast<int64_t>(all.models.size());
  const std::string models = joined(all.models, ",\n", [&](const auto& model) {
    return text("{\"name\":", json(model.first), ",\"maps\":[",
                joined(pooled_within(model.second, bytes_per_model), ",", side_map_json), "]}");
  });
  const std::span others = std::span(all.models).subspan(1);
  const std::string matches = joined(others, ",", [&, &maps = first, &name = first_name](const auto& model) {
    if (const std::string why = why_incomparable(maps, model.second); !why.empty())
      fail("side by side: ", name, " and ", model.first, " cannot be compared: ", why, ".");
    return "[" + joined(match_heads(maps, model.second), ",", match_json) + "]";
  });
  return picture::page(
      all.title, all.caption,
      picture::script_section("side", "Attention maps side by side", "The maps are drawn",
                              text("{\"models\":[", models, "],\"matches\":[", matches, "]}")),
      {picture::tools_script, picture::grid_script, "attention/inspect/page_side.js"},
      embedded_file("attention/inspect/page_side.css"));
}

}  // namespace heed
