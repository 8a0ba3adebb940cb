// Parts of a table's page about translators: BLEU by the length of the source, and cross-attention maps.
#include <algorithm>
#include <map>

#include "heed/attention/inspect/map_svg.h"
#include "heed/attention/inspect/single_map_statistics.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/decode/load_translator.h"
#include "heed/train/decode/translator.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/metrics/bleu_by_length.h"
#include "heed/train/report/length_chart.h"
#include "heed/train/run/csv.h"

namespace heed {
namespace {

/// Means over the finished runs of a cell.
struct LengthScores {
  std::string row;                    ///< name of the table's row
  std::vector<LengthBucket> buckets;  ///< scores by length, of the buckets that all runs have
  double bleu = 0;                    ///< BLEU over all lengths
  double speed = 0;                   ///< training steps per second
  double parameters = 0;              ///< parameter count of the model
};

/// The scores of a run by length; empty for runs of earlier versions, which wrote none.
std::vector<LengthBucket> buckets_in(const ComparedRun& run) {
  const Path file = Path(run.folder) / "scores.json";
  const Json scores = parse_json(io::read(file), file.string());
  const Json* by_length = scores.find("by_length");
  return by_length == nullptr ? std::vector<LengthBucket>{} : length_buckets(*by_length);
}

LengthScores length_scores_of(const PageInput& input, const PlannedCell& planned) {
  LengthScores means{.row = planned.row->name, .buckets = {}};
  std::map<int64_t, std::vector<LengthBucket>> buckets_of_runs;  // by LengthBucket::from
  double num_runs = 0;
  for (const ComparedRun* run : input.finished(planned)) {
    const std::vector<LengthBucket> buckets = buckets_in(*run);
    if (buckets.empty()) continue;
    for (const LengthBucket& bucket : buckets) buckets_of_runs[bucket.from].push_back(bucket);
    means.bleu += run->score("bleu");
    means.speed += run->steps_per_second;
    means.parameters += run->parameters;
    num_runs += 1;
  }
  for (double* sum : {&means.bleu, &means.speed, &means.parameters}) *sum /= std::max(num_runs, 1.0);
  for (const auto& [from, buckets] : buckets_of_runs) {
    const auto count = static_cast<double>(buckets.size());
    if (count < num_runs) continue;
    LengthBucket mean = buckets.front();
    mean.bleu = mean.length_ratio = 0;
    for (const LengthBucket& bucket : buckets) {
      mean.bleu += bucket.bleu / count;
      mean.length_ratio += bucket.length_ratio / count;
    }
    means.buckets.push_back(mean);
  }
  return means;
}

/// BLEU as a Markdown table: a column for each bucket of lengths, a line for each model, and above these the
/// number of sentences in each bucket.
std::string length_table(const std::vector<LengthScores>& scores) {
  std::string heads = "| words of the source |", rule = "|---|", sentences = "| sentences |", lines;
  for (const LengthBucket& bucket : scores.front().buckets) {
    heads += text(" ", to_string(bucket), " |");
    rule += "---:|";
    sentences += text(" ", grouped(bucket.sentences), " |");
  }
  for (const LengthScores& model : scores) {
    std::vector<std::string> cells{model.row};
    for (const LengthBucket& bucket : model.buckets) cells.push_back(picture::fixed(bucket.bleu, 2));
    for (const double number : {model.bleu, model.speed}) cells.push_back(picture::fixed(number, 2));
    cells.push_back(grouped(static_cast<int64_t>(model.parameters)));
    lines += table_line(cells);
  }
  return text(heads, " all | steps/s | parameters |\n", rule, "---:|---:|---:|\n", sentences, " | | |\n",
              lines, "\n");
}

std::string length_csv(const std::vector<LengthScores>& scores) {
  std::string csv = "row,from,to,sentences,bleu,length_ratio\n";
  for (const LengthScores& model : scores) {
    for (const LengthBucket& bucket : model.buckets)
      csv += text(csv_name(model.row), ",", bucket.from, ",", bucket.to, ",", bucket.sentences, ",",
                  bucket.bleu, ",", bucket.length_ratio, "\n");
  }
  return csv;
}

/// A picture of a trained model's cross-attention while it translates the column's sentence; empty for a
/// model without cross-attention.
std::string alignment_picture(const PageInput& input, const PlannedCell& planned) {
  const PublishedColumn& column = *planned.column;
  const Translator translator = load_translator(folder_of(planned.plans.front(), input.options.runs.folder));
  std::string caption;
  std::vector<MapView> maps =
      translation_maps(*translator.model, column.sentence, *translator.source,
                       translator.target ? *translator.target : *translator.source,
                       translator.config.model.max_length, translator.config.decode, caption);
  std::erase_if(maps, [](const MapView& map) { return map.kind != "cross"; });
  if (maps.empty()) return "";
  const HeadChoice sharpest = first_head(maps);
  const std::string title = text(planned.result.name, ": ", caption);
  return input.put_picture(column.name, "-" + file_word(planned.row->name) + "-alignment.svg", title,
                           map_svg(maps[sharpest.map], sharpest.head, {.title = title}));
}

}  // namespace

std::string draw_by_length(const PageInput& input, const PublishedColumn& column) {
  std::vector<LengthScores> scores;
  std::vector<Series> curves;
  for (const PlannedCell* planned : input.in_column(column)) {
    LengthScores model = length_scores_of(input, *planned);
    if (model.buckets.empty()) continue;
    curves.push_back(length_series(model.row, model.buckets));
    scores.push_back(std::move(model));
  }
  if (scores.empty()) return "";
  Chart chart = length_chart(std::move(curves));
  chart.title = column.name + ": " + chart.title;
  input.write_file(column.name, "-by-length.csv", length_csv(scores));
  return text("## ", column.name, " by length\n\n", length_table(scores),
              input.put_picture(column.name, "-by-length.svg", chart.title, chart_svg(chart)), "\n");
}

std::string draw_alignments(const PageInput& input, const PublishedColumn& column) {
  std::string pictures;
  for (const PlannedCell* planned : input.in_column(column)) {
    const bool has_attention = planned->row->attention_on(column) != "none";
    if (!column.sentence.empty() && has_attention && !planned->plans.empty() &&
        is_trained(planned->plans.front(), input.options.runs.folder))
      pictures += alignment_picture(input, *planned);
  }
  return pictures.empty() ? "" : text("## ", column.name, ": alignments\n\n", pictures, "\n");
}

}  // namespace heed
