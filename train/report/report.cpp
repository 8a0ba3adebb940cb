// Assembles the parts of a report into a page.
#include "heed/train/report/report.h"

#include <algorithm>

#include "heed/attention/inspect/html_page.h"
#include "heed/attention/inspect/map_page.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"

namespace heed {
namespace {

using picture::escape;

std::string cards(const std::vector<ReportCard>& all) {
  if (all.empty()) return "";
  std::string out = "<dl class=\"cards\">\n";
  for (const ReportCard& card : all) {
    out += text("<div><dt>", escape(card.name), "</dt><dd>", escape(card.value), "</dd>");
    if (!card.note.empty()) out += text("<dd class=\"note\">", escape(card.note), "</dd>");
    for (const std::string& line : card.beside) out += text("<dd class=\"note\">", escape(line), "</dd>");
    out += "</div>\n";
  }
  return out + "</dl>\n";
}

std::string charts(const std::vector<Chart>& all) {
  std::string figures;
  for (const Chart& chart : all) figures += chart_figure(chart);
  if (figures.empty()) return "";
  return text("<h2>Curves</h2>\n<div class=\"charts\">\n", figures, "</div>\n");
}

std::string samples(const std::vector<ReportSample>& all) {
  if (all.empty()) return "";
  const bool has_references = std::any_of(
      all.begin(), all.end(), [](const ReportSample& sample) { return !sample.reference.empty(); });
  std::string rows;
  for (const ReportSample& sample : all) {
    rows += text("<tr><td>", escape(sample.source), "</td>");
    if (has_references) rows += text("<td>", escape(sample.reference), "</td>");
    rows += text("<td>", escape(sample.hypothesis), "</td></tr>\n");
  }
  std::vector<std::string> heads{"source", "model"};
  if (has_references) heads.insert(heads.begin() + 1, "reference");
  return "<h2>Samples</h2>\n" + picture::html_table("Samples", "words", picture::column_heads(heads), rows);
}

constexpr int deepest_shade = 70;

/// A CSS class for each percent of shade in confusion_table(): the content policy forbids style attributes.
std::string shades() {
  std::string out;
  for (int percent = 1; percent <= deepest_shade; ++percent)
    out += text(".shade-", percent, " { --shade: ", percent, "%; }\n");
  return out;
}

/// Confusion matrix, shaded by fraction of the true class.
std::string confusion_table(const Confusion& confusion) {
  const auto& labels = confusion.labels;
  const size_t classes = labels.size();
  if (confusion.counts.size() != classes * classes)
    fail(Fault::data, "report: the confusion matrix has ", confusion.counts.size(), " counts, but ", classes,
         " labels need ", classes * classes, ".");
  std::string out =
      "<h2>Confusion</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Confusion "
      "matrix\">\n<table class=\"confusion\">\n<caption>Rows are true classes, columns are predictions; the "
      "last "
      "column is the share that was right.</caption>\n<thead><tr><td></td>";
  out += picture::column_heads(labels) + picture::column_heads({"right"}) + "</tr></thead>\n<tbody>\n";
  for (size_t truth = 0; truth < classes; ++truth) {
    int64_t sum = 0;
    for (size_t guess = 0; guess < classes; ++guess) sum += confusion.counts[truth * classes + guess];
    const auto share = [&](int64_t count) {
      return sum ? static_cast<double>(count) / static_cast<double>(sum) : 0;
    };
    out += "<tr>" + picture::row_head(labels[truth]);
    for (size_t guess = 0; guess < classes; ++guess) {
      const int64_t count = confusion.counts[truth * classes + guess];
      const double shade =
          guess == truth ? 45 * share(count) : std::min<double>(deepest_shade, 400 * share(count));
      out += text("<td class=\"", guess == truth ? "good" : "bad", " shade-", picture::fixed(shade, 0), "\">",
                  count, "</td>");
    }
    const int64_t correct = confusion.counts[truth * classes + truth];
    out += text("<th>", sum ? picture::fixed(100 * share(correct), 1) + " %" : "none", "</th></tr>\n");
  }
  return out + "</tbody>\n</table>\n</div>\n";
}

}  // namespace

std::string setting_cell(const std::string& value) {
  return "<td>" + (value.empty() ? std::string("none") : escape(value)) + "</td>";
}

std::string folded_settings(const std::string& summary, const std::string& all) {
  return text("<details class=\"folded\">\n<summary>", escape(summary), "</summary>\n<pre tabindex=\"0\">",
              escape(all), "</pre>\n</details>\n");
}

std::string settings_section(const ReportSettings& settings) {
  if (settings.all.empty()) return "";
  std::string out = "<h2>Settings</h2>\n";
  if (!settings.changed.empty()) {
    std::string rows;
    for (const ReportSetting& one : settings.changed)
      rows += text("<tr>", picture::row_head(one.key), setting_cell(one.value), setting_cell(one.before),
                   "</tr>\n");
    out += picture::html_table("Changed settings", "measures settings",
                               picture::column_heads({"changed setting", "this run", settings.from}), rows);
  } else if (!settings.from.empty()) {
    out += text("<p class=\"subtitle\">As in ", escape(settings.from), ": nothing was changed.</p>\n");
  }
  return out + folded_settings("All settings, as in config.toml", settings.all);
}

std::string report_html(const ReportData& report) {
  std::string body = cards(report.cards) + settings_section(report.settings) + charts(report.charts) +
                     samples(report.samples);
  if (report.confusion) body += confusion_table(*report.confusion);
  if (!report.maps.empty() || !report.maps_caption.empty()) {
    body += "<h2>Attention</h2>\n";
    if (!report.maps_caption.empty())
      body += text("<p class=\"subtitle\">", escape(report.maps_caption), "</p>\n");
    if (!report.maps.empty()) body += maps_section(report.maps);
  }
  std::vector<std::string_view> scripts = picture::map_scripts();
  scripts.push_back(charts_script);
  return picture::page(report.title, report.subtitle, body, scripts, report.confusion ? shades() : "");
}

}  // namespace heed
