// Pictures of a table: accuracy over speed, attention maps side by side, time over length.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "heed/attention/inspect/map_svg.h"
#include "heed/core/io/files.h"
#include "heed/data/formats/csv.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/inspect/stored_maps.h"
#include "heed/train/report/bubble_chart.h"

namespace heed {
namespace {

/// The sum of bubbles, and their mean.
struct BubbleSum {
  Bubble sum;
  double count = 0;
  void add(const Bubble& bubble) {
    sum.x += bubble.x;
    sum.y += bubble.y;
    sum.area += bubble.area;
    count += 1;
  }
  Bubble mean(const std::string& name) const {
    return {.name = name, .x = sum.x / count, .y = sum.y / count, .area = sum.area / count};
  }
};

BubbleSum sum_of_runs(const PageInput& input, const PlannedCell& planned) {
  BubbleSum sum;
  for (const ComparedRun* run : input.finished(planned)) {
    const double accuracy = run->score("accuracy");
    if (!std::isnan(accuracy) && run->steps_per_second > 0 && run->memory > 0)
      sum.add({.name = "", .x = run->steps_per_second, .y = 100 * accuracy, .area = run->memory / 1e6});
  }
  return sum;
}

BubbleChart empty_chart(const std::string& title) {
  return {.title = title,
          .x_label = "steps a second",
          .y_label = "accuracy, percent",
          .area_label = "peak memory in MB",
          .bubbles = {},
          .max_y = 100};
}

/// The maps of a run's first block, with the name of the table's row as their kind. `heed inspect` writes
/// them into files first, unless these exist.
std::vector<MapView> maps_of_run(const PlannedRun& plan, const ReproductionOptions& options,
                                 const std::string& row) {
  const Path folder = options.runs.folder / "maps" / plan.name;
  if (!io::exists(folder / "maps.safetensors"))
    run_heed({"inspect", folder_of(plan, options.runs.folder).string(), "--out", folder.string()},
             options.runs, TimeBudget());
  std::vector<MapView> maps;
  for (const Path& file : io::list(folder)) {
    if (!file.filename().string().ends_with("-0.npy")) continue;  // the maps of another block
    visit_stored_maps(folder / file.filename(), [&](const MapView& map) {
      maps.push_back(map);
      maps.back().kind = row;
    });
  }
  return maps;
}

/// The measured times of a cell's row and of softmax over the length: one curve for each attention.
std::vector<Series> time_curves(const PlannedCell& planned, const ReproductionOptions& options) {
  const Path file = lengths_folder(planned, options) / "attention.csv";
  if (!io::exists(file)) return {};
  std::map<std::string, Series> by_attention;
  const CsvTable measured(io::read(file), file.string());
  for (int64_t i = 0; i < measured.rows(); ++i) {
    if (measured.number(i, "causal") != (planned.column->causal ? 1 : 0)) continue;
    const std::string& attention = measured.cell(i, "attention");
    Series& curve = by_attention[attention];
    curve.name = attention == "softmax" ? attention : planned.row->name;
    curve.x.push_back(measured.number(i, "length"));
    curve.y.push_back(measured.number(i, "forward_ms"));
  }
  std::vector<Series> curves;
  for (auto& [attention, curve] : by_attention) curves.push_back(std::move(curve));
  return curves;
}

}  // namespace

std::string draw_bubbles(const PageInput& input) {
  std::string pictures;
  const auto draw = [&](const std::string& name, const BubbleChart& chart) {
    if (!chart.bubbles.empty())
      pictures += input.put_picture(name, "-bubbles.svg", chart.title, bubbles_svg(chart));
  };
  std::map<std::string, BubbleSum> sums_over_columns;  // by the name of the row
  for (const PublishedColumn& column : input.table.columns) {
    BubbleChart chart = empty_chart(column.name + ": speed against accuracy");
    for (const PlannedCell* planned : input.in_column(column)) {
      const BubbleSum runs = sum_of_runs(input, *planned);
      if (!(runs.count > 0)) continue;
      chart.bubbles.push_back(runs.mean(planned->row->name));
      sums_over_columns[planned->row->name].add(chart.bubbles.back());
    }
    draw(column.name, chart);
  }
  BubbleChart average = empty_chart("means over all tasks: speed against accuracy");
  for (const PublishedRow& row : input.table.rows) {
    const BubbleSum& columns = sums_over_columns[row.name];
    if (columns.count >= static_cast<double>(input.table.columns.size()))
      average.bubbles.push_back(columns.mean(row.name));
  }
  draw("average", average);
  return pictures;
}

std::string draw_maps(const PageInput& input, const PublishedColumn& column) {
  std::string lines;
  std::vector<MapView> maps;
  for (const PlannedCell* planned : input.in_column(column)) {
    if (planned->plans.empty() || !is_trained(planned->plans.front(), input.options.runs.folder)) continue;
    try {
      std::ranges::move(maps_of_run(planned->plans.front(), input.options, planned->row->name),
                        std::back_inserter(maps));
    } catch (const Error& error) {
      lines += wrapped(text("No maps of ", markdown_escaped(planned->result.name + ": " + error.what())));
    }
  }
  if (maps.empty()) return lines;
  const std::string title = column.name + ": first block, a row for each model";
  return lines + input.put_picture(column.name, "-maps.svg", title, contact_sheet_svg(maps, title));
}

std::string draw_lengths(const PageInput& input, const PublishedColumn& column) {
  Chart chart{
      .title = text("forward, ms, head width ", column.head_dim, column.causal ? ", masked" : ", unmasked"),
      .x_label = "length",
      .logarithmic_x = true};
  for (const PlannedCell* planned : input.in_column(column)) {
    for (Series& curve : time_curves(*planned, input.options)) {
      const bool is_drawn = std::ranges::count(chart.series, curve.name, &Series::name) > 0;  // softmax
      if (!is_drawn) chart.series.push_back(std::move(curve));
    }
  }
  if (chart.series.empty()) return "";
  return input.put_picture(column.name, ".svg", chart.title, chart_svg(chart, /*logarithmic=*/true));
}

}  // namespace heed
