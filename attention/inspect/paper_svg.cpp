// Figures for print, in millimetres.
#include "heed/attention/inspect/paper_svg.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/svg.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"

namespace heed {
namespace {

using picture::fill;
using picture::SvgCanvas;
using picture::trimmed;

constexpr double point = 25.4 / 72;  // millimetres

/// A grey whose lightness falls evenly with the weight; small weights stay visible.
std::string grey(double weight) {
  if (!std::isfinite(weight)) return "url(#bad)";
  const double share = std::pow(std::clamp(std::abs(weight), 0.0, 1.0), 0.8);
  const auto level = static_cast<int>(std::lround(255 * (1 - share)));
  return text("rgb(", level, ",", level, ",", level, ")");
}

/// Tokens as printed labels: without the mark of a word's beginning (U+2581), at most 18 columns.
std::vector<std::string> printed_labels(const std::vector<std::string>& tokens) {
  constexpr std::string_view mark = "\u2581";
  std::vector<std::string> out;
  for (const std::string& token : tokens) {
    std::string word = picture::visible(token);
    if (word.size() > mark.size() && word.starts_with(mark)) word = word.substr(mark.size());
    out.push_back(picture::shorten(word, 18));
  }
  return out;
}

/// The width of the longest word in millimetres, for a font of this size.
double max_label_width(const std::vector<std::string>& words, double size) {
  const int64_t columns = std::max<int64_t>(picture::max_display_width(words), 1);
  return static_cast<double>(columns) * size * 0.5;  // a generous mean advance of a serif face
}

constexpr std::string_view
    print_outline = "fill=\"none\" stroke=\"#000000\" stroke-width=\"0.15\"",
    patterns =
        "<defs><pattern id=\"below\" width=\"0.8\" height=\"0.8\" patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\"><path d=\"M0 0V0.8\" stroke=\"#000000\" "
        "stroke-width=\"0.5\"/></pattern><pattern id=\"bad\" width=\"1\" height=\"1\" "
        "patternUnits=\"userSpaceOnUse\"><path d=\"M0 0L1 1M1 0L0 1\" stroke=\"#000000\" "
        "stroke-width=\"0.15\"/></pattern></defs>\n";

std::string font_size(double size) { return text("font-size=\"", trimmed(size, 3), "\""); }

}  // namespace

std::string paper_svg(const MapView& original, int64_t head, const PaperOptions& options) {
  check_head("paper_svg", original, head);
  const MapView map = pooled(original, options.limit);
  const std::vector<std::string> queries = printed_labels(map.query_tokens),
                                 keys = printed_labels(map.key_tokens);
  const auto rows = static_cast<double>(map.queries), columns = static_cast<double>(map.keys);
  const double scale_width = 9.5;  // width of the scale with its numbers; lengths here are in millimetres
  // The font shrinks until a cell is as tall as a line, which again leaves more room for the cells.
  double size = 7 * point, left = 0, side = 0;  // font size, left margin, side of a cell
  bool labelled = true;
  for (;; size -= 0.25 * point) {
    labelled = size >= 4.5 * point;
    left = labelled ? max_label_width(queries, size) + 1.5 : 4;
    side = (options.width_mm - left - scale_width) / std::max(columns, 1.0);
    if (!labelled || side >= size * 0.95) break;
  }
  side = std::min(side, 6.0);
  const double above = labelled ? max_label_width(keys, size) + 1.5 : 4, width = side * columns,
               height = side * rows;
  const double total = std::max(above + height, above + 12) + 0.5;

  SvgCanvas out(3);
  out.markup(patterns);
  for (int64_t query = 0; query < map.queries; ++query)
    for (int64_t key = 0; key < map.keys; ++key) {
      const float weight = map.at(head, query, key);
      const double x = left + side * static_cast<double>(key), y = above + side * static_cast<double>(query);
      if (weight == 0) continue;
      out.rectangle(x, y, side, side, fill(grey(weight)));
      if (weight < 0) out.rectangle(x, y, side, side, fill("url(#below)"));
    }
  out.rectangle(left, above, width, height, print_outline);
  const std::string right_aligned = "text-anchor=\"end\" " + font_size(size),
                    centred = "text-anchor=\"middle\" " + font_size(7 * point);
  for (int64_t query = 0; labelled && query < map.queries; ++query)
    out.label(left - 0.8, above + side * (static_cast<double>(query) + 0.5) + size * 0.33,
              queries[static_cast<size_t>(query)], right_aligned);
  for (int64_t key = 0; labelled && key < map.keys; ++key)
    out.rotated_label(left + side * (static_cast<double>(key) + 0.5) + size * 0.33, above - 0.8, -90,
                      keys[static_cast<size_t>(key)], font_size(size));
  if (!labelled) {
    out.label(left + width / 2, 2.8, text("keys, 1 to ", original.keys), centred);
    out.rotated_label(2.8, above + height / 2, -90, text("queries, 1 to ", original.queries), centred);
  }
  constexpr int levels = 24;
  const double scale_height = std::clamp(height, 12.0, 24.0), x = left + width + 2;
  for (int level = 0; level < levels; ++level)
    out.rectangle(x, above + scale_height * level / levels, 1.8, scale_height / levels + 0.02,
                  fill(grey(1 - (level + 0.5) / levels)));
  out.rectangle(x, above, 1.8, scale_height, print_outline);
  for (const auto& [share, below] : {std::pair{0.0, 0.0}, {0.5, 0.8}, {1.0, 1.6}})
    out.label(x + 2.6, above + scale_height * (1 - share) + below, trimmed(share, 1), font_size(6 * point));
  return out.document(options.width_mm, total,
                      text("width=\"", trimmed(options.width_mm, 2), "mm\" height=\"", trimmed(total, 2),
                           "mm\" role=\"img\" font-family=\"'STIX Two Text', 'Times New Roman', Times, "
                           "serif\" fill=\"#000000\""),
                      head_title(map, head));
}

}  // namespace heed
