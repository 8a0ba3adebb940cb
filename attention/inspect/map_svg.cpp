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

/// A colour at one weight of a scale; colours between two stops are interpolated.
struct ColourStop {
  double weight;
  Rgb colour;
};
constexpr ColourStop positive_scale[] = {{0.0, {250, 251, 252}},
                                         {0.08, {222, 234, 246}},
                                         {0.3, {150, 190, 225}},
                                         {0.6, {61, 122, 183}},
                                         {1.0, {11, 45, 89}}};
constexpr ColourStop negative_scale[] = {
    {0.0, {250, 251, 252}}, {0.3, {246, 190, 140}}, {1.0, {160, 62, 10}}};

/// The colour of a weight of 0 to 1 on a scale.
template <size_t n>
Rgb colour_on(const ColourStop (&scale)[n], double weight) {
  size_t i = 1;
  while (i + 1 < n && weight > scale[i].weight) ++i;
  const ColourStop &low = scale[i - 1], &high = scale[i];
  const double share = (weight - low.weight) / (high.weight - low.weight);
  Rgb out{};
  for (size_t c = 0; c < 3; ++c) out[c] = low.colour[c] + share * (high.colour[c] - low.colour[c]);
  return out;
}

constexpr std::string_view muted_text = "font-size=\"11\" fill=\"#5c6670\"",
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

/// The width of the longest word in pixels; at least that of a letter.
double max_label_width(const std::vector<std::string>& words) {
  return static_cast<double>(std::max<int64_t>(picture::max_display_width(words), 1)) * letter_width;
}

/// Tokens as labels: visible characters, at most 22 columns.
std::vector<std::string> labels_of(const std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  for (const auto& token : tokens) out.push_back(picture::shorten(picture::visible(token), 22));
  return out;
}

/// The largest finite weight of a head; 1 where none is above zero.
float max_weight_of(const MapView& map, int64_t head) {
  float max_weight = 0;
  for (const float weight : one_head(map, head).weights)
    if (std::isfinite(weight)) max_weight = std::max(max_weight, weight);
  return max_weight > 0 ? max_weight : 1;
}

/// Adds the colour bar, labelled with weights at its ends and middle.
void add_scale(SvgCanvas& out, double x, double y, double height, double max_weight) {
  constexpr int steps = 40;
  const double step = height / steps;
  for (int i = 0; i < steps; ++i)
    out.rectangle(x, y + i * step, 10, step + 0.3, fill(picture::colour(1 - (i + 0.5) / steps)));
  out.rectangle(x, y, 10, height, outline);
  for (const double part : {0.0, 0.5, 1.0})
    out.label(x + 16, y + height * (1 - part) + 4, trimmed(max_weight * part, 3), muted_text);
}

}  // namespace

std::string picture::colour(double weight) {
  if (!std::isfinite(weight)) return "#b8bcc2";
  const Rgb rgb = weight < 0 ? colour_on(negative_scale, std::min(-weight, 1.0))
                             : colour_on(positive_scale, std::min(weight, 1.0));
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
  check_head("map_svg", original, head);
  const MapView map = pooled(original, options.limit);
  const auto queries = labels_of(map.query_tokens), keys = labels_of(map.key_tokens);
  const auto rows = static_cast<double>(map.queries), columns = static_cast<double>(map.keys);
  const double side = std::clamp(480 / std::max(rows, columns), 5.0, 26.0);  // side of a cell, in pixels
  const bool labelled = side >= 9;
  const double label_height = max_label_width(keys) * 0.71;  // labels of keys are turned by 45 degrees
  const double left = labelled ? max_label_width(queries) + 40 : 40, top = (labelled ? label_height : 0) + 76;
  const double map_width = side * columns, map_height = side * rows;
  const std::string title = options.title.empty() ? head_title(map, head) : options.title;
  const double width = std::max(left + map_width + std::max(70.0, labelled ? label_height + 8 : 0.0),
                                static_cast<double>(display_width(title)) * 8.4 + 32);
  const float max_weight = options.scale_to_largest ? max_weight_of(map, head) : 1;

  SvgCanvas out(2);
  out.label(16, 28, title, title_style);
  std::string note = "rows are queries, columns are keys";
  if (map.queries != original.queries || map.keys != original.keys)
    note += text("; each tile is ", tile_extent(original.queries, options.limit), " x ",
                 tile_extent(original.keys, options.limit), " tokens");
  out.label(16, 46, note, muted_text);
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
    out.label(16, y + 33, text(original.queries, " × ", original.keys), muted_text);
    for (int64_t head = 0; head < map.heads; ++head) {
      const double x = left + static_cast<double>(head) * (box + gap);
      const HeadStatistics& of_head = statistics[static_cast<size_t>(head)];
      out.markup(text("<g><title>",
                      escape(text(head_title(map, head), ": entropy ", fixed(of_head.entropy, 2), " of ",
                                  fixed(of_head.uniform_entropy, 2))),
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
              text("text-anchor=\"middle\" ", muted_text));
  return picture_file(out, left + static_cast<double>(heads) * (box + gap) + 6, y + 6,
                      title.empty() ? "all attention heads" : title);
}

}  // namespace heed
