// Writes an ablation report as JSON, tables, picture and page.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/html_page.h"
#include "heed/attention/inspect/svg.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/table_text.h"
#include "heed/train/inspect/head_ablation.h"
#include "heed/train/report/chart.h"
#include "heed/train/report/report.h"

namespace heed {
namespace {

using picture::escape;
using picture::fixed;
using picture::padded;
using picture::row_head;
using picture::SvgCanvas;

Json change_json(const MeanChange& change) {
  return Json::object({{"value", change.value}, {"error", change.error}});
}

Json effect_json(const AblationEffect& effect) {
  Json out = Json::object({{"name", effect.name},
                           {"loss_change", change_json(effect.loss)},
                           {"accuracy_change", change_json(effect.accuracy)}});
  if (effect.bleu) out.set("bleu_change", change_json(*effect.bleu));
  return out;
}

std::string signed_number(double value, int decimals) {
  return (value >= 0 ? "+" : "-") + fixed(std::abs(value), decimals);
}

std::string with_error(const MeanChange& change, int decimals, double scale = 1) {
  return signed_number(scale * change.value, decimals) + " \u00b1 " + fixed(scale * change.error, decimals);
}

/// The cells of the changes: loss, accuracy in percentage points, and BLEU where it was measured.
TableRow change_cells(const AblationEffect& effect) {
  constexpr double percent = 100;
  TableRow cells{with_error(effect.loss, 4), with_error(effect.accuracy, 2, percent)};
  if (effect.bleu) cells.push_back(with_error(*effect.bleu, 2));
  return cells;
}

/// The row of an effect in a table for terminals. `first_cells` hold the head's name and the like.
TableRow terminal_row(TableRow first_cells, const AblationEffect& effect) {
  const TableRow cells = change_cells(effect);
  first_cells.insert(first_cells.end(), cells.begin(), cells.end());
  return first_cells;
}

/// The row of an effect in a table of the page. `first_cells`: HTML of the cells before the changes.
std::string html_row(const std::string& first_cells, const AblationEffect& effect) {
  std::string cells;
  for (const std::string& cell : change_cells(effect)) cells += text("<td>", cell, "</td>");
  return text("<tr>", first_cells, cells, "</tr>\n");
}

/// A table of changes in the page. `columns`: the headings of the columns before the changes.
std::string effects_table(const std::string& label, std::vector<std::string> columns, bool with_bleu,
                          const std::string& rows) {
  columns.insert(columns.end(), {"change of loss, nats per target", "change of accuracy, points"});
  if (with_bleu) columns.emplace_back("change of BLEU, points");
  return picture::html_table(label, "measures", picture::column_heads(columns), rows);
}

std::string replaced_table(const std::string& label, const std::vector<AblationEffect>& effects) {
  std::string rows;
  for (const AblationEffect& effect : effects) rows += html_row(row_head(effect.name), effect);
  return effects_table(label, {"replaced"}, effects.front().bleu.has_value(), rows);
}

std::string pruning_table(const std::vector<PruningStep>& curve) {
  std::string rows;
  bool with_bleu = false;
  for (const PruningStep& step : curve) {
    if (step.removed.empty()) continue;
    with_bleu = step.effect.bleu.has_value();
    rows += html_row(text(row_head(step.removed), "<td>", step.left, "</td>"), step.effect);
  }
  return effects_table("Pruning", {"head removed", "heads left"}, with_bleu, rows);
}

Chart curve_chart(const AblationReport& report) {
  Series loss{.name = "loss"};
  for (const PruningStep& step : report.curve) {
    loss.x.push_back(static_cast<double>(report.curve[0].left - step.left));
    loss.y.push_back(report.unpruned.loss + step.effect.loss.value);
  }
  return {.title = "Loss, nats per target", .series = {loss}, .x_label = "heads removed"};
}

std::string about_unpruned(const AblationReport& report) {
  return text("whole model: loss ", fixed(report.unpruned.loss, 4), ", accuracy ",
              fixed(100 * report.unpruned.accuracy, 2), " %",
              report.unpruned.bleu
                  ? text(", BLEU ", fixed(*report.unpruned.bleu, 2), " of ", report.outputs, " outputs")
                  : std::string(),
              "; ", report.examples, report.examples == 1 ? " test example" : " test examples",
              "; heads replaced by ", report.by.name());
}

}  // namespace

Json ablation_json(const AblationReport& report) {
  Json heads{Json::List{}}, layers{Json::List{}}, curve{Json::List{}};
  for (const AblationEffect& effect : report.heads) heads.push(effect_json(effect));
  for (const AblationEffect& effect : report.layers) layers.push(effect_json(effect));
  for (const PruningStep& step : report.curve) {
    Json one = effect_json(step.effect);
    one.set("name", step.removed);
    curve.push(one.append("heads_left", step.left));
  }
  Json whole = Json::object({{"loss", report.unpruned.loss}, {"accuracy", report.unpruned.accuracy}});
  if (report.unpruned.bleu) whole.set("bleu", *report.unpruned.bleu);
  return Json::object({{"by", report.by.name()},
                       {"examples", report.examples},
                       {"outputs", report.outputs},
                       {"seconds", report.seconds},
                       {"whole", std::move(whole)},
                       {"heads", std::move(heads)},
                       {"layers", std::move(layers)},
                       {"curve", std::move(curve)}});
}

std::string ablation_text(const AblationReport& report) {
  const auto headings = [&](TableRow columns) {
    columns.insert(columns.end(), {"change of loss", "accuracy, points"});
    if (report.outputs > 0) columns.emplace_back("change of BLEU");
    return columns;
  };
  std::vector<TableRow> replaced{headings({"replaced"})};
  for (const AblationEffect& effect : report.heads) replaced.push_back(terminal_row({effect.name}, effect));
  if (!report.layers.empty()) replaced.emplace_back();
  for (const AblationEffect& effect : report.layers) replaced.push_back(terminal_row({effect.name}, effect));
  const std::string out =
      "  " + about_unpruned(report) + "\n\n" + aligned_table(replaced, {.alignment = "lrrr", .indent = 2});
  if (report.curve.empty()) return out;
  std::vector<TableRow> pruned{headings({"head removed", "heads left"})};
  for (const PruningStep& step : report.curve) {
    if (!step.removed.empty())
      pruned.push_back(terminal_row({step.removed, std::to_string(step.left)}, step.effect));
  }
  return out + "\n  pruning: each line removes one head more, the least important first\n" +
         aligned_table(pruned, {.alignment = "lrrrr", .indent = 2});
}

namespace {

constexpr double picture_width = 460;

/// Draws a panel with a heading, an axis from x = `left` on, and a bar with an error for each effect. `top`
/// is the panel's upper edge before the call, and the edge of what may follow after it.
void add_bars(SvgCanvas& out, const std::string& heading, const std::vector<AblationEffect>& effects,
              double left, double& top) {
  constexpr double row_height = 18, right = picture_width - 24;
  double low = 0, high = 1e-9;
  for (const AblationEffect& effect : effects) {
    low = std::min(low, effect.loss.value - effect.loss.error);
    high = std::max(high, effect.loss.value + effect.loss.error);
  }
  const std::vector<double> ticks = axis_ticks(low, high, 4);
  low = std::min(low, ticks.front());
  high = std::max(high, ticks.back());
  const double bars_top = top + 42, bottom = bars_top + row_height * static_cast<double>(effects.size());
  const auto x = [&](double value) { return left + (value - low) / (high - low) * (right - left); };
  out.label(8, top + 14, heading, "font-weight=\"600\" fill=\"var(--text)\"");
  for (const double tick : ticks) {
    out.vertical(x(tick), bars_top - 4, bottom,
                 tick == 0 ? "stroke=\"var(--strong)\"" : "stroke=\"var(--line)\"");
    out.label(x(tick), bars_top - 9, tick_text(tick), "text-anchor=\"middle\" fill=\"var(--muted)\"");
  }
  for (size_t i = 0; i < effects.size(); ++i) {
    const MeanChange& loss = effects[i].loss;
    const double y = bars_top + row_height * static_cast<double>(i), middle = y + row_height / 2;
    const auto [bar_left, bar_right] = std::minmax({x(0), x(loss.value)});
    out.label(left - 8, middle + 4, effects[i].name, "text-anchor=\"end\" fill=\"var(--text)\"");
    out.rectangle(bar_left, y + 3, std::max(bar_right - bar_left, 0.5), 12, "fill=\"var(--series-0)\"",
                  effects[i].name + ": " + with_error(loss, 4));
    out.horizontal(x(loss.value - loss.error), middle, x(loss.value + loss.error),
                   "stroke=\"var(--text)\" stroke-width=\"1.5\"");
  }
  top = bottom + 18;
}

/// Draws a panel for single heads and one, with an axis of its own, for heads replaced together: their
/// changes are larger.
std::string ablation_drawing(const AblationReport& report) {
  double left = 60;    // left edge of the axes: room for the names of heads
  double bottom = 34;  // lower edge of the drawing so far
  for (const auto* list : {&report.heads, &report.layers}) {
    for (const AblationEffect& effect : *list)
      left = std::max(left, 7.5 * static_cast<double>(display_width(effect.name)) + 16);
  }
  left = std::min(left, picture_width / 2);
  const std::string title = text("Change of loss, nats per target; heads replaced by ", report.by.name());
  SvgCanvas out;
  out.label(8, 18, title, "font-size=\"13\" fill=\"var(--muted)\"");
  if (!report.heads.empty()) add_bars(out, "One head replaced", report.heads, left, bottom);
  if (!report.layers.empty()) add_bars(out, "Several heads replaced together", report.layers, left, bottom);
  return out.document(
      picture_width, bottom,
      text("width=\"", picture_width, "\" height=\"", out.number(bottom), "\" role=\"img\" aria-label=\"",
           escape(title), "\" ", picture::sans_serif, " font-size=\"12\""),
      {}, "var(--paper)");
}

}  // namespace

std::string ablation_svg(const AblationReport& report) {
  return picture::standalone_svg(ablation_drawing(report));
}

std::string ablation_page(const AblationReport& report, const std::string& title,
                          const std::string& subtitle) {
  std::string body = text("<p class=\"subtitle\">", escape(about_unpruned(report)), "</p>\n<figure>\n",
                          ablation_drawing(report), "</figure>\n");
  if (!report.heads.empty())
    body += "<h2>One head replaced</h2>\n" + replaced_table("Effects of single heads", report.heads);
  if (!report.layers.empty())
    body += "<h2>Several heads replaced together</h2>\n" +
            replaced_table("Effects of several heads together", report.layers);
  body += text("<dl class=\"explained\">\n<dt>change of loss</dt><dd>above 0: the model predicts worse ",
               "without the head</dd>\n<dt>change of accuracy</dt><dd>of the share of targets that are the ",
               "model's first choice, in percentage points</dd>\n",
               report.outputs > 0 ? "<dt>change of BLEU</dt><dd>of BLEU from 0 to 100</dd>\n" : "",
               "<dt>\u00b1</dt><dd>standard errors of the differences, paired over examples",
               report.outputs > 0 ? "; of BLEU, by 200 bootstrap samples" : "", "</dd>\n</dl>\n");
  if (!report.curve.empty())
    body += text("<h2>Pruning, the least important head first</h2>\n<p class=\"subtitle\">Each line removes ",
                 "one head more; changes are those to the whole model.</p>\n<div class=\"charts\">\n",
                 chart_figure(curve_chart(report)), "</div>\n", pruning_table(report.curve));
  return picture::page(title, subtitle, body, {picture::tools_script, charts_script});
}

}  // namespace heed
