// BLEU by the length of the source, and the alignments of translators: parts of a table's page.
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

/// The scores of a cell by length, means over its finished runs.
struct LengthScores {
  std::string row;                    ///< name of the table's row
  std::vector<LengthBucket> buckets;  ///< means of the buckets that every run has
  double bleu = 0, speed = 0;         ///< BLEU of all lengths; training steps a second
  double parameters = 0;              ///< parameter count of the model
  double runs = 0;                    ///< number of finished runs with scores by length
};

std::vector<LengthBucket> buckets_in(const ComparedRun& run) {
  const Path file = Path(run.folder) / "scores.json";
  const Json scores = parse_json(io::read(file), file.string());
  const Json* list = scores.find("by_length");
  return list == nullptr ? std::vector<LengthBucket>{} : length_buckets(*list);
}

LengthScores length_scores_of(const PageInput& input, const PlannedCell& planned) {
  LengthScores out{.row = planned.row->name, .buckets = {}};
  std::map<int64_t, std::vector<LengthBucket>> found;  // by LengthBucket::from
  for (const ComparedRun* run : input.finished(planned)) {
    const std::vector<LengthBucket> buckets = buckets_in(*run);
    if (buckets.empty()) continue;  // an earlier version wrote no scores by length
    for (const LengthBucket& one : buckets) found[one.from].push_back(one);
    out.bleu += run->score("bleu");
    out.speed += run->steps_per_second;
    out.parameters += run->parameters;
    out.runs += 1;
  }
  if (!(out.runs > 0)) return out;
  for (double* sum : {&out.bleu, &out.speed, &out.parameters}) *sum /= out.runs;
  for (const auto& [from, list] : found) {
    const auto count = static_cast<double>(list.size());
    if (count < out.runs) continue;
    LengthBucket mean = list.front();
    mean.bleu = mean.length_ratio = 0;
    for (const LengthBucket& one : list) {
      mean.bleu += one.bleu / count;
      mean.length_ratio += one.length_ratio / count;
    }
    out.buckets.push_back(mean);
  }
  return out;
}

/// A line of the table for each model, and above it the lengths and how many sentences have them.
std::string length_table(const std::vector<LengthScores>& scores) {
  std::string head = "| words of the source |", rule = "|---|", counts = "| sentences |", lines;
  for (const LengthBucket& one : scores.front().buckets) {
    head += text(" ", to_string(one), " |");
    rule += "---:|";
    counts += text(" ", grouped(one.sentences), " |");
  }
  for (const LengthScores& one : scores) {
    lines += text("| ", one.row, " |");
    for (const LengthBucket& bucket : one.buckets) lines += text(" ", picture::fixed(bucket.bleu, 2), " |");
    lines += text(" ", picture::fixed(one.bleu, 2), " | ", picture::fixed(one.speed, 2), " | ",
                  grouped(static_cast<int64_t>(one.parameters)), " |\n");
  }
  return text(head, " all | steps/s | parameters |\n", rule, "---:|---:|---:|\n", counts, " | | |\n", lines,
              "\n");
}

std::string length_csv(const std::vector<LengthScores>& scores) {
  std::string out = "row,from,to,sentences,bleu,length_ratio\n";
  for (const LengthScores& one : scores) {
    for (const LengthBucket& bucket : one.buckets) {
      out += text(csv_name(one.row), ",", bucket.from, ",", bucket.to, ",", bucket.sentences, ",",
                  bucket.bleu, ",", bucket.length_ratio, "\n");
    }
  }
  return out;
}

}  // namespace

std::string draw_by_length(const PageInput& input) {
  std::string out;
  for (const PublishedColumn& column : input.table.columns) {
    std::vector<LengthScores> scores;
    std::vector<Series> lines;
    for (const PlannedCell* planned : input.in_column(column)) {
      LengthScores one = length_scores_of(input, *planned);
      if (one.buckets.empty()) continue;
      lines.push_back(length_series(one.row, one.buckets));
      scores.push_back(std::move(one));
    }
    if (scores.empty()) continue;
    Chart chart = length_chart(std::move(lines));
    chart.title = column.name + ": " + chart.title;
    out += text("## ", column.name, " by length\n\n", length_table(scores),
                input.put_picture(column.name, "-by-length.svg", chart.title, chart_svg(chart)), "\n");
    io::write_own(input.options.results_folder() / input.file_name(column.name, "-by-length.csv"),
                  length_csv(scores));
  }
  return out;
}

std::string draw_alignments(const PageInput& input) {
  const Path& folder = input.options.runs.folder;
  std::string out;
  for (const PublishedColumn& column : input.table.columns) {
    std::string pictures;
    for (const PlannedCell* planned : input.in_column(column)) {
      if (column.sentence.empty() || planned->plans.empty()) continue;
      if (planned->row->attention_on(column) == "none") continue;  // there is nothing to draw
      const PlannedRun& plan = planned->plans.front();
      if (!is_trained(plan, folder)) continue;
      const Translator translator = load_translator(folder_of(plan, folder));
      std::string caption;
      std::vector<MapView> maps =
          translation_maps(*translator.model, column.sentence, *translator.source,
                           translator.target ? *translator.target : *translator.source,
                           translator.config.model.max_length, translator.config.decode, caption);
      std::erase_if(maps, [](const MapView& map) { return map.kind != "cross"; });
      if (maps.empty()) continue;
      const HeadChoice chosen = first_head(maps);
      const std::string title = text(planned->cell.name, ": ", caption);
      pictures += input.put_picture(column.name, "-" + file_word(planned->row->name) + "-alignment.svg",
                                    title, map_svg(maps[chosen.map], chosen.head, {.title = title}));
    }
    if (!pictures.empty()) out += text("## ", column.name, ": alignments\n\n", pictures, "\n");
  }
  return out;
}

}  // namespace heed
