// Statistics of a trained language model under the attention of each cell, and their tables and curves.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/attention/spec.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/experiments/attention_errors.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/experiments/tree_claims.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/progress/progress.h"

namespace heed {
namespace {

/// One statistic of a cell: its name in the file of the cell, and what the page calls it.
struct SwapStatistic {
  const char* key;
  const char* title;
  int digits;
  double factor;
};

constexpr SwapStatistic swap_statistics[] = {
    {"perplexity", "Perplexity of the text, teacher forced", 3, 1},
    {"own", "The published statistic: own samples at temperature 0.8", 2, 1},
    {"divergence", "Kullback-Leibler divergence of rows from the exact ones, nats", 3, 1},
    {"outputs", "Distance of outputs from the exact ones, percent", 1, 100}};

constexpr int64_t max_measured_bytes = int64_t{1} << 20;  // limit of the size of a cell's file

/// The attention of a cell: E is its column's, unless the row says it.
Spec spec_of(const PlannedCell& planned) {
  Spec spec = parse_spec(planned.row->attention_on(*planned.column));
  const bool given = std::any_of(spec.options.begin(), spec.options.end(),
                                 [](const auto& option) { return option.first == "exponent"; });
  if (!given) spec.options.emplace_back("exponent", text(planned.column->exponent));
  return spec;
}

/// The attention as the paper's code computes it: without the own key, its projection drawn anew for each
/// token, buds counted once in the denominator.
Spec as_published(Spec spec) {
  spec.options.emplace_back("denominator", "paper");
  spec.options.emplace_back("include_self", "false");
  spec.options.emplace_back("redraw", "per_token");
  return spec;
}

Json measured(const AttentionErrors& errors, const Spec& spec) {
  std::vector<Json> perplexity, own, divergence, outputs;
  double min_negative = 1, max_negative = 0;
  for (int64_t portion = 0; portion < AttentionErrors::portions; ++portion) {
    perplexity.emplace_back(errors.perplexity(to_string(spec), portion));
    own.emplace_back(
        errors.own_perplexity(to_string(as_published(spec)), portion, static_cast<uint64_t>(portion + 1)));
    const AttentionErrors::Distance distance = errors.distance(to_string(spec), portion);
    divergence.emplace_back(distance.divergence);
    outputs.emplace_back(distance.outputs);
    min_negative = std::min(min_negative, distance.min_negative);
    max_negative = std::max(max_negative, distance.max_negative);
  }
  return Json::object({{"attention", Json(to_string(spec))},
                       {"run", Json(errors.description())},
                       {"perplexity", Json(std::move(perplexity))},
                       {"own", Json(std::move(own))},
                       {"divergence", Json(std::move(divergence))},
                       {"outputs", Json(std::move(outputs))},
                       {"least_negative", min_negative},
                       {"most_negative", max_negative}});
}

bool is_list_of_numbers(const Json& value) {
  return value.is_list() && !value.list().empty() &&
         std::all_of(value.list().begin(), value.list().end(),
                     [](const Json& one) { return one.is_number() || one.is_null(); });
}

/// The statistics of a cell, as measured() has made them in this call or an earlier one.
Json read_measured(const Path& path) {
  return with_remeasuring(path, [&] {
    Json file = parse_json(io::read(path, max_measured_bytes), path.string());
    const auto demand = [&](const char* key, bool (*holds)(const Json&), const char* what) {
      const Json* value = file.is_object() ? file.find(key) : nullptr;
      if (value == nullptr || !holds(*value))
        fail(Fault::data, path, ": '", key, "' is ", value == nullptr ? "missing" : shown(value->dump(), 40),
             ". It must be ", what, ".");
    };
    for (const SwapStatistic& statistic : swap_statistics)
      demand(statistic.key, is_list_of_numbers, "a list of numbers");
    demand(
        "run", [](const Json& value) { return value.is_text(); }, "a text");
    for (const char* key : {"least_negative", "most_negative"})
      demand(
          key, [](const Json& value) { return value.is_number(); }, "a number");
    return file;
  });
}

Spread spread_in(const Json& file, const char* key) {
  std::vector<double> values;
  for (const Json& value : file.at(key).list()) values.push_back(value.real());
  return spread_of(values);
}

/// The mean of a statistic over the portions of the text, in the unit of the page; NaN: not measured.
double shown_mean(const PlannedCell& planned, const SwapStatistic& statistic) {
  return planned.measured.is_null() ? NAN
                                    : statistic.factor * spread_in(planned.measured, statistic.key).mean;
}

/// The grid of a statistic: a line for each row with a measured cell, a column for each E.
std::string grid_of(const PageInput& input, const SwapStatistic& statistic) {
  std::string head = "| mass |", rule = "|---|", rows;
  for (const PublishedColumn& column : input.table.columns) {
    head += " " + column.name + " |";
    rule += "---:|";
  }
  for (const PublishedRow& row : input.table.rows) {
    std::string cells;
    bool has_value = false;
    for (const PublishedColumn& column : input.table.columns) {
      double value = NAN;
      for (const PlannedCell* planned : input.in_column(column)) {
        if (planned->row == &row) value = shown_mean(*planned, statistic);
      }
      has_value = has_value || !std::isnan(value);
      cells += " | " + (std::isnan(value) ? "-" : picture::fixed(value, statistic.digits));
    }
    if (has_value) rows += "| " + row.name + cells + " |\n";
  }
  return head + "\n" + rule + "\n" + rows;
}

/// The curve of one statistic over E: a line for each row.
Chart swap_chart(const PageInput& input, const SwapStatistic& statistic) {
  Chart chart{.title = statistic.title, .series = {}, .x_label = "E"};
  for (const PublishedRow& row : input.table.rows) {
    Series series{.name = row.name};
    for (const PlannedCell& planned : input.all) {
      if (planned.row != &row || planned.measured.is_null()) continue;
      series.x.push_back(planned.column->exponent);
      series.y.push_back(shown_mean(planned, statistic));
    }
    if (!series.x.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

/// The paper's statements, computed again, with what a measured cell tells of figure 3.
std::vector<Claim> claims_with(const Json& cell) {
  std::vector<Claim> claims = tree_claims();
  const double min_share = cell.at("least_negative").real(), max_share = cell.at("most_negative").real();
  if (min_share > max_share) return claims;  // keys are shared by heads, so there are no such shares
  claims.push_back(
      {"figure 3, share of negative q . k of a head, of all heads of this model", "frequently most",
       text(picture::fixed(100 * min_share, 0), " to ", picture::fixed(100 * max_share, 0), " %"),
       max_share > 0.5 ? "some heads are dominated by negative products, not all"
                       : "no head of this model is dominated by negative products"});
  return claims;
}

}  // namespace

void swap_cells(const PublishedTable&, const ReproductionOptions& options, std::vector<PlannedCell>& all) {
  const StopSignals signals;
  Progress progress;
  progress.quiet = options.runs.quiet;
  const AttentionErrors errors(options.run, options.max_windows);
  progress.say("run", errors.description());
  io::make_directories(options.runs.folder / "cells");
  measure_each(all, [&](PlannedCell& planned) {
    stop_if_asked(options.runs.budget);
    const Spec spec = spec_of(planned);
    // By what is computed, so that a row whose E is its own is measured once.
    const Path file =
        options.runs.folder / "cells" / text(errors.fingerprint(), "-", file_word(to_string(spec)), ".json");
    if (!io::exists(file)) {
      progress.say("measure", text(planned.position, ": ", planned.cell.name));
      io::write_own(file, measured(errors, spec).dump(1) + "\n");
    }
    planned.measured = read_measured(file);
    const auto mean_of = [&](const char* key) { return spread_in(planned.measured, key).mean; };
    planned.cell.ours = spread_in(planned.measured, "own");
    planned.cell.remark = text("perplexity ", picture::fixed(mean_of("perplexity"), 3), ", rows ",
                               picture::fixed(mean_of("divergence"), 3), " nats, outputs ",
                               picture::fixed(100 * mean_of("outputs"), 1), " %",
                               planned.row->note.empty() ? "" : "; ", planned.row->note);
  });
}

std::string draw_swaps(const PageInput& input) {
  const auto first = std::find_if(input.all.begin(), input.all.end(),
                                  [](const PlannedCell& planned) { return !planned.measured.is_null(); });
  if (first == input.all.end()) return "";
  std::string out = wrapped(text("Measured on ", markdown_escaped(first->measured.at("run").text()),
                                 ". Means of the two portions. Ours and the paper's do not compare: the ",
                                 "paper's model is GPT-2 124M on WikiText-2."),
                            "") +
                    "\n";
  for (const SwapStatistic& statistic : swap_statistics)
    out += text(
        "## ", statistic.title, "\n\n", grid_of(input, statistic), "\n",
        input.put_picture(statistic.key, ".svg", statistic.title, chart_svg(swap_chart(input, statistic))),
        "\n");
  return out + claims_text(claims_with(first->measured));
}

}  // namespace heed
