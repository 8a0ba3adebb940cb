// Pictures of a table: accuracy over speed, attention maps side by side, time over length.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/map_svg.h"
#include "heed/core/io/files.h"
#include "heed/data/formats/csv.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/inspect/stored_maps.h"
#include "heed/train/report/bubble_chart.h"

namespace heed {
namespace {

/// Sums over runs, and how many there are.
struct RunSums {
  double accuracy = 0, speed = 0, memory = 0;  // percent, steps a second, MB
  double count = 0;
  void add(double of_accuracy, double of_speed, double of_memory) {
    accuracy += of_accuracy;
    speed += of_speed;
    memory += of_memory;
    count += 1;
  }
  Bubble mean(const std::string& name) const {
    return {name, speed / count, accuracy / count, memory / count};
  }
};

RunSums sums_of_runs(const PageInput& input, const PlannedCell& planned) {
  RunSums out;
  for (const ComparedRun* run : input.finished(planned)) {
    const double accuracy = run->score("accuracy");
    if (!std::isnan(accuracy) && run->steps_per_second > 0 && run->memory > 0)
      out.add(100 * accuracy, run->steps_per_second, run->memory / 1e6);
  }
  return out;
}

BubbleChart empty_chart(const std::string& title) {
  return {.title = title,
          .x_label = "steps a second",
          .y_label = "accuracy, percent",
          .area_label = "peak memory in MB",
          .bubbles = {},
          .max_y = 100};
}

/// The maps of the first block that `heed inspect` writes of a run, which is inspected where it was not yet.
/// They have `row` as their kind, and no tokens.
std::vector<MapView> maps_of_run(const PlannedRun& plan, const ReproductionOptions& options,
                                 const std::string& row) {
  const Path folder = options.runs.folder / "maps" / plan.name;
  if (!io::exists(folder / "maps.safetensors"))
    run_heed({"inspect", folder_of(plan, options.runs.folder).string(), "--out", folder.string()}, options,
             {});
  std::vector<MapView> out;
  for (const Path& file : io::list(folder)) {
    if (!file.filename().string().ends_with("-0.npy")) continue;
    visit_stored_maps(folder / file.filename(), [&](const MapView& map) {
      out.push_back(map);
      out.back().kind = row;
    });
  }
  return out;
}

}  // namespace

std::string draw_bubbles(const PageInput& input) {
  std::string out;
  const auto draw = [&](const std::string& name, const BubbleChart& chart) {
    if (!chart.bubbles.empty())
      out += input.put_picture(name, "-bubbles.svg", chart.title, bubbles_svg(chart));
  };
  std::map<std::string, RunSums> rows;  // sums of the means of all columns, by row
  for (const PublishedColumn& column : input.table.columns) {
    BubbleChart chart = empty_chart(column.name + ": speed against accuracy");
    for (const PlannedCell* planned : input.in_column(column)) {
      const RunSums sums = sums_of_runs(input, *planned);
      if (!(sums.count > 0)) continue;
      const Bubble mean = sums.mean(planned->row->name);
      chart.bubbles.push_back(mean);
      rows[mean.name].add(mean.y, mean.x, mean.area);
    }
    draw(column.name, chart);
  }
  BubbleChart average = empty_chart("means over all tasks: speed against accuracy");
  for (const PublishedRow& row : input.table.rows) {
    const RunSums& sums = rows[row.name];
    if (sums.count >= static_cast<double>(input.table.columns.size()))
      average.bubbles.push_back(sums.mean(row.name));
  }
  draw("average", average);
  return out;
}

std::string draw_maps(const PageInput& input) {
  std::string out;
  for (const PublishedColumn& column : input.table.columns) {
    std::vector<MapView> maps;
    for (const PlannedCell* planned : input.in_column(column)) {
      if (planned->plans.empty() || !is_trained(planned->plans.front(), input.options.runs.folder)) continue;
      try {
        for (MapView& map : maps_of_run(planned->plans.front(), input.options, planned->row->name))
          maps.push_back(std::move(map));
      } catch (const Error& error) {
        out += wrapped(text("No maps of ", markdown_escaped(planned->cell.name + ": " + error.what())), "");
      }
    }
    if (maps.empty()) continue;
    const std::string title = column.name + ": first block, a row for each model";
    out += input.put_picture(column.name, "-maps.svg", title, contact_sheet_svg(maps, title));
  }
  return out;
}

std::string draw_lengths(const PageInput& input) {
  std::string out;
  for (const PublishedColumn& column : input.table.columns) {
    Chart chart{
        .title = text("forward, ms, head width ", column.head_dim, column.causal ? ", masked" : ", unmasked"),
        .x_label = "length",
        .logarithmic_x = true};
    for (const PlannedCell* planned : input.in_column(column)) {
      const Path file = lengths_folder(*planned, input.options) / "attention.csv";
      if (!io::exists(file)) continue;
      std::map<std::string, Series> lines;  // by attention: softmax and that of the row
      const CsvTable measured = CsvTable(io::read(file), file.string());
      for (int64_t i = 0; i < measured.rows(); ++i) {
        if (measured.number(i, "causal") != (column.causal ? 1 : 0)) continue;
        Series& line = lines[measured.cell(i, "attention")];
        line.x.push_back(measured.number(i, "length"));
        line.y.push_back(measured.number(i, "forward_ms"));
      }
      for (auto& [spec, line] : lines) {
        const bool is_base = spec == "softmax";
        line.name = is_base ? "softmax" : planned->row->name;
        const bool drawn =
            std::any_of(chart.series.begin(), chart.series.end(),
                        [&, &points = line](const Series& one) { return one.name == points.name; });
        if (!drawn) chart.series.push_back(std::move(line));
      }
    }
    if (chart.series.empty()) continue;
    out += input.put_picture(column.name, ".svg", chart.title, chart_svg(chart, true));
  }
  return out;
}

}  // namespace heed
