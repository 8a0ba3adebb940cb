// Measures how near attention maps are to structured matrices: by the random search of Conti 2024, and
// exactly.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
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

constexpr int64_t draws_of_thesis = 30;
constexpr const char* reference_matrices[] = {"zero", "uniform", "identity"};

/// The number of the head that a row is about, from 0; -1: the mean over all.
int64_t head_of(const PublishedRow& row) {
  const std::string prefix = "head-";
  return row.name.starts_with(prefix) ? parsed_integer(row.name.substr(prefix.size())).value_or(0) - 1 : -1;
}

/// The heads of the first square map of a column's data.
std::vector<SquareMatrix> heads_of(const PublishedColumn& column, const ReproductionOptions& options) {
  Path source = find_data(data_of(column, options));
  if (io::exists(source / "config.toml")) {  // a run: the maps of its encoder for one sentence
    const Path folder = options.runs.folder / "maps" / file_word(source.filename().string());
    run_heed({"inspect", source.string(), "--out", folder.string()}, options, {});
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

/// A head of a column, and the distance that the search finds with each seed.
struct SearchedHead {
  HeadStructure structure;
  std::vector<double> searched;
};

std::vector<SearchedHead> searched_heads(const PublishedColumn& column, const ReproductionOptions& options) {
  const std::vector<SquareMatrix> maps = heads_of(column, options);
  if (column.width * column.num_pos > maps.front().size) {
    fail(Fault::data, "the maps of ", column.name, " have ", maps.front().size, " rows, and ", column.num_pos,
         " bars of height ", column.width, " do not fit. Give maps of a longer sentence.");
  }
  std::vector<SearchedHead> out(maps.size());
  for (int64_t seed = 1; seed <= options.seeds; ++seed) {
    stop_if_asked(options.runs.budget);
    parallel_rows(static_cast<int64_t>(maps.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) {
        SearchedHead& one = out[static_cast<size_t>(head)];
        const HeadStructure made = head_structure(maps[static_cast<size_t>(head)],
                                                  {.width = column.width,
                                                   .num_pos = column.num_pos,
                                                   .search_draws = draws_of_thesis,
                                                   .seed = static_cast<uint64_t>(seed)},
                                                  static_cast<uint64_t>(head));
        one.searched.push_back(made.of("search").entrywise);
        if (seed == 1) one.structure = made;
      }
    });
  }
  return out;
}

std::string baseline_of(const HeadStructure& s) {
  std::string out = text("exact ", picture::fixed(s.nearest(), 2));
  for (const char* name : reference_matrices)
    out += text(", ", name, " ", picture::fixed(s.of(name).entrywise, 2));
  return out;
}

/// For how many heads a matrix is nearer than the paper's: "zero 7, uniform 0, exact 8 of 8".
std::string nearer_than_paper(const PublishedTable& table, size_t column,
                              const std::vector<SearchedHead>& heads) {
  int64_t zero = 0, uniform = 0, exact = 0, count = 0;
  for (const PublishedRow& row : table.rows) {
    const int64_t head = head_of(row);
    const double paper = row.values[column];
    if (head < 0 || head >= static_cast<int64_t>(heads.size()) || !std::isfinite(paper)) continue;
    const HeadStructure& s = heads[static_cast<size_t>(head)].structure;
    ++count;
    if (s.of("zero").entrywise < paper) ++zero;
    if (s.of("uniform").entrywise < paper) ++uniform;
    if (s.nearest() < paper) ++exact;
  }
  if (count == 0) return "";
  return text("of ", count, " heads, ", zero, " are nearer to the zero matrix than to the paper's, ", uniform,
              " nearer to equal weights, ", exact, " nearer to a diagonal, band or bar matrix");
}

/// The mean over all heads, seed by seed.
SearchedHead mean_head(const std::vector<SearchedHead>& heads) {
  SearchedHead out;
  std::vector<HeadStructure> structures;
  for (const SearchedHead& one : heads) structures.push_back(one.structure);
  out.structure = mean_structure(structures);
  for (size_t seed = 0; seed < heads.front().searched.size(); ++seed) {
    double sum = 0;
    for (const SearchedHead& one : heads) sum += one.searched[seed];
    out.searched.push_back(sum / static_cast<double>(heads.size()));
  }
  return out;
}

void fill_cell(PlannedCell& planned, const PublishedTable& table, const std::vector<SearchedHead>& heads) {
  const int64_t head = head_of(*planned.row);
  if (head >= static_cast<int64_t>(heads.size())) {
    planned.cell.remark = text("the maps have ", heads.size(), " heads");
    return;
  }
  const SearchedHead found = head < 0 ? mean_head(heads) : heads[static_cast<size_t>(head)];
  planned.cell.ours = spread_of(found.searched);
  planned.cell.baseline = baseline_of(found.structure);
  planned.structure = found.structure;
  if (head < 0) planned.cell.remark = nearer_than_paper(table, planned.column_index, heads);
}

}  // namespace

