// An ablation report as JSON, table, picture and page.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/map_page.h"
#include "heed/attention/inspect/page_assets.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/train/inspect/head_ablation.h"
#include "heed/train/report/chart.h"
#include "heed/train/report/report.h"
#include "heed/train/report/standalone_svg.h"

namespace heed {
namespace {

using picture::escape;
using picture::fixed;
using picture::trimmed;

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

/// A cell of a table for terminals; the sign of plus or minus takes two bytes, so columns are padded by hand.
std::string change_cell(const std::string& words, size_t width) {
  const size_t columns = words.size() - 1;
  return std::string(columns < width ? width - columns : 0, ' ') + words;
}

/// A name, what stands behind it, and the changes.
std::string effect_line(const std::string& name, const std::string& count, const AblationEffect& effect) {
  std::string out = "  " + name;
  out.resize(std::max<size_t>(out.size(), 16), ' ');
  return out + count + change_cell(with_error(effect.loss, 4), 18) +
         change_cell(with_error(effect.accuracy, 2, 100), 17) +
         (effect.bleu ? change_cell(with_error(*effect.bleu, 2), 17) : "") + "\n";
}

std::string table_row(const std::string& names, const AblationEffect& effect) {
  return text("<tr>", names, "<td>", with_error(effect.loss, 4), "</td><td>",
              with_error(effect.accuracy, 2, 100), "</td>",
              effect.bleu ? "<td>" + with_error(*effect.bleu, 2) + "</td>" : "", "</tr>\n");
}

/// A table of changes, whose first columns are called `names`; that of BLEU is there where it was measured.
std::string effects_table(const std::string& label, const std::vector<std::string>& names, bool with_bleu,
                          const std::string& rows) {
  std::string head;
  for (const std::string& name : names) head += "<th scope=\"col\">" + escape(name) + "</th>";
  return text("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", escape(label),
              "\">\n<table class=\"measures\">\n<thead><tr>", head,
              "<th scope=\"col\">change of loss, nats per target</th>",
              "<th scope=\"col\">change of accuracy, points</th>",
              with_bleu ? "<th scope=\"col\">change of BLEU, points</th>" : "", "</tr></thead>\n<tbody>\n",
              rows, "</tbody>\n</table>\n</div>\n");
}

std::string row_heading(const std::string& name) { return "<th scope=\"row\">" + escape(name) + "</th>"; }

std::string replaced_table(const std::string& label, const std::vector<AblationEffect>& effects) {
  std::string rows;
  for (const AblationEffect& effect : effects) rows += table_row(row_heading(effect.name), effect);
  return effects_table(label, {"replaced"}, effects.front().bleu.has_value(), rows);
}

std::string pruning_table(const std::vector<PruningStep>& curve) {
  std::string rows;
  bool with_bleu = false;
  for (const PruningStep& step : curve) {
    if (step.removed.empty()) continue;
    with_bleu = step.effect.bleu.has_value();
    rows += table_row(text(row_heading(step.removed), "<td>", step.left, "</td>"), step.effect);
  }
  return effects_table("Pruning", {"head removed", "heads left"}, with_bleu, rows);
}

Chart curve_chart(const AblationReport& report) {
  Series loss{.name = "loss"};
  for (const PruningStep& step : report.curve) {
    loss.x.push_back(static_cast<double>(report.curve[0].left - step.left));
    loss.y.push_back(report.whole.loss + step.effect.loss.value);
  }
  return {.title = "Loss, nats per target", .series = {loss}, .x_label = "heads removed"};
}

std::string about_whole(const AblationReport& report) {
  return text("whole model: loss ", fixed(report.whole.loss, 4), ", accuracy ",
              fixed(100 * report.whole.accuracy, 2), " %",
              report.whole.bleu
                  ? text(", BLEU ", fixed(*report.whole.bleu, 2), " of ", report.outputs, " outputs")
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
  Json whole = Json::object({{"loss", report.whole.loss}, {"accuracy", report.whole.accuracy}});
  if (report.whole.bleu) whole.set("bleu", *report.whole.bleu);
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
  const std::string changes = "    change of loss  accuracy, points";
  const std::string bleu = report.outputs > 0 ? "   change of BLEU\n" : "\n";
  std::string out = "  " + about_whole(report) + "\n\n  replaced     " + changes + bleu;
  for (const AblationEffect& effect : report.heads) out += effect_line(effect.name, "", effect);
  if (!report.layers.empty()) out += "\n";
  for (const AblationEffect& effect : report.layers) out += effect_line(effect.name, "", effect);
  if (report.curve.empty()) return out;
  out +=
      "\n  pruning: each line removes one head more, the least important first\n  head removed   heads left" +
      changes.substr(2) + bleu;
  for (const PruningStep& step : report.curve) {
    if (step.removed.empty()) continue;
    const std::string left = std::to_string(step.left);
    out += effect_line(step.removed, std::string(11 - std::min<size_t>(left.size(), 11), ' ') + left,
                       step.effect);
  }
  return out;
}

namespace {

constexpr double picture_width = 460;

/// The bars of some effects over an axis of their own, from `top` on, which it moves below them.
std::string bars_panel(const std::string& heading, const std::vector<AblationEffect>& effects, double left,
                       double& top) {
  constexpr double row = 18, right = picture_width - 24;
  double low = 0, high = 1e-9;
  for (const AblationEffect& effect : effects) {
    low = std::min(low, effect.loss.value - effect.loss.error);
    high = std::max(high, effect.loss.value + effect.loss.error);
  }
  const std::vector<double> ticks = axis_ticks(low, high, 4);
  low = std::min(low, ticks.front());
  high = std::max(high, ticks.back());
  const double bars = top + 42, bottom = bars + row * static_cast<double>(effects.size());
  const auto x = [&](double value) { return left + (value - low) / (high - low) * (right - left); };
  std::string out = text("<text x=\"8\" y=\"", trimmed(top + 14, 1),
                         "\" font-weight=\"600\" fill=\"var(--text)\">", escape(heading), "</text>\n");
  for (const double tick : ticks) {
    out += text("<path d=\"M", trimmed(x(tick), 1), " ", trimmed(bars - 4, 1), "V", trimmed(bottom, 1),
                "\" stroke=\"var(--", tick == 0 ? "strong" : "line", ")\"/>\n<text x=\"", trimmed(x(tick), 1),
                "\" y=\"", trimmed(bars - 9, 1), "\" text-anchor=\"middle\" fill=\"var(--muted)\">",
                tick_text(tick), "</text>\n");
  }
  for (size_t i = 0; i < effects.size(); ++i) {
    const MeanChange& loss = effects[i].loss;
    const double y = bars + row * static_cast<double>(i), middle = y + row / 2;
    const double from = std::min(x(0), x(loss.value)), to = std::max(x(0), x(loss.value));
    out += text("<text x=\"", trimmed(left - 8, 1), "\" y=\"", trimmed(middle + 4, 1),
                "\" text-anchor=\"end\" fill=\"var(--text)\">", escape(effects[i].name),
                "</text>\n<rect x=\"", trimmed(from, 1), "\" y=\"", trimmed(y + 3, 1), "\" width=\"",
                trimmed(std::max(to - from, 0.5), 1), "\" height=\"12\" fill=\"var(--series-0)\"><title>",
                escape(effects[i].name), ": ", with_error(loss, 4), "</title></rect>\n<path d=\"M",
                trimmed(x(loss.value - loss.error), 1), " ", trimmed(middle, 1), "H",
                trimmed(x(loss.value + loss.error), 1), "\" stroke=\"var(--text)\" stroke-width=\"1.5\"/>\n");
  }
  top = bottom + 18;
  return out;
}

/// A panel for single heads and one for heads replaced together, whose changes are of another size.
std::string ablation_drawing(const AblationReport& report) {
  double left = 60, bottom = 34;
  for (const auto* list : {&report.heads, &report.layers}) {
    for (const AblationEffect& effect : *list)
      left = std::max(left, 7.5 * static_cast<double>(picture::display_width(effect.name)) + 16);
  }
  left = std::min(left, picture_width / 2);
  std::string body;
  if (!report.heads.empty()) body += bars_panel("One head replaced", report.heads, left, bottom);
  if (!report.layers.empty())
    body += bars_panel("Several heads replaced together", report.layers, left, bottom);
  const std::string title = text("Change of loss, nats per target; heads replaced by ", report.by.name());
  return text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", picture_width, "\" height=\"",
              trimmed(bottom, 1), "\" viewBox=\"0 0 ", picture_width, " ", trimmed(bottom, 1),
              "\" role=\"img\" aria-label=\"", escape(title),
              "\" font-family=\"system-ui, 'Segoe UI', Roboto, Arial, sans-serif\" font-size=\"12\">\n",
              "<rect width=\"100%\" height=\"100%\" fill=\"var(--paper)\"/>\n<text x=\"8\" y=\"18\" ",
              "font-size=\"13\" fill=\"var(--muted)\">", escape(title), "</text>\n", body, "</svg>\n");
}

}  // namespace

std::string ablation_svg(const AblationReport& report) {
  return picture::standalone_svg(ablation_drawing(report));
}

std::string ablation_page(const AblationReport& report, const std::string& title,
                          const std::string& subtitle) {
  std::string body = text("<p class=\"subtitle\">", escape(about_whole(report)), "</p>\n<figure>\n",
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
  return picture::page(title, subtitle, body, {picture::script_tools(), picture::script_charts()});
}

}  // namespace heed
