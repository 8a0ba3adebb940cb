// An ablation report as JSON, table, picture and page.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "heed/attention/inspect/map_page.h"
#include "heed/attention/inspect/page_assets.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/train/inspect/head_ablation.h"
#include "heed/train/report/chart.h"
#include "heed/train/report/report.h"

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

std::string effect_line(const AblationEffect& effect) {
  // The sign of plus or minus takes two bytes, so columns are padded by hand.
  const auto cell = [](const std::string& words, size_t width) {
    const size_t columns = words.size() - 1;
    return std::string(columns < width ? width - columns : 0, ' ') + words;
  };
  std::string name = "  " + effect.name;
  name.resize(std::max<size_t>(name.size(), 16), ' ');
  return name + cell(with_error(effect.loss, 4), 18) + cell(with_error(effect.accuracy, 2, 100), 17) +
         (effect.bleu ? cell(with_error(*effect.bleu, 2), 17) : "") + "\n";
}

std::string table_rows(const std::vector<AblationEffect>& effects) {
  std::string out;
  for (const AblationEffect& effect : effects)
    out += text("<tr><th scope=\"row\">", escape(effect.name), "</th><td>", with_error(effect.loss, 4),
                "</td><td>", with_error(effect.accuracy, 2, 100), "</td><td>",
                effect.bleu ? with_error(*effect.bleu, 2) : "\u2013", "</td></tr>\n");
  return out;
}

Chart curve_chart(const AblationReport& report) {
  Series loss{.name = "loss"};
  for (const PruningStep& step : report.curve) {
    loss.x.push_back(static_cast<double>(report.curve[0].left - step.left));
    loss.y.push_back(report.whole.loss + step.effect.loss.value);
  }
  return {.title = "Loss, nats per target, after removing the least important heads",
          .series = {loss},
          .x_label = "heads removed"};
}

std::string about_whole(const AblationReport& report) {
  return text("whole model: loss ", fixed(report.whole.loss, 4), ", accuracy ",
              fixed(100 * report.whole.accuracy, 2), " %",
              report.whole.bleu
                  ? text(", BLEU ", fixed(*report.whole.bleu, 2), " of ", report.outputs, " outputs")
                  : std::string(),
              "; ", report.examples, " test examples; heads replaced by ", report.by.name());
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
  std::string out = "  " + about_whole(report) + "\n\n";
  out += "  replaced         change of loss  accuracy, points";
  out += report.outputs > 0 ? "          of BLEU\n" : "\n";
  for (const AblationEffect& effect : report.heads) out += effect_line(effect);
  if (!report.layers.empty()) out += "\n";
  for (const AblationEffect& effect : report.layers) out += effect_line(effect);
  if (report.curve.empty()) return out;
  out += "\n  pruned, one more each line, the least important first\n";
  for (const PruningStep& step : report.curve) {
    if (step.removed.empty()) continue;
    AblationEffect effect = step.effect;
    effect.name = text("- ", step.removed, ", ", step.left, " left");
    out += effect_line(effect);
  }
  return out;
}

std::string ablation_svg(const AblationReport& report) {
  constexpr double row = 18, left = 110, width = 420, top = 46;
  std::vector<const AblationEffect*> effects;
  for (const auto* list : {&report.heads, &report.layers})
    for (const AblationEffect& effect : *list) effects.push_back(&effect);
  double low = 0, high = 1e-9;
  for (const AblationEffect* effect : effects) {
    low = std::min(low, effect->loss.value - effect->loss.error);
    high = std::max(high, effect->loss.value + effect->loss.error);
  }
  const auto x = [&](double value) { return left + (value - low) / (high - low) * width; };
  std::string body;
  for (const double tick : axis_ticks(low, high, 5)) {
    if (x(tick) < left - 1 || x(tick) > left + width + 1) continue;
    body += text("<path d=\"M", trimmed(x(tick), 1), " ", top - 4, "V",
                 trimmed(top + row * static_cast<double>(effects.size()), 1),
                 "\" stroke=\"#e1e5ea\"/>\n<text x=\"", trimmed(x(tick), 1), "\" y=\"", top - 9,
                 "\" text-anchor=\"middle\" fill=\"#5c6670\">", tick_text(tick), "</text>\n");
  }
  for (size_t i = 0; i < effects.size(); ++i) {
    const MeanChange& loss = effects[i]->loss;
    const double y = top + row * static_cast<double>(i), middle = y + row / 2;
    const double from = std::min(x(0), x(loss.value)), to = std::max(x(0), x(loss.value));
    const bool layer = i >= report.heads.size();
    body +=
        text("<text x=\"", left - 8, "\" y=\"", trimmed(middle + 4, 1), "\" text-anchor=\"end\">",
             escape(effects[i]->name), "</text>\n<rect x=\"", trimmed(from, 1), "\" y=\"", trimmed(y + 3, 1),
             "\" width=\"", trimmed(std::max(to - from, 0.5), 1), "\" height=\"12\" fill=\"",
             layer ? "#8a6a06" : "#2b6cb0", "\"><title>", escape(effects[i]->name), ": ", with_error(loss, 4),
             "</title></rect>\n<path d=\"M", trimmed(x(loss.value - loss.error), 1), " ", trimmed(middle, 1),
             "H", trimmed(x(loss.value + loss.error), 1), "\" stroke=\"#1c2024\" stroke-width=\"1.5\"/>\n");
  }
  const double height = top + row * static_cast<double>(effects.size()) + 14;
  return text(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"560\" height=\"", trimmed(height, 1),
      "\" viewBox=\"0 0 560 ", trimmed(height, 1),
      "\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#1c2024\">\n<rect width=\"100%\" "
      "height=\"100%\" fill=\"#ffffff\"/>\n<text x=\"8\" y=\"18\" font-weight=\"600\">Change of loss, nats "
      "per target, with ",
      escape(report.by.name()), " in place of the head</text>\n", body, "</svg>\n");
}

std::string ablation_page(const AblationReport& report, const std::string& title,
                          const std::string& subtitle) {
  std::string body =
      text("<p class=\"subtitle\">", escape(about_whole(report)), "</p>\n<h2>One at a time</h2>\n<figure>\n",
           ablation_svg(report), "</figure>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" ",
           "aria-label=\"Effects\">\n<table class=\"words\">\n<thead><tr><th scope=\"col\">replaced</th>",
           "<th scope=\"col\">change of loss, nats</th><th scope=\"col\">of accuracy, points</th>",
           "<th scope=\"col\">of BLEU</th></tr></thead>\n<tbody>\n", table_rows(report.heads),
           table_rows(report.layers),
           "</tbody>\n</table>\n</div>\n<p class=\"note\">Errors are standard errors of ",
           "differences, paired over examples; of BLEU, of 200 bootstrap samples.</p>\n");
  if (!report.curve.empty()) {
    std::vector<AblationEffect> steps;
    for (const PruningStep& step : report.curve) {
      if (step.removed.empty()) continue;
      steps.push_back(step.effect);
      steps.back().name = text("without ", step.removed, ", too: ", step.left, " left");
    }
    body += text("<h2>Pruning, the least important head first</h2>\n<div class=\"charts\">\n",
                 chart_figure(curve_chart(report)),
                 "</div>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" ",
                 "aria-label=\"Pruning\">\n<table class=\"words\">\n<tbody>\n", table_rows(steps),
                 "</tbody>\n</table>\n</div>\n");
  }
  return picture::page(title, subtitle, body, {picture::script_tools(), picture::script_charts()});
}

}  // namespace heed
