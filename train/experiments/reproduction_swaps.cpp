// Statistics of a trained language model under the attention of each cell, and their tables and curves.
#include <algorithm>
#include <cmath>
#include <map>

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

/// A statistic of a cell: how the cell's file and the page show it.
struct SwapStatistic {
  const char* key;    ///< key in the file
  const char* title;  ///< heading on the page
  int decimals;       ///< number of decimals on the page
  double factor = 1;  ///< unit of the file in the unit of the page
};

constexpr SwapStatistic swap_statistics[] = {
    {.key = "perplexity", .title = "Perplexity of the text, teacher forced", .decimals = 3},
    {.key = "own", .title = "The published statistic: own samples at temperature 0.8", .decimals = 2},
    {.key = "divergence",
     .title = "Kullback-Leibler divergence of rows from the exact ones, nats",
     .decimals = 3},
    {.key = "outputs",
     .title = "Distance of outputs from the exact ones, percent",
     .decimals = 1,
     .factor = 100}};

constexpr int64_t max_measured_bytes = int64_t{1} << 20;  // limit of the size of a cell's file

/// The attention of a cell. The option `exponent` (E) is its column's, unless the row sets it.
Spec spec_of(const PlannedCell& planned) {
  Spec spec = parse_spec(planned.row->attention_on(*planned.column));
  const bool has_exponent =
      std::ranges::any_of(spec.options, [](const auto& option) { return option.first == "exponent"; });
  if (!has_exponent) spec.options.emplace_back("exponent", text(planned.column->exponent));
  return spec;
}

/// The attention as the paper's code computes it: a query does not attend to its own key, random projections
/// are drawn anew for each token, and the denominator counts each bud once.
Spec as_published(Spec spec) {
  spec.options.emplace_back("denominator", "paper");
  spec.options.emplace_back("include_self", "false");
  spec.options.emplace_back("redraw", "per_token");
  return spec;
}

/// Measures the statistics of a cell on each portion of the text, as its file has them.
Json measure_statistics(const AttentionErrors& errors, const Spec& spec) {
  std::map<std::string, std::vector<Json>> statistics;
  double min_negative = 1, max_negative = 0;
  for (int64_t portion = 0; portion < AttentionErrors::portions; ++portion) {
    statistics["perplexity"].emplace_back(errors.perplexity(to_string(spec), portion));
    statistics["own"].emplace_back(
        errors.own_perplexity(to_string(as_published(spec)), portion, static_cast<uint64_t>(portion + 1)));
    const AttentionErrors::Distance distance = errors.distance(to_string(spec), portion);
    statistics["divergence"].emplace_back(distance.divergence);
    statistics["outputs"].emplace_back(distance.outputs);
    min_negative = std::min(min_negative, distance.min_negative);
    max_negative = std::max(max_negative, distance.max_negative);
  }
  Json cell = Json::object({{"attention", Json(to_string(spec))}, {"run", Json(errors.description())}});
  for (const SwapStatistic& statistic : swap_statistics)
    cell.set(statistic.key, Json(std::move(statistics[statistic.key])));
  cell.set("least_negative", min_negative);
  cell.set("most_negative", max_negative);
  return cell;
}

bool is_list_of_numbers(const Json& value) {
  return value.is_list() && !value.list().empty() && std::ranges::all_of(value.list(), [](const Json& item) {
           return item.is_number() || item.is_null();
         });
}

