// Measures distances from attention maps to the nearest structured matrices: by the random search of
// Conti 2024, and exactly.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/inspect/stored_maps.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/progress/progress.h"
#include "heed/train/report/structure_report.h"
#include "heed/train/tasks/find_data.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

constexpr int64_t draws_of_thesis = 30;  // random draws of the search for one matrix
constexpr const char* reference_matrices[] = {"zero", "uniform", "identity"};

/// The index of the head that a row names ("head-1" is 0); -1 for the row of the mean over all heads.
int64_t head_of(const PublishedRow& row) {
  const std::string prefix = "head-";
  return row.name.starts_with(prefix) ? parsed_integer(row.name.substr(prefix.size())).value_or(0) - 1 : -1;
}

/// The heads of the first square map of a column's data.
std::vector<SquareMatrix> heads_of(const PublishedColumn& column, const ReproductionOptions& options) {
  Path source = find_data(data_of(column, options));
  if (io::exists(source / "config.toml")) {  // a run folder: `heed inspect` writes maps of one sentence
    const Path folder = options.runs.folder / "maps" / file_word(source.filename().string());
    run_heed({"inspect", source.string(), "--out", folder.string()}, options.runs, TimeBudget());
    source = folder / "maps.safetensors";
  }
  std::vector<SquareMatrix> out;
  visit_stored_maps(source, [&](const MapView& map) {
    if (!out.empty() || map.queries != map.keys) return;
    const auto cells = static_cast<size_t>(map.queries * map.keys);
    for (size_t head = 0; head < static_cast<size_t>(map.heads); ++head)
      out.push_back(SquareMatrix::of(map.queries, std::span(map.weights).subspan(head * cells, cells)));
  });
  if (out.empty()) fail(Fault::data, source.string(), " holds no square map.");
  return out;
}

/// The exact distances of a head, and the distance that the search finds with each seed.
struct SearchedHead {
  HeadStructure structure;
  std::vector<double> searched;
};

/// Analyses all heads of a column, with one search for each seed.
std::vector<SearchedHead> searched_heads(const PublishedColumn& column, const ReproductionOptions& options) {
  const std::vector<SquareMatrix> maps = heads_of(column, options);
  if (column.width * column.num_pos > maps.front().size) {
    fail(Fault::data, "the maps of ", column.name, " have ", maps.front().size, " rows, and ", column.num_pos,
         " bars of height ", column.width, " do not fit. Give maps of a longer sentence.");
  }
  std::vector<SearchedHead> heads(maps.size());
  for (int64_t seed = 1; seed <= options.seeds; ++seed) {
    stop_if_asked(options.runs.budget);
    parallel_rows(static_cast<int64_t>(maps.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) {
        SearchedHead& searched_head = heads[static_cast<size_t>(head)];
        const HeadStructure structure = head_structure(maps[static_cast<size_t>(head)],
                                                       {.width = column.width,
                                                        .num_pos = column.num_pos,
                                                        .search_draws = draws_of_thesis,
                                                        .seed = static_cast<uint64_t>(seed)},
                                                       static_cast<uint64_t>(head));
        searched_head.searched.push_back(structure.of("search").entrywise);
        if (seed == 1) searched_head.structure = structure;
      }
    });
  }
  return heads;
}

/// The distances that need no search: "exact 0.51, zero 1.00, uniform 0.98, identity 1.90".
std::string baseline_of(const HeadStructure& s) {
  std::string out = text("exact ", picture::fixed(s.nearest(), 2));
  for (const char* name : reference_matrices)
    out += text(", ", name, " ", picture::fixed(s.of(name).entrywise, 2));
  return out;
}

/// The number of heads that are nearer to a simple matrix than the paper's distance: "of 8 heads, 7 are
/// nearer to the zero matrix than to the paper's, ..."; empty without a published distance.
std::string nearer_than_paper(const PublishedTable& table, size_t column_index,
                              const std::vector<SearchedHead>& heads) {
  int64_t num_zero = 0, num_uniform = 0, num_exact = 0, num_heads = 0;
  for (const PublishedRow& row : table.rows) {
    const int64_t head = head_of(row);
    const double paper = row.values[column_index];
    if (head < 0 || head >= static_cast<int64_t>(heads.size()) || !std::isfinite(paper)) continue;
    const HeadStructure& structure = heads[static_cast<size_t>(head)].structure;
    ++num_heads;
    if (structure.of("zero").entrywise < paper) ++num_zero;
    if (structure.of("uniform").entrywise < paper) ++num_uniform;
    if (structure.nearest() < paper) ++num_exact;
  }
  if (num_heads == 0) return "";
  return text("of ", num_heads, " heads, ", num_zero, " are nearer to the zero matrix than to the paper's, ",
              num_uniform, " nearer to equal weights, ", num_exact,
              " nearer to a diagonal, band or bar matrix");
}

