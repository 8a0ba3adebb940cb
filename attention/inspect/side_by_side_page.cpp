// Writes the maps of several models and the matching of their heads into a page.
#include "heed/attention/inspect/side_by_side_page.h"

#include <algorithm>

#include "heed/attention/inspect/head_matching.h"
#include "heed/attention/inspect/map_page.h"
#include "heed/attention/inspect/page_assets.h"
#include "heed/attention/inspect/page_floats.h"
#include "heed/attention/inspect/pooled_maps.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/embedded_files.h"

namespace heed {
namespace {

using picture::json;

constexpr int64_t side_by_side_bytes = int64_t{12} << 20;

std::string visible_list(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += text(out.empty() ? "" : ",", json(picture::visible(word)));
  return "[" + out + "]";
}

std::string side_map_json(const MapView& map) {
  return text("{\"name\":", json(map.name), ",\"kind\":", json(map.kind), ",\"layer\":", map.layer,
              ",\"heads\":", map.heads, ",\"rows\":", visible_list(map.query_tokens),
              ",\"columns\":", visible_list(map.key_tokens), ",\"weights\":\"",
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
  std::string models, matches;
  for (const auto& [name, maps] : all.models) {
    std::string list;
    const int64_t share = side_by_side_bytes / static_cast<int64_t>(all.models.size());
    for (const MapView& map : pooled_within(maps, share))
      list += text(list.empty() ? "" : ",", side_map_json(map));
    models += text(models.empty() ? "" : ",\n", "{\"name\":", json(name), ",\"maps\":[", list, "]}");
    if (&maps == &first) continue;
    if (const std::string why = why_incomparable(first, maps); !why.empty())
      fail("side by side: ", first_name, " and ", name, " cannot be compared: ", why, ".");
    std::string pairs;
    for (const HeadMatch& match : match_heads(first, maps))
      pairs += text(pairs.empty() ? "" : ",", match_json(match));
    matches += text(matches.empty() ? "" : ",", "[", pairs, "]");
  }
  return picture::page(
      all.title, all.caption,
      text(
          "<section class=\"side\" aria-label=\"Attention maps side by side\">\n<noscript>The maps are drawn "
          "by a script inside this page; please allow it to run.</noscript>\n<script "
          "type=\"application/json\">{\"models\":[",
          models, "],\"matches\":[", matches, "]}</script>\n</section>\n"),
      {picture::script_tools(), embedded_file("attention/inspect/page_grid.js"),
       embedded_file("attention/inspect/page_side.js")},
      embedded_file("attention/inspect/page_side.css"));
}

}  // namespace heed
