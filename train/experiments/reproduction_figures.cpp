// Pictures of a table: accuracy over speed, attention maps side by side, time over length.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/map_svg.h"
#include "heed/core/io/files.h"
#include "heed/core/io/npy.h"
#include "heed/data/formats/csv.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/experiments/subprocess.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/report/bubble_chart.h"

namespace heed {
namespace {

/// Means over the runs of a cell that have ended with scores.
struct RunMeans {
  double accuracy = 0, speed = 0, memory = 0;  // percent, steps a second, MB
  double count = 0;
};

RunMeans means_of(const Work& work, const EndedRuns& ended) {
  RunMeans out;
  for (const PlannedRun& plan : work.plans) {
    const auto found = ended.find(plan.name);
    if (found == ended.end() || !found->second.failure.empty()) continue;
    const ComparedRun& run = found->second;
    for (const auto& [name, value] : run.scores) {
      if (name != "accuracy" || !(run.steps_per_second > 0) || !(run.memory > 0)) continue;
      out.accuracy += 100 * value;
      out.speed += run.steps_per_second;
      out.memory += run.memory / 1e6;
      out.count += 1;
    }
  }
  if (out.count > 0) {
    out.accuracy /= out.count;
    out.speed /= out.count;
    out.memory /= out.count;
  }
  return out;
}

BubbleChart empty_chart(const std::string& title) {
  return {.title = title,
          .x_label = "steps a second",
          .y_label = "accuracy, percent",
          .area_label = "peak memory in MB",
          .bubbles = {},
          .y_most = 100};
}

Path maps_folder(const PlannedRun& plan, const ReproductionOptions& options) {
  return options.place.folder / "maps" / plan.name;
}

/// Writes the maps of a run, by `heed inspect`, where they are not there yet. Gives why they cannot be had,
/// else nothing. Throws Stopped on a signal.
std::string inspect_once(const PlannedRun& plan, const ReproductionOptions& options) {
  const Path folder = maps_folder(plan, options);
  if (io::exists(folder / "maps.safetensors")) return "";
  std::vector<std::string> arguments{"inspect", folder_of(plan, options.place.folder).string(), "--out",
                                     folder.string()};
  arguments.insert(arguments.end(), options.place.machine.begin(), options.place.machine.end());
  const ChildEnd end = run_child(arguments, [] {});
  if (end.asked && end.code != 0) throw Stopped{StopSignals::received()};
  return end.code == 0 ? "" : reason(end);
}

/// The maps of the first block that `heed inspect` has written into a folder.
std::vector<MapView> maps_in(const Path& folder, const std::string& name) {
  std::vector<MapView> out;
  for (const Path& file : io::list(folder)) {
    const std::string word = file.filename().string();
    if (!word.ends_with("-0.npy")) continue;
    const Array array = read_npy(folder / file.filename());
    if (array.shape.size() != 3) continue;
    MapView map{.name = word, .kind = name, .layer = 0};
    map.heads = array.shape[0];
    map.queries = array.shape[1];
    map.keys = array.shape[2];
    map.weights = array.values<float>();
    map.query_tokens.assign(static_cast<size_t>(map.queries), "");
    map.key_tokens.assign(static_cast<size_t>(map.keys), "");
    out.push_back(std::move(map));
  }
  return out;
}

}  // namespace

std::string draw_bubbles(const PublishedTable& table, const ReproductionOptions& options,
                         const std::vector<Work>& all, const EndedRuns& ended) {
  std::string out;
  const auto draw = [&](const std::string& name, const BubbleChart& chart) {
    if (!chart.bubbles.empty())
      out += put_picture(options, text(table.name, "-", file_word(name), "-bubbles.svg"), chart.title,
                         bubbles_svg(chart));
  };
  std::map<std::string, RunMeans> sums;  // by row
  for (const PublishedColumn& column : table.columns) {
    BubbleChart chart = empty_chart(column.name + ": speed against accuracy");
    for (const Work& work : all) {
      if (work.column != &column) continue;
      const RunMeans one = means_of(work, ended);
      if (!(one.count > 0)) continue;
      chart.bubbles.push_back({work.row->name, one.speed, one.accuracy, one.memory});
      RunMeans& sum = sums[work.row->name];
      sum.accuracy += one.accuracy;
      sum.speed += one.speed;
      sum.memory += one.memory;
      sum.count += 1;
    }
    draw(column.name, chart);
  }
  BubbleChart average = empty_chart("means over all tasks: speed against accuracy");
  for (const PublishedRow& row : table.rows) {
    const auto found = sums.find(row.name);
    const auto count = static_cast<double>(table.columns.size());
    if (found == sums.end() || found->second.count < count) continue;
    const RunMeans& sum = found->second;
    average.bubbles.push_back({row.name, sum.speed / count, sum.accuracy / count, sum.memory / count});
  }
  draw("average", average);
  return out;
}

std::string draw_maps(const PublishedTable& table, const ReproductionOptions& options,
                      const std::vector<Work>& all) {
  std::string out;
  for (const PublishedColumn& column : table.columns) {
    std::vector<MapView> maps;
    for (const Work& work : all) {
      if (work.column != &column || work.plans.empty()) continue;
      const PlannedRun& plan = work.plans.front();
      if (!is_trained(plan, options.place.folder)) continue;
      const std::string failure = inspect_once(plan, options);
      if (!failure.empty()) {
        out += wrapped(text("No maps of ", markdown_escaped(work.cell.name + ": " + failure)), "");
        continue;
      }
      for (MapView& map : maps_in(maps_folder(plan, options), work.row->name)) maps.push_back(std::move(map));
    }
    if (maps.empty()) continue;
    const std::string title = column.name + ": first block, a row for each model";
    out += put_picture(options, text(table.name, "-", file_word(column.name), "-maps.svg"), title,
                       contact_sheet_svg(maps, title));
  }
  return out;
}

std::string draw_lengths(const PublishedTable& table, const ReproductionOptions& options,
                         const std::vector<Work>& all) {
  std::string out;
  for (const PublishedColumn& column : table.columns) {
    Chart chart{
        .title = text("forward, ms, head width ", column.head_dim, column.causal ? ", masked" : ", unmasked"),
        .x_label = "length",
        .logarithmic_x = true};
    for (const Work& work : all) {
      const Path file = lengths_folder(work, options) / "attention.csv";
      if (work.column != &column || !io::exists(file)) continue;
      std::map<std::string, Series> lines;  // of softmax and of the row
      const CsvTable measured = CsvTable(io::read(file), file.string());
      for (int64_t i = 0; i < measured.rows(); ++i) {
        if (measured.number(i, "causal") != (column.causal ? 1 : 0)) continue;
        Series& line = lines[measured.cell(i, "attention")];
        line.x.push_back(measured.number(i, "length"));
        line.y.push_back(measured.number(i, "forward_ms"));
      }
      for (auto& [spec, line] : lines) {
        const bool is_base = spec == "softmax";
        line.name = is_base ? "softmax" : work.row->name;
        const bool drawn =
            std::any_of(chart.series.begin(), chart.series.end(),
                        [&, &points = line](const Series& one) { return one.name == points.name; });
        if (!drawn) chart.series.push_back(std::move(line));
      }
    }
    if (chart.series.empty()) continue;
    out += put_picture(options, text(table.name, "-", file_word(column.name), ".svg"), chart.title,
                       chart_svg(chart, true));
  }
  return out;
}

}  // namespace heed
