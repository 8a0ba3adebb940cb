// Writes a head report as a page, and the distances of heads as a picture.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/html_page.h"
#include "heed/attention/inspect/map_svg.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/embedded_files.h"
#include "heed/train/inspect/head_report.h"

namespace heed {
namespace {

/// JSON for a script element, with <, > and & as escapes. Valid JSON has these characters in strings only.
std::string json_for_script(const Json& json) {
  std::string out;
  for (const char c : json.dump()) {
    if (c == '<' || c == '>' || c == '&')
      out += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    else
      out += c;
  }
  return out;
}

/// The map of an example as JSON; weights are whole thousandths, which are precise enough for a picture.
Json example_map_json(const MapView& map) {
  Json rows{Json::List{}}, columns{Json::List{}}, weights{Json::List{}};
  for (const std::string& token : map.query_tokens) rows.push(picture::visible(token));
  for (const std::string& token : map.key_tokens) columns.push(picture::visible(token));
  for (const float weight : map.weights)
    weights.push(std::isfinite(weight) ? Json(std::lround(1000 * weight)) : Json());
  return Json::object(
      {{"rows", std::move(rows)}, {"columns", std::move(columns)}, {"weights", std::move(weights)}});
}

}  // namespace

std::string head_report_page(const HeadReport& report, const std::string& title,
                             const std::string& subtitle) {
  Json data = head_report_json(report);
  Json maps{Json::List{}};
  for (const HeadEntry& head : report.heads) {
    Json list{Json::List{}};
    for (const HeadExample& one : head.best) list.push(example_map_json(one.map));
    maps.push(std::move(list));
  }
  data.set("maps", std::move(maps));
  return picture::page(
      title, subtitle,
      picture::script_section("head-report", "Attention heads", "The table is made", json_for_script(data)),
      {picture::tools_script, "train/inspect/page_heads.js"}, embedded_file("train/inspect/page_heads.css"));
}

std::string head_distances_svg(const HeadReport& report) {
  constexpr double side = 18, margin = 92, gap = 40;
  double x = gap, height = 0;
  picture::SvgCanvas out;
  for (const HeadDistances::Group& group : report.groups) {
    std::vector<std::string> names;
    for (const HeadEntry& head : report.heads)
      if (head.kind == group.kind) names.push_back(head.name);
    const size_t n = names.size();
    double largest = 1e-9;
    for (const double distance : group.distances) largest = std::max(largest, distance);
    out.label(x, 24,
              text(group.kind, ": Jensen-Shannon divergence up to ", picture::fixed(largest, 2), " nats"),
              "font-weight=\"600\"");
    const double left = x + margin, top = 34 + margin;
    for (size_t i = 0; i < n; ++i) {
      const std::string& name = names[group.order[i]];
      const double offset = side * (static_cast<double>(i) + 0.7);
      out.label(left - 6, top + offset, name, "text-anchor=\"end\"");
      out.rotated_label(left + offset, top - 6, -90, name);
      for (size_t j = 0; j < n; ++j) {
        const double distance = group.distances[group.order[i] * n + group.order[j]];
        out.rectangle(left + side * static_cast<double>(j), top + side * static_cast<double>(i), side, side,
                      picture::fill(picture::colour(distance / largest)),
                      text(name, ", ", names[group.order[j]], ": ", picture::fixed(distance, 3)));
      }
    }
    x = std::max(left + side * static_cast<double>(n), x + 330) + gap;
    height = std::max(height, top + side * static_cast<double>(n) + 20);
  }
  return out.document(x, height,
                      text("width=\"", out.number(x), "\" height=\"", out.number(height), "\" ",
                           picture::sans_serif, " font-size=\"12\" fill=\"#1c2024\""),
                      {}, "#ffffff");
}

}  // namespace heed
