// Writes maps into a page: weights as 16-bit steps in base64, everything else as JSON.
#include "heed/attention/inspect/map_page.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "heed/attention/inspect/map_statistics.h"
#include "heed/attention/inspect/page_assets.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/hash.h"

namespace heed {
namespace {

using picture::json;

std::string tokens(const std::vector<std::string>& words) {
  std::string out = "[";
  for (const auto& word : words) {
    if (out.size() > 1) out += ',';
    out += json(picture::visible(word));
  }
  return out + "]";
}

/// Weights quantised to 0..65534 between the smallest (at most 0) and the largest; 65535: not finite.
std::string block(const MapView& map) {
  constexpr double steps = 65534;
  float low = 0, high = 0;
  for (const float weight : map.weights)
    if (std::isfinite(weight)) {
      low = std::min(low, weight);
      high = std::max(high, weight);
    }
  const double span = static_cast<double>(high) - low;
  std::string bytes;
  bytes.reserve(map.weights.size() * 2);
  for (const float weight : map.weights) {
    const double step = span > 0 ? std::round((static_cast<double>(weight) - low) / span * steps) : 0;
    const auto code = std::isfinite(weight) ? static_cast<unsigned>(step) : 65535U;
    bytes += static_cast<char>(code & 255);
    bytes += static_cast<char>(code >> 8);
  }
  return text("{\"rows\":", tokens(map.query_tokens), ",\"columns\":", tokens(map.key_tokens),
              ",\"low\":", json(low), ",\"high\":", json(high), ",\"weights\":\"", picture::base64(bytes),
              "\"}");
}

std::string statistics(const MapView& map) {
  std::string numbers, favourites;
  for (const HeadStatistics& one : head_statistics(map)) {
    const std::string comma = numbers.empty() ? "" : ",";
    numbers += text(comma, "{\"entropy\":", json(one.entropy), ",\"uniform\":", json(one.uniform_entropy),
                    ",\"confidence\":", json(one.confidence), ",\"diagonal\":", json(one.diagonal),
                    ",\"previous\":", json(one.previous), ",\"next\":", json(one.next),
                    ",\"near\":", json(one.band[3]), ",\"distance\":", json(one.distance),
                    ",\"mass\":", json(one.favourite_mass), "}");
    favourites += comma + json(picture::visible(map.key_tokens[static_cast<size_t>(one.favourite)]));
  }
  return text("\"statistics\":[", numbers, "],\"favourites\":[", favourites, "]");
}

/// One map as JSON; single weights of a long map are included while `budget` lasts.
std::string map_json(const MapView& map, const HtmlOptions& options, int64_t& budget) {
  const bool is_long = std::max(map.queries, map.keys) > options.longest;
  const auto count = static_cast<int64_t>(map.weights.size());
  const bool whole = is_long && count <= budget;
  if (whole) budget -= count;
  const int64_t queries_per_tile = is_long ? tile_extent(map.queries, options.tiles) : 1;
  const int64_t keys_per_tile = is_long ? tile_extent(map.keys, options.tiles) : 1;
  return text("{\"name\":", json(map.name), ",\"kind\":", json(map.kind), ",\"layer\":", map.layer,
              ",\"heads\":", map.heads, ",\"queries\":", map.queries, ",\"keys\":", map.keys, ",\"tile\":[",
              queries_per_tile, ",", keys_per_tile, "],", statistics(map),
              ",\"view\":", block(is_long ? pooled(map, options.tiles) : map),
              ",\"whole\":", whole ? block(map) : "null", "}");
}

/// The hash of an element's text, as written in a content security policy.
std::string policy_hash(std::string_view inside) {
  Sha256 sum;
  sum.update(inside);
  return text("'sha256-", picture::base64(sum.digest()), "'");
}

}  // namespace

std::string maps_section(const std::vector<MapView>& maps, const HtmlOptions& options) {
  if (maps.empty()) fail("maps_section: there is no map. Give at least one.");
  const HeadChoice first = first_head(maps);
  std::string list;
  int64_t budget = options.single_weights;
  for (const MapView& map : maps) {
    if (!list.empty()) list += ",\n";
    list += map_json(map, options, budget);
  }
  return text(
      "<section class=\"maps\" aria-label=\"Attention maps\">\n<noscript>The maps are drawn by a script "
      "inside "
      "this page; please allow it to run.</noscript>\n<script type=\"application/json\">{\"first\":{\"map\":",
      first.map, ",\"head\":", first.head, "},\"maps\":[", list, "]}</script>\n</section>\n");
}

std::string maps_page(const std::vector<MapView>& maps, const HtmlOptions& options) {
  return picture::page(options.title, options.subtitle, maps_section(maps, options),
                       {picture::script_tools(), picture::script_views(), picture::script_maps()});
}

std::string picture::page(const std::string& title, const std::string& subtitle, const std::string& body,
                          const std::vector<std::string_view>& scripts, std::string_view more_style) {
  const std::string sheet = text("\n", style(), more_style);
  std::string script;
  for (const std::string_view part : scripts) script += part;
  std::string out = text(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src ",
      policy_hash(sheet), "; script-src ", policy_hash(script), "; img-src data: blob:\">\n",
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>", escape(title),
      "</title>\n<style>", sheet, "</style>\n</head>\n<body>\n<div class=\"top\">\n<h1>", escape(title),
      "</h1>\n");
  if (!subtitle.empty()) out += text("<p class=\"subtitle\">", escape(subtitle), "</p>\n");
  return out + text("</div>\n<main>\n", body,
                    "</main>\n<footer>Written by Heed. This page loads nothing and works "
                    "offline.</footer>\n<script>",
                    script, "</script>\n</body>\n</html>\n");
}

}  // namespace heed
