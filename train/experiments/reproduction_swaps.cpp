// Statistics of a trained language model under the attention of each cell, and their tables and curves.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/attention/spec.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/experiments/attention_errors.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/experiments/subprocess.h"
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

constexpr int64_t max_measured_bytes = int64_t{1} << 20;  // of a cell's file

/// The attention of a cell: E is its column's, unless the row says it.
Spec spec_of(const Work& work) {
  Spec spec = parse_spec(work.row->attention_on(*work.column));
  const bool given = std::any_of(spec.options.begin(), spec.options.end(),
                                 [](const auto& option) { return option.first == "exponent"; });
  if (!given) spec.options.emplace_back("exponent", text(work.column->exponent));
  return spec;
}

/// The same as the paper's code attends: without the own key, its projection drawn anew for each token, buds
/// counted once in the denominator.
Spec as_published(Spec spec) {
  spec.options.emplace_back("denominator", "paper");
  spec.options.emplace_back("include_self", "false");
  spec.options.emplace_back("redraw", "per_token");
  return spec;
}

Json measured(const AttentionErrors& errors, const Spec& spec) {
  std::vector<Json> perplexity, own, divergence, outputs;
  double least = 1, most = 0;
  for (int64_t portion = 0; portion < AttentionErrors::portions; ++portion) {
    perplexity.emplace_back(errors.perplexity(to_string(spec), portion));
    own.emplace_back(
        errors.own_perplexity(to_string(as_published(spec)), portion, static_cast<uint64_t>(portion + 1)));
    const AttentionErrors::Distance distance = errors.distance(to_string(spec), portion);
    divergence.emplace_back(distance.divergence);
    outputs.emplace_back(distance.outputs);
    least = std::min(least, distance.least_negative);
    most = std::max(most, distance.most_negative);
  }
  return Json::object({{"attention", Json(to_string(spec))},
                       {"run", Json(errors.description())},
                       {"perplexity", Json(std::move(perplexity))},
                       {"own", Json(std::move(own))},
                       {"divergence", Json(std::move(divergence))},
                       {"outputs", Json(std::move(outputs))},
                       {"least_negative", least},
                       {"most_negative", most}});
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

/// The row as the page's grids have it, in its columns' order; empty where nothing is measured.
std::string grid_row(const PublishedTable& table, const std::vector<Work>& all, const PublishedRow& row,
                     const SwapStatistic& statistic) {
  std::string out;
  bool any = false;
  for (const PublishedColumn& column : table.columns) {
    const auto work = std::find_if(all.begin(), all.end(), [&](const Work& one) {
      return one.row == &row && one.column == &column && !one.measured.empty();
    });
    any = any || work != all.end();
    if (work == all.end()) {
      out += " | -";
      continue;
    }
    const Json file = read_measured(work->measured);
    out += " | " + picture::fixed(statistic.factor * spread_in(file, statistic.key).mean, statistic.digits);
  }
  return any ? "| " + row.name + out + " |\n" : "";
}

/// The curve of one statistic over E: a line for each row.
Chart swap_chart(const PublishedTable& table, const std::vector<Work>& all, const SwapStatistic& statistic) {
  Chart chart{.title = statistic.title, .series = {}, .x_label = "E"};
  for (const PublishedRow& row : table.rows) {
    Series series{.name = row.name};
    for (const Work& work : all) {
      if (work.row != &row || work.measured.empty()) continue;
      const Json file = read_measured(work.measured);
      series.x.push_back(work.column->exponent);
      series.y.push_back(statistic.factor * spread_in(file, statistic.key).mean);
    }
    if (!series.x.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace

void swap_cells(const PublishedTable&, const ReproductionOptions& options, std::vector<Work>& all) {
  const StopSignals signals;
  Progress progress;
  progress.quiet = options.place.quiet;
  const AttentionErrors errors(options.run, options.max_windows);
  progress.say("run", errors.description());
  io::make_directories(options.place.folder / "cells");
  for (Work& work : all) {
    if (!runs(work)) continue;
    stop_if_asked(options.place.budget);
    try {
      const Spec spec = spec_of(work);
      // By what is computed, so that a row whose E is its own is measured once.
      const Path file = options.place.folder / "cells" /
                        text(errors.fingerprint(), "-", file_word(to_string(spec)), ".json");
      if (!io::exists(file)) {
        progress.say("measure", text(work.place, ": ", work.cell.name));
        io::write_own(file, measured(errors, spec).dump(1) + "\n");
      }
      const Json found = read_measured(file);
      work.measured = file;
      work.cell.ours = spread_in(found, "own");
      work.cell.remark = text("perplexity ", picture::fixed(spread_in(found, "perplexity").mean, 3),
                              ", rows ", picture::fixed(spread_in(found, "divergence").mean, 3),
                              " nats, outputs ", picture::fixed(100 * spread_in(found, "outputs").mean, 1),
                              " %", work.row->note.empty() ? "" : "; ", work.row->note);
    } catch (const Error& error) {
      give_up(work, error);
    }
  }
}

std::string draw_swaps(const PublishedTable& table, const ReproductionOptions& options,
                       const std::vector<Work>& all) {
  std::string out, run;
  std::vector<Claim> claims = tree_claims();
  for (const Work& work : all) {
    if (work.measured.empty() || !run.empty()) continue;
    const Json cell = read_measured(work.measured);
    run = cell.at("run").text();
    const double least = cell.at("least_negative").real(), most = cell.at("most_negative").real();
    if (least <= most)
      claims.push_back({"figure 3, share of negative q . k of a head, of all heads of this model",
                        "frequently most",
                        text(picture::fixed(100 * least, 0), " to ", picture::fixed(100 * most, 0), " %"),
                        most > 0.5 ? "some heads are dominated by negative products, not all"
                                   : "no head of this model is dominated by negative products"});
  }
  if (run.empty()) return "";
  out += wrapped(text("Measured on ", markdown_escaped(run),
                      ". Means of the two portions. Ours and the paper's do not compare: the ",
                      "paper's model is GPT-2 124M on WikiText-2."),
                 "") +
         "\n";
  for (const SwapStatistic& statistic : swap_statistics) {
    std::string head = "| mass |", line = "|---|";
    for (const PublishedColumn& column : table.columns) {
      head += " " + column.name + " |";
      line += "---:|";
    }
    out += text("## ", statistic.title, "\n\n", head, "\n", line, "\n");
    for (const PublishedRow& row : table.rows) out += grid_row(table, all, row, statistic);
    out += "\n" +
           put_picture(options, text(table.name, "-", statistic.key, ".svg"), statistic.title,
                       chart_svg(swap_chart(table, all, statistic))) +
           "\n";
  }
  return out + claims_text(claims);
}

}  // namespace heed
