// Writes maps as SVG: plain shapes and text, no scripts, no embedded fonts.
#include "heed/attention/inspect/map_svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heed/attention/inspect/map_statistics.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"

namespace heed {
namespace {

using picture::escape;
using picture::fixed;
using picture::trimmed;
using Rgb = std::array<double, 3>;

constexpr std::string_view font = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
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

std::string header(double width, double height, const std::string& title) {
  const std::string w = trimmed(std::ceil(width), 0), h = trimmed(std::ceil(height), 0);
  return text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", w, "\" height=\"", h, "\" viewBox=\"0 0 ",
              w, " ", h, "\" role=\"img\" font-family=\"", font,
              "\" font-size=\"12\" fill=\"#1c2024\">\n<title>", escape(title),
              "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
}

/// A line of text; sentencepiece's word-start mark (U+2581) is drawn faintly.
std::string label(double x, double y, const std::string& words, const std::string& more = "") {
  constexpr std::string_view mark = "▁";
  const bool begins = words.size() > mark.size() && words.starts_with(mark);
  return text("<text x=\"", trimmed(x, 2), "\" y=\"", trimmed(y, 2), "\"", more.empty() ? "" : " ", more, ">",
              begins ? "<tspan opacity=\"0.3\">▁</tspan>" : "",
              escape(begins ? words.substr(mark.size()) : words), "</text>\n");
}

double longest(const std::vector<std::string>& words) {
  int64_t columns = 1;
  for (const auto& word : words) columns = std::max(columns, picture::display_width(word));
  return static_cast<double>(columns) * letter_width;
}

std::vector<std::string> shown(const std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  for (const auto& token : tokens) out.push_back(picture::shorten(picture::visible(token), 22));
  return out;
}

float largest(const MapView& map, int64_t head) {
  const auto begin = map.weights.begin() + head * map.queries * map.keys;
  float most = 0;
  for (auto at = begin; at != begin + map.queries * map.keys; ++at)
    if (std::isfinite(*at)) most = std::max(most, *at);
  return most > 0 ? most : 1;
}

/// The colour bar, labelled at its ends and middle.
std::string scale(double x, double y, double height, double top) {
  std::string out;
  constexpr int steps = 40;
  const double step = height / steps;
  for (int i = 0; i < steps; ++i)
    out += text("<rect x=\"", trimmed(x, 2), "\" y=\"", trimmed(y + i * step, 2), "\" width=\"10\" height=\"",
                trimmed(step + 0.3, 2), "\" fill=\"", picture::colour(1 - (i + 0.5) / steps), "\"/>\n");
  out += text("<rect x=\"", trimmed(x, 2), "\" y=\"", trimmed(y, 2), "\" width=\"10\" height=\"",
              trimmed(height, 2), "\" fill=\"none\" stroke=\"#c9ced4\"/>\n");
  for (const double part : {0.0, 0.5, 1.0})
    out += label(x + 16, y + height * (1 - part) + 4, trimmed(top * part, 3),
                 "font-size=\"11\" fill=\"#5c6670\"");
  return out;
}

/// All cells of one head as one path per shade, with runs of equal cells joined to keep files small.
std::string thumbnail(const MapView& map, int64_t head, double x, double y, double width, double height) {
  constexpr int shades = 24;
  std::array<std::string, shades + 1> paths;
  for (int64_t query = 0; query < map.queries; ++query)
    for (int64_t key = 0, end = 0; key < map.keys; key = end) {
      const auto shade_of = [&](int64_t at) {
        const float weight = map.at(head, query, at);
        return std::isfinite(weight) ? static_cast<int>(std::lround(std::clamp(weight, 0.0F, 1.0F) * shades))
                                     : 0;
      };
      const int shade = shade_of(key);
      for (end = key + 1; end < map.keys && shade_of(end) == shade;) ++end;
      if (shade)
        paths[static_cast<size_t>(shade)] +=
            text("M", key, " ", query, "h", end - key, "v1h-", end - key, "z");
    }
  std::string out =
      text("<g transform=\"translate(", trimmed(x, 2), " ", trimmed(y, 2), ") scale(",
           trimmed(width / static_cast<double>(map.keys), 5), " ",
           trimmed(height / static_cast<double>(map.queries), 5), ")\" shape-rendering=\"crispEdges\">");
  out += text("<path fill=\"", picture::colour(0), "\" d=\"M0 0h", map.keys, "v", map.queries, "h-", map.keys,
              "z\"/>");
  for (int shade = 1; shade <= shades; ++shade)
    if (!paths[static_cast<size_t>(shade)].empty())
      out += text("<path fill=\"", picture::colour(static_cast<double>(shade) / shades), "\" d=\"",
                  paths[static_cast<size_t>(shade)], "\"/>");
  return out + "</g>\n";
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
                                static_cast<double>(picture::display_width(title)) * 8.4 + 32);
  const float most = options.scale_to_largest ? largest(map, head) : 1;