/// Reads the statistics of a cell from the file that this call or an earlier one has written.
Json read_statistics(const Path& path) {
  return with_remeasuring_advice(path, [&] {
    Json file = parse_json(io::read(path, max_measured_bytes), path.string());
    const auto demand = [&](const char* key, bool (*is_valid)(const Json&), const char* what) {
      const Json* value = file.is_object() ? file.find(key) : nullptr;
      if (value == nullptr || !is_valid(*value))
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

/// The mean and deviation of a statistic over the portions of the text.
Spread spread_in(const Json& file, const char* key) {
  std::vector<double> values;
  for (const Json& value : file.at(key).list()) values.push_back(value.real());
  return spread_of(values);
}

/// The mean of a statistic in the unit of the page; NaN: not measured.
double shown_mean(const PlannedCell& planned, const SwapStatistic& statistic) {
  return planned.statistics.is_null() ? NAN
                                      : statistic.factor * spread_in(planned.statistics, statistic.key).mean;
}

/// A statistic as a Markdown table: a line for each row with a measured cell, a column for each E.
std::string statistic_table(const PageInput& input, const SwapStatistic& statistic) {
  std::vector<std::string> heads{"mass"};
  std::string rule = "|---|", lines;
  for (const PublishedColumn& column : input.table.columns) {
    heads.push_back(column.name);
    rule += "---:|";
  }
  for (const PublishedRow& row : input.table.rows) {
    std::vector<std::string> cells{row.name};
    bool has_value = false;
    for (const PublishedColumn& column : input.table.columns) {
      const auto cell = std::ranges::find_if(input.all, [&](const PlannedCell& planned) {
        return planned.column == &column && planned.row == &row;
      });
      const double value = cell == input.all.end() ? NAN : shown_mean(*cell, statistic);
      has_value = has_value || !std::isnan(value);
      cells.push_back(std::isnan(value) ? "-" : picture::fixed(value, statistic.decimals));
    }
    if (has_value) lines += table_line(cells);
  }
  return table_line(heads) + rule + "\n" + lines;
}

/// The curves of one statistic over E: one for each row.
Chart statistic_chart(const PageInput& input, const SwapStatistic& statistic) {
  Chart chart{.title = statistic.title, .series = {}, .x_label = "E"};
  for (const PublishedRow& row : input.table.rows) {
    Series curve{.name = row.name};
    for (const PlannedCell& planned : input.all) {
      if (planned.row != &row || planned.statistics.is_null()) continue;
      curve.x.push_back(planned.column->exponent);
      curve.y.push_back(shown_mean(planned, statistic));
    }
    if (!curve.x.empty()) chart.series.push_back(std::move(curve));
  }
  return chart;
}

/// The paper's claims, and what the statistics of a cell say about figure 3.
std::vector<Claim> claims_with(const Json& statistics) {
  std::vector<Claim> claims = tree_claims();
  const double min_share = statistics.at("least_negative").real(),
               max_share = statistics.at("most_negative").real();
  if (min_share > max_share) return claims;  // not counted, since heads share keys
  claims.push_back(
      {"figure 3, share of negative q . k of a head, of all heads of this model", "frequently most",
       text(picture::fixed(100 * min_share, 0), " to ", picture::fixed(100 * max_share, 0), " %"),
       max_share > 0.5 ? "some heads are dominated by negative products, not all"
                       : "no head of this model is dominated by negative products"});
  return claims;
}

}  // namespace

void measure_swapped_attention(const PublishedTable&, const ReproductionOptions& options,
                               std::vector<PlannedCell>& all) {
  const StopSignals signals;
  Progress progress;
  progress.quiet = options.runs.quiet;
  const AttentionErrors errors(options.run, options.max_windows);
  progress.say("run", errors.description());
  io::make_directories(options.runs.folder / "cells");
  measure_each(all, [&](PlannedCell& planned) {
    stop_if_asked(options.runs.budget);
    const Spec spec = spec_of(planned);
    // The name depends on what is computed: a row with an exponent of its own is measured once for all
    // columns.
    const Path file =
        options.runs.folder / "cells" / text(errors.fingerprint(), "-", file_word(to_string(spec)), ".json");
    if (!io::exists(file)) {
      progress.say("measure", text(planned.position, ": ", planned.result.name));
      io::write_own(file, measure_statistics(errors, spec).dump(1) + "\n");
    }
    planned.statistics = read_statistics(file);
    const auto mean_of = [&](const char* key) { return spread_in(planned.statistics, key).mean; };
    planned.result.ours = spread_in(planned.statistics, "own");
    planned.result.remark = text("perplexity ", picture::fixed(mean_of("perplexity"), 3), ", rows ",
                                 picture::fixed(mean_of("divergence"), 3), " nats, outputs ",
                                 picture::fixed(100 * mean_of("outputs"), 1), " %",
                                 planned.row->note.empty() ? "" : "; ", planned.row->note);
  });
}

std::string draw_swaps(const PageInput& input) {
  const auto first = std::ranges::find_if(
      input.all, [](const PlannedCell& planned) { return !planned.statistics.is_null(); });
  if (first == input.all.end()) return "";
  std::string out = wrapped(text("Measured on ", markdown_escaped(first->statistics.at("run").text()),
                                 ". Means of the two portions. Ours and the paper's do not compare: the ",
                                 "paper's model is GPT-2 124M on WikiText-2.")) +
                    "\n";
  for (const SwapStatistic& statistic : swap_statistics)
    out += text("## ", statistic.title, "\n\n", statistic_table(input, statistic), "\n",
                input.put_picture(statistic.key, ".svg", statistic.title,
                                  chart_svg(statistic_chart(input, statistic))),
                "\n");
  return out + claims_text(claims_with(first->statistics));
}

}  // namespace heed