void distance_cells(const PublishedTable& table, const ReproductionOptions& options,
                    std::vector<PlannedCell>& all) {
  const StopSignals signals;
  Progress progress;
  progress.quiet = options.runs.quiet;
  for (const PublishedColumn& column : table.columns) {
    std::vector<PlannedCell*> own;
    for (PlannedCell& planned : all) {
      if (planned.column == &column && runs(planned)) own.push_back(&planned);
    }
    if (own.empty()) continue;
    progress.say("search", text(column.name, ": ", options.seeds, options.seeds == 1 ? " seed" : " seeds"));
    try {
      const std::vector<SearchedHead> heads = searched_heads(column, options);
      for (PlannedCell* planned : own) fill_cell(*planned, table, heads);
    } catch (const Error& error) {
      for (PlannedCell* planned : own) mark_failed(*planned, error);
    }
  }
}

std::string draw_distances(const PageInput& input) {
  const auto number_or = [](double value, const std::string& otherwise, const auto& text_of) {
    return std::isfinite(value) ? text_of(value) : otherwise;
  };
  std::string out;
  for (const PublishedColumn& column : input.table.columns) {
    std::string rows,
        csv = "head,paper,search,exact,diagonal,band,bars,zero,uniform,identity,rank,spectral_norm\n";
    Chart chart{.title = column.name + ": distance of each head's map", .x_label = "head"};
    for (const char* name : {"paper", "search", "exact", "zero", "uniform", "identity"})
      chart.series.push_back({.name = name});
    std::vector<AnalysedHead> analysed;
    for (const PlannedCell* planned : input.in_column(column)) {
      if (planned->cell.ours.count == 0) continue;
      const HeadStructure& s = planned->structure;
      const int64_t head = head_of(*planned->row) + 1;
      std::vector<double> numbers{planned->cell.paper, planned->cell.ours.mean, s.nearest()};
      csv += planned->row->name;
      for (const double number : numbers)
        csv += "," + number_or(number, "", [](double value) { return picture::json(value); });
      for (const char* name : {"diagonal", "band", "bars", "zero", "uniform", "identity"})
        csv += "," + picture::json(s.of(name).entrywise);
      csv += text(",", s.rank, ",", picture::json(s.spectral), "\n");
      for (const char* name : reference_matrices) numbers.push_back(s.of(name).entrywise);
      rows += "| " + planned->row->name;
      for (size_t i = 0; i < numbers.size(); ++i) {
        rows += " | " + number_or(numbers[i], "-", [](double value) { return picture::fixed(value, 2); });
        if (head < 1 || !std::isfinite(numbers[i])) continue;
        chart.series[i].x.push_back(static_cast<double>(head));
        chart.series[i].y.push_back(numbers[i]);
      }
      rows += " |\n";
      if (head >= 1) analysed.push_back({column.name, head, 1, s});
    }
    if (rows.empty()) continue;
    std::erase_if(chart.series, [](const Series& one) { return one.x.empty(); });
    io::make_directories(input.options.results_folder());
    io::write_own(input.options.results_folder() / input.file_name(column.name, ".csv"), csv);
    out += text("## ", column.name, "\n\n| head | paper | search | exact | zero | uniform | identity |\n",
                "|---|---:|---:|---:|---:|---:|---:|\n", rows, "\n");
    if (!chart.series.empty()) out += input.put_picture(column.name, ".svg", chart.title, chart_svg(chart));
    if (!analysed.empty()) {
      const Chart sweep = structure_chart(analysed, column.name);
      out += input.put_picture(column.name, "-sweep.svg", sweep.title, chart_svg(sweep));
    }
    out += "\n";
  }
  return out;
}

}  // namespace heed