  std::string out = header(width, top + map_height + 24, title);
  out += label(16, 28, title, "font-size=\"15\" font-weight=\"600\"");
  std::string note = "rows are queries, columns are keys";
  if (map.queries != original.queries || map.keys != original.keys)
    note += text("; each tile is ", tile_extent(original.queries, options.limit), " x ",
                 tile_extent(original.keys, options.limit), " tokens");
  out += label(16, 46, note, "font-size=\"11\" fill=\"#5c6670\"");
  for (int64_t key = 0; labelled && key < map.keys; ++key) {
    const double x = left + side * (static_cast<double>(key) + 0.5) + 3;
    out += label(x, top - 6, keys[static_cast<size_t>(key)],
                 text("transform=\"rotate(-45 ", trimmed(x, 2), " ", trimmed(top - 6, 2), ")\""));
  }
  for (int64_t query = 0; labelled && query < map.queries; ++query)
    out += label(left - 8, top + side * (static_cast<double>(query) + 0.5) + 4,
                 queries[static_cast<size_t>(query)], "text-anchor=\"end\"");
  out += "<g shape-rendering=\"crispEdges\">\n";
  for (int64_t query = 0; query < map.queries; ++query)
    for (int64_t key = 0; key < map.keys; ++key) {
      const float weight = map.at(head, query, key);
      out += text("<rect x=\"", trimmed(left + side * static_cast<double>(key), 2), "\" y=\"",
                  trimmed(top + side * static_cast<double>(query), 2), "\" width=\"", trimmed(side, 2),
                  "\" height=\"", trimmed(side, 2), "\" fill=\"", picture::colour(weight / most),
                  "\"><title>", escape(queries[static_cast<size_t>(query)]), " → ",
                  escape(keys[static_cast<size_t>(key)]), "  ", fixed(weight, 3), "</title></rect>\n");
    }
  out += text("</g>\n<rect x=\"", trimmed(left, 2), "\" y=\"", trimmed(top, 2), "\" width=\"",
              trimmed(map_width, 2), "\" height=\"", trimmed(map_height, 2),
              "\" fill=\"none\" stroke=\"#c9ced4\"/>\n");
  out += scale(left + map_width + 18, top, std::min(map_height, 120.0), most);
  return out + "</svg>\n";
}

std::string contact_sheet_svg(const std::vector<MapView>& maps, const std::string& title) {
  if (maps.empty()) fail("contact_sheet_svg: there is no map. Give at least one.");
  constexpr double box = 76, gap = 10, left = 150;
  int64_t heads = 0;
  for (const MapView& map : maps) {
    check(map);
    heads = std::max(heads, map.heads);
  }
  const double top = title.empty() ? 40 : 64;
  const std::string name = title.empty() ? "all attention heads" : title;
  std::string body;
  double y = top;
  for (const MapView& original : maps) {
    const MapView map = pooled(original, 48);
    const auto statistics = head_statistics(original);
    const double ratio = static_cast<double>(map.queries) / static_cast<double>(map.keys);
    const double map_width = ratio > 1 ? box / ratio : box, map_height = ratio > 1 ? box : box * ratio;
    body += label(16, y + 16, text(map.kind, " ", map.layer), "font-weight=\"600\"");
    body +=
        label(16, y + 33, text(original.queries, " × ", original.keys), "font-size=\"11\" fill=\"#5c6670\"");
    for (int64_t head = 0; head < map.heads; ++head) {
      const double x = left + static_cast<double>(head) * (box + gap);
      const HeadStatistics& one = statistics[static_cast<size_t>(head)];
      body += text("<g><title>",
                   escape(text(map.kind, " attention, layer ", map.layer, ", head ", head, ": entropy ",
                               fixed(one.entropy, 2), " of ", fixed(one.uniform_entropy, 2))),
                   "</title>");
      body += thumbnail(map, head, x, y, map_width, map_height);
      body +=
          text("<rect x=\"", trimmed(x, 2), "\" y=\"", trimmed(y, 2), "\" width=\"", trimmed(map_width, 2),
               "\" height=\"", trimmed(map_height, 2), "\" fill=\"none\" stroke=\"#c9ced4\"/></g>\n");
    }
    y += std::max(map_height, 40.0) + gap + 4;
  }
  std::string out = header(left + static_cast<double>(heads) * (box + gap) + 6, y + 6, name);
  if (!title.empty()) out += label(16, 28, title, "font-size=\"15\" font-weight=\"600\"");
  for (int64_t head = 0; head < heads; ++head)
    out += label(left + static_cast<double>(head) * (box + gap) + box / 2, top - 10, text("head ", head),
                 "text-anchor=\"middle\" font-size=\"11\" fill=\"#5c6670\"");
  return out + body + "</svg>\n";
}

}  // namespace heed
