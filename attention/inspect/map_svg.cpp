// Writes maps as SVG: plain shapes and text, no scripts, no embedded fonts.
#include "heed/attention/inspect/map_svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heed/attention/inspect/single_map_statistics.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/terminal.h"

namespace heed {
namespace {

using picture::escape;
using picture::fill;
using picture::fixed;
using picture::SvgCanvas;
using picture::trimmed;
using Rgb = std::array<double, 3>;

constexpr double letter_width = 6.6;  // a generous mean advance of the label font at 12 pixels

struct Stop {
  double at;
  Rgb colour;
};
constexpr Stop cool[] = {{0.0, {250, 251, 252}},
                         {0.08, {222, 234, 246}},
                         {0.3, {150, 190, 225}},
                         {0.6, {61, 122, 183}},
                         {1.0, {11, 45, 89}}};
constexpr Stop warm[] = {{0.0, {250, 251, 252}}, {0.3, {246, 190, 140}}, {1.0, {160, 62, 10}}};

template <size_t n>
Rgb between(const Stop (&stops)[n], double t) {
  size_t i = 1;
  while (i + 1 < n && t > stops[i].at) ++i;
  const Stop &low = stops[i - 1], &high = stops[i];
  const double share = (t - low.at) / (high.at - low.at);
  Rgb out{};
  for (size_t c = 0; c < 3; ++c) out[c] = low.colour[c] + share * (high.colour[c] - low.colour[c]);
  return out;
}

constexpr std::string_view muted = "font-size=\"11\" fill=\"#5c6670\"",
                           outline = "fill=\"none\" stroke=\"#c9ced4\"",
                           title_style = "font-size=\"15\" font-weight=\"600\"";

/// The picture as a file, its size in whole pixels.
std::string picture_file(const SvgCanvas& drawing, double width, double height, const std::string& title) {
  const double w = std::ceil(width), h = std::ceil(height);
  return drawing.document(w, h,
                          text("width=\"", w, "\" height=\"", h, "\" role=\"img\" ", picture::sans_serif,
                               " font-size=\"12\" fill=\"#1c2024\""),
                          title, "#ffffff");
}

double longest(const std::vector<std::string>& words) {
  int64_t columns = 1;
  for (const auto& word : words) columns = std::max(columns, display_width(word));
  return static_cast<double>(columns) * letter_width;
}

std::vector<std::string> shown(const std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  for (const auto& token : tokens) out.push_back(picture::shorten(picture::visible(token), 22));
  return out;
}

/// The largest finite weight of a head; 1 where none is above zero.
float largest(const MapView& map, int64_t head) {
  const auto begin = map.weights.begin() + head * map.queries * map.keys;
  float out = 0;
  for (auto at = begin; at != begin + map.queries * map.keys; ++at)
    if (std::isfinite(*at)) out = std::max(out, *at);
  return out > 0 ? out : 1;
}

/// The colour bar, labelled at its ends and middle.
void add_scale(SvgCanvas& out, double x, double y, double height, double largest) {
  constexpr int steps = 40;
  const double step = height / steps;
  for (int i = 0; i < steps; ++i)
    out.rectangle(x, y + i * step, 10, step + 0.3, fill(picture::colour(1 - (i + 0.5) / steps)));
  out.rectangle(x, y, 10, height, outline);
  for (const double part : {0.0, 0.5, 1.0})
    out.label(x + 16, y + height * (1 - part) + 4, trimmed(largest * part, 3), muted);
}

}  // namespace

std::string picture::colour(double weight) {
  if (!std::isfinite(weight)) return "#b8bcc2";
  const Rgb rgb = weight < 0 ? between(warm, std::min(-weight, 1.0)) : between(cool, std::min(weight, 1.0));
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "#";
  for (const double part : rgb) {
    const auto byte = static_cast<unsigned>(std::lround(part));
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

void picture::add_head(SvgCanvas& out, const MapView& map, int64_t head, const HeadFrame& frame) {
  std::vector<std::string> paths(static_cast<size_t>(frame.shades) + 1);
  const auto shade_of = [&](int64_t query, int64_t key) {
    const float weight = map.at(head, query, key);
    return std::isfinite(weight) ? static_cast<size_t>(std::lround(std::clamp(weight, 0.0F, 1.0F) *
                                                                   static_cast<float>(frame.shades)))
                                 : 0;
  };
  for (int64_t query = 0; query < map.queries; ++query)
    for (int64_t key = 0, end = 0; key < map.keys; key = end) {
      const size_t shade = shade_of(query, key);
      for (end = key + 1; end < map.keys && shade_of(query, end) == shade;) ++end;
      if (shade > 0) paths[shade] += text("M", key, " ", query, "h", end - key, "v1h-", end - key, "z");
    }
  out.markup(text("<g transform=\"translate(", trimmed(frame.x, 2), " ", trimmed(frame.y, 2), ") scale(",
                  trimmed(frame.width / static_cast<double>(map.keys), 5), " ",
                  trimmed(frame.height / static_cast<double>(map.queries), 5),
                  ")\" shape-rendering=\"crispEdges\">\n"));
  for (size_t shade = 1; shade < paths.size(); ++shade)
    if (!paths[shade].empty())
      out.path(paths[shade], fill(colour(static_cast<double>(shade) / frame.shades)));
  out.markup("</g>\n");
}

std::string map_svg(const MapView& original, int64_t head, const SvgOptions& options) {
  check(original);
  if (head < 0 || head >= original.heads)
    fail("map_svg: head ", head, " does not exist in '", original.name, "'. Choose 0 to ", original.heads - 1,
         ".");
  const MapView map = pooled(original, options.limit);
  const auto queries = shown(map.query_tokens), keys = shown(map.key_tokens);
  const auto rows = static_cast<double>(map.queries), columns = static_cast<double>(map.keys);
  const double side = std::clamp(480 / std::max(rows, columns), 5.0, 26.0);
  const bool labelled = side >= 9;
  const double slope = longest(keys) * 0.71;
  const double left = labelled ? longest(queries) + 40 : 40, top = (labelled ? slope : 0) + 76;
  const double map_width = side * columns, map_height = side * rows;
  const std::string title = !options.title.empty()
                                ? options.title
                                : text(map.kind, " attention, layer ", map.layer, ", head ", head);
  const double width = std::max(left + map_width + std::max(70.0, labelled ? slope + 8 : 0.0),
                                static_cast<double>(display_width(title)) * 8.4 + 32);
  const float max_weight = options.scale_to_largest ? largest(map, head) : 1;

  SvgCanvas out(2);
  out.label(16, 28, title, title_style);
  std::string note = "rows are queries, columns are keys";
  if (map.queries != original.queries || map.keys != original.keys)
    note += text("; each tile is ", tile_extent(original.queries, options.limit), " x ",
                 tile_extent(original.keys, options.limit), " tokens");
  out.label(16, 46, note, muted);
  for (int64_t key = 0; labelled && key < map.keys; ++key)
    out.rotated_label(left + side * (static_cast<double>(key) + 0.5) + 3, top - 6, -45,
                      keys[static_cast<size_t>(key)]);
  for (int64_t query = 0; labelled && query < map.queries; ++query)
    out.label(left - 8, top + side * (static_cast<double>(query) + 0.5) + 4,
              queries[static_cast<size_t>(query)], "text-anchor=\"end\"");
  out.markup("<g shape-rendering=\"crispEdges\">\n");
  for (int64_t query = 0; query < map.queries; ++query)
    for (int64_t key = 0; key < map.keys; ++key) {
      const float weight = map.at(head, query, key);
      out.rectangle(left + side * static_cast<double>(key), top + side * static_cast<double>(query), side,
                    side, fill(picture::colour(weight / max_weight)),
                    text(queries[static_cast<size_t>(query)], " → ", keys[static_cast<size_t>(key)], "  ",
                         fixed(weight, 3)));
    }
  out.markup("</g>\n");
  out.rectangle(left, top, map_width, map_height, outline);
  add_scale(out, left + map_width + 18, top, std::min(map_height, 120.0), max_weight);
  return picture_file(out, width, top + map_height + 24, title);
}

std::string contact_sheet_svg(const std::vector<MapView>& maps, const std::string& title) {
  if (maps.empty()) fail("contact_sheet_svg: there is no map. Give at least one.");
  constexpr double box = 76, gap = 10, left = 150;
  int64_t heads = 0;
  SvgCanvas out(2);
  if (!title.empty()) out.label(16, 28, title, title_style);
  const double top = title.empty() ? 40 : 64;
  double y = top;
  for (const MapView& original : maps) {
    check(original);
    heads = std::max(heads, original.heads);
    const MapView map = pooled(original, 48);
    const auto statistics = head_statistics(original);
    const double ratio = static_cast<double>(map.queries) / static_cast<double>(map.keys);
    const double map_width = ratio > 1 ? box / ratio : box, map_height = ratio > 1 ? box : box * ratio;
    out.label(16, y + 16, text(map.kind, " ", map.layer), "font-weight=\"600\"");
    out.label(16, y + 33, text(original.queries, " × ", original.keys), muted);
    for (int64_t head = 0; head < map.heads; ++head) {
      const double x = left + static_cast<double>(head) * (box + gap);
      const HeadStatistics& one = statistics[static_cast<size_t>(head)];
      out.markup(text("<g><title>",
                      escape(text(map.kind, " attention, layer ", map.layer, ", head ", head, ": entropy ",
                                  fixed(one.entropy, 2), " of ", fixed(one.uniform_entropy, 2))),
                      "</title>\n"));
      out.rectangle(x, y, map_width, map_height, fill(picture::colour(0)));
      picture::add_head(out, map, head, {.x = x, .y = y, .width = map_width, .height = map_height});
      out.rectangle(x, y, map_width, map_height, outline);
      out.markup("</g>\n");
    }
    y += std::max(map_height, 40.0) + gap + 4;
  }
  for (int64_t head = 0; head < heads; ++head)
    out.label(left + static_cast<double>(head) * (box + gap) + box / 2, top - 10, text("head ", head),
              text("text-anchor=\"middle\" ", muted));
  return picture_file(out, left + static_cast<double>(heads) * (box + gap) + 6, y + 6,
                      title.empty() ? "all attention heads" : title);
}

}  // namespace heed