/// The means of exact and searched distances over all heads, the searched ones for each seed.
SearchedHead mean_head(const std::vector<SearchedHead>& heads) {
  SearchedHead mean;
  std::vector<HeadStructure> structures;
  for (const SearchedHead& head : heads) structures.push_back(head.structure);
  mean.structure = mean_structure(structures);
  for (size_t seed = 0; seed < heads.front().searched.size(); ++seed) {
    double sum = 0;
    for (const SearchedHead& head : heads) sum += head.searched[seed];
    mean.searched.push_back(sum / static_cast<double>(heads.size()));
  }
  return mean;
}

/// Sets the result of a cell from the heads of its column.
void fill_cell(PlannedCell& planned, const PublishedTable& table, const std::vector<SearchedHead>& heads) {
  const int64_t head = head_of(*planned.row);
  if (head >= static_cast<int64_t>(heads.size())) {
    planned.result.remark = text("the maps have ", heads.size(), " heads");
    return;
  }
  const SearchedHead found = head < 0 ? mean_head(heads) : heads[static_cast<size_t>(head)];
  planned.result.ours = spread_of(found.searched);
  planned.result.baseline = baseline_of(found.structure);
  planned.structure = found.structure;
  if (head < 0) planned.result.remark = nearer_than_paper(table, planned.column_index, heads);
}

}  // namespace

void measure_map_distances(const PublishedTable& table, const ReproductionOptions& options,
                           std::vector<PlannedCell>& all) {
  const StopSignals signals;
  Progress progress;
  progress.quiet = options.runs.quiet;
  for (const PublishedColumn& column : table.columns) {
    std::vector<PlannedCell*> cells;
    for (PlannedCell& planned : all) {
      if (planned.column == &column && can_run(planned)) cells.push_back(&planned);
    }
    if (cells.empty()) continue;
    progress.say("search", text(column.name, ": ", options.seeds, options.seeds == 1 ? " seed" : " seeds"));
    try {
      const std::vector<SearchedHead> heads = searched_heads(column, options);
      for (PlannedCell* planned : cells) fill_cell(*planned, table, heads);
    } catch (const Error& error) {
      for (PlannedCell* planned : cells) mark_failed(*planned, error);
    }
  }
}

std::string draw_distances(const PageInput& input, const PublishedColumn& column) {
  const auto finite_text = [](double value, const std::string& otherwise, const std::string& number) {
    return std::isfinite(value) ? number : otherwise;
  };
  std::string lines,
      csv = "head,paper,search,exact,diagonal,band,bars,zero,uniform,identity,rank,spectral_norm\n";
  Chart chart{.title = column.name + ": distance of each head's map", .x_label = "head"};
  for (const char* name : {"paper", "search", "exact", "zero", "uniform", "identity"})
    chart.series.push_back({.name = name});
  std::vector<AnalysedHead> analysed;
  for (const PlannedCell* planned : input.in_column(column)) {
    if (planned->result.ours.count == 0) continue;
    const HeadStructure& structure = planned->structure;
    const int64_t head_number = head_of(*planned->row) + 1;  // 0: the mean over all heads
    std::vector<double> distances{planned->result.paper, planned->result.ours.mean, structure.nearest()};
    csv += planned->row->name;
    for (const double distance : distances) csv += "," + finite_text(distance, "", picture::json(distance));
    for (const char* name : {"diagonal", "band", "bars", "zero", "uniform", "identity"})
      csv += "," + picture::json(structure.of(name).entrywise);
    csv += text(",", structure.rank, ",", picture::json(structure.spectral), "\n");
    for (const char* name : reference_matrices) distances.push_back(structure.of(name).entrywise);
    std::vector<std::string> cells{planned->row->name};
    for (size_t i = 0; i < distances.size(); ++i) {
      cells.push_back(finite_text(distances[i], "-", picture::fixed(distances[i], 2)));
      if (head_number == 0 || !std::isfinite(distances[i])) continue;
      chart.series[i].x.push_back(static_cast<double>(head_number));
      chart.series[i].y.push_back(distances[i]);
    }
    lines += table_line(cells);
    if (head_number > 0) analysed.push_back({column.name, head_number, 1, structure});
  }
  if (lines.empty()) return "";
  std::erase_if(chart.series, [](const Series& series) { return series.x.empty(); });
  input.write_file(column.name, ".csv", csv);
  std::string section =
      text("## ", column.name, "\n\n| head | paper | search | exact | zero | uniform | identity |\n",
           "|---|---:|---:|---:|---:|---:|---:|\n", lines, "\n");
  if (!chart.series.empty()) section += input.put_picture(column.name, ".svg", chart.title, chart_svg(chart));
  if (!analysed.empty()) {
    const Chart sweep = structure_chart(analysed, column.name);
    section += input.put_picture(column.name, "-sweep.svg", sweep.title, chart_svg(sweep));
  }
  return section + "\n";
}

}  // namespace heed
