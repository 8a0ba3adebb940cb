// A head report as a page and as a picture of its distances.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/map_page.h"
#include "heed/attention/inspect/map_svg.h"
#include "heed/attention/inspect/page_assets.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/embedded_files.h"
#include "heed/train/inspect/head_report.h"

namespace heed {
namespace {

constexpr std::string_view page_style = R"css(
.heads { width: 100%; font-size: 12.5px; }
.heads th, .heads td { padding: 4px 7px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
.heads thead th { vertical-align: bottom; white-space: normal; }
.heads th:nth-child(1), .heads td:nth-child(1), .heads th:nth-child(2), .heads td:nth-child(2) { text-align: left; }
.heads th:nth-child(1), .heads td:nth-child(1) { position: sticky; left: 0; background: var(--paper); }
.heads td:nth-child(2) { white-space: normal; min-width: 96px; }
.heads thead button { font-weight: 500; font-size: 12.5px; line-height: 1.25; color: var(--muted); padding: 0 2px; text-align: inherit; }
.heads th[aria-sort=ascending] button::after { content: " \2191"; }
.heads th[aria-sort=descending] button::after { content: " \2193"; }
.heads tbody tr { cursor: pointer; }
.heads tbody tr:hover { background: var(--panel); }
.heads tr[aria-selected=true], .heads tr[aria-selected=true] td:first-child { background: var(--accent-soft); }
.heads tbody tr:hover td:first-child { background: var(--panel); }
.head-detail h4, .head-detail p + dl { margin-top: 12px; }
.head-detail { display: grid; grid-template-columns: minmax(240px, 1fr) minmax(0, 3fr); gap: 20px 36px; margin-top: 20px; }
.head-examples { display: flex; flex-wrap: wrap; gap: 24px 32px; }
.head-examples figcaption { font-weight: 400; font-size: 13px; max-width: 420px; }
.head-detail dl { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 2px 14px; font-size: 12.5px; margin: 0; }
.head-detail dt { color: var(--muted); }
.head-detail dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; }
.squares { display: flex; flex-wrap: wrap; gap: 28px 40px; }
@media (max-width: 900px) { .head-detail { grid-template-columns: minmax(0, 1fr); } }
)css";

/// JSON that is safe inside a script element: these three occur in texts alone.
std::string in_script(const Json& json) {
  std::string out;
  for (const char c : json.dump()) {
    if (c == '<' || c == '>' || c == '&')
      out += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    else
      out += c;
  }
  return out;
}

/// Weights in thousandths: what a picture can show.
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
  const std::string body = text(
      "<section class=\"head-report\" aria-label=\"Attention heads\">\n<noscript>The table is made by a "
      "script ",
      "inside this page; please allow it to run.</noscript>\n<script type=\"application/json\">",
      in_script(data), "</script>\n</section>\n");
  return picture::page(title, subtitle, body,
                       {picture::script_tools(), embedded_file("train/inspect/page_heads.js")}, page_style);
}

std::string head_distances_svg(const HeadReport& report) {
  constexpr double side = 18, margin = 92, gap = 40;
  double x = gap, height = 0;
  std::string body;
  for (const HeadDistances::Group& group : report.groups) {
    std::vector<std::string> names;
    for (const HeadEntry& head : report.heads)
      if (head.kind == group.kind) names.push_back(head.name);
    const size_t n = names.size();
    double largest = 1e-9;
    for (const double distance : group.distances) largest = std::max(largest, distance);
    body += text("<text x=\"", picture::trimmed(x, 1), "\" y=\"24\" font-weight=\"600\">",
                 picture::escape(group.kind), ": Jensen-Shannon divergence up to ",
                 picture::fixed(largest, 2), " nats</text>\n");
    const double left = x + margin, top = 34 + margin;
    for (size_t i = 0; i < n; ++i) {
      const std::string& name = names[group.order[i]];
      const double at = side * (static_cast<double>(i) + 0.7);
      body += text("<text x=\"", picture::trimmed(left - 6, 1), "\" y=\"", picture::trimmed(top + at, 1),
                   "\" text-anchor=\"end\">", picture::escape(name), "</text>\n<text transform=\"translate(",
                   picture::trimmed(left + at, 1), " ", picture::trimmed(top - 6, 1), ") rotate(-90)\">",
                   picture::escape(name), "</text>\n");
      for (size_t j = 0; j < n; ++j) {
        const double distance = group.distances[group.order[i] * n + group.order[j]];
        body += text("<rect x=\"", picture::trimmed(left + side * static_cast<double>(j), 1), "\" y=\"",
                     picture::trimmed(top + side * static_cast<double>(i), 1),
                     "\" width=\"18\" height=\"18\" fill=\"", picture::colour(distance / largest),
                     "\"><title>", picture::escape(name), ", ", picture::escape(names[group.order[j]]), ": ",
                     picture::fixed(distance, 3), "</title></rect>\n");
      }
    }
    x = std::max(left + side * static_cast<double>(n), x + 330) + gap;
    height = std::max(height, top + side * static_cast<double>(n) + 20);
  }
  return text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", picture::trimmed(x, 1), "\" height=\"",
              picture::trimmed(height, 1), "\" viewBox=\"0 0 ", picture::trimmed(x, 1), " ",
              picture::trimmed(height, 1),
              "\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#1c2024\">\n",
              "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n", body, "</svg>\n");
}

}  // namespace heed
