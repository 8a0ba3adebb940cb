// Reads kept maps and writes them into a page: weights as base64 of f32, everything else as JSON.
#include "heed/train/report/training_page.h"

#include <algorithm>

#include "heed/attention/inspect/html_page.h"
#include "heed/attention/inspect/page_data.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/embedded_files.h"
#include "heed/train/run/metrics_log.h"

namespace heed {
namespace {

using picture::joined;
using picture::json;

std::string head_json(const HeadSnapshot& head) {
  const std::vector<double> numbers{head.entropy,  head.uniform_entropy, head.confidence,
                                    head.diagonal, head.previous,        head.next,
                                    head.induction};
  return "[" + joined(numbers, ",", [](double value) { return json(value); }) + "]";
}

std::string frame_json(const MapSnapshot& frame, picture::TokenLists& tokens) {
  std::string maps;
  std::vector<float> weights;
  for (size_t i = 0; i < frame.maps.size(); ++i) {
    const MapView& map = frame.maps[i];
    maps += text(maps.empty() ? "" : ",", "{\"rows\":", tokens.index(map.query_tokens),
                 ",\"columns\":", tokens.index(map.key_tokens), ",\"heads\":[",
                 joined(frame.heads[i], ",", head_json), "]}");
    weights.insert(weights.end(), map.weights.begin(), map.weights.end());
  }
  return text("{\"step\":", frame.step, ",\"caption\":", json(frame.caption), ",\"maps\":[", maps,
              "],\"weights\":\"", picture::base64_floats(weights), "\"}");
}

std::string curve_json(const Series& series) {
  constexpr size_t max_curve_points = 1200;  // more than pixels
  const size_t stride = series.x.size() / max_curve_points + 1;
  std::string x, y;
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (i % stride != 0 && i + 1 != series.x.size()) continue;
    x += text(x.empty() ? "" : ",", json(series.x[i]));
    y += text(y.empty() ? "" : ",", json(series.y[i]));
  }
  return text("{\"name\":", json(series.name), ",\"x\":[", x, "],\"y\":[", y, "]}");
}

}  // namespace

void check(const TrainingMaps& training) {
  if (training.frames.empty()) fail(Fault::data, "maps through training: there is no step.");
  const MapSnapshot& first = training.frames.front();
  for (const MapSnapshot& frame : training.frames) {
    const bool same = std::equal(frame.maps.begin(), frame.maps.end(), first.maps.begin(), first.maps.end(),
                                 [](const MapView& a, const MapView& b) {
                                   return a.kind == b.kind && a.layer == b.layer && a.heads == b.heads;
                                 });
    if (!same || frame.maps.empty() || frame.heads.size() != frame.maps.size())
      fail(Fault::data, "maps through training: step ", frame.step, " has other maps than step ", first.step,
           ": they are not of one model.");
  }
}

TrainingMaps read_training_maps(const Path& run) {
  TrainingMaps out{.title = run.filename().string()};
  const std::vector<int64_t> steps = list_map_snapshots(run);
  if (steps.empty()) {
    fail(run,
         " kept no maps on the way: train.maps_every is 0 there. Train it with --maps-every N (and "
         "--maps-of TEXT), such as --maps-every 50.");
  }
  for (const int64_t step : steps) out.frames.push_back(read_map_snapshot(run, step));
  for (const MetricSeries& one : read_metrics(run / "metrics.jsonl")) {
    if (one.name != "loss" && one.name != "valid_loss") continue;
    out.loss.push_back({.name = one.name == "loss" ? "training loss" : "validation loss",
                        .x = {one.steps.begin(), one.steps.end()},
                        .y = one.values});
  }
  check(out);
  return out;
}

std::string training_page(const TrainingMaps& training) {
  check(training);
  const MapSnapshot& last = training.frames.back();
  picture::TokenLists tokens;
  const std::string frames =
      joined(training.frames, ",\n", [&](const MapSnapshot& frame) { return frame_json(frame, tokens); });
  const std::string maps = joined(last.maps, ",", [](const MapView& map) {
    return text("{\"name\":", json(map.name), ",\"kind\":", json(map.kind), ",\"layer\":", map.layer,
                ",\"heads\":", map.heads, "}");
  });
  const HeadChoice chosen = first_head(last.maps);
  const std::string data = text("{\"first\":{\"map\":", chosen.map, ",\"head\":", chosen.head, "},\"maps\":[",
                                maps, "],\"lossOf\":[", joined(training.loss, ",", curve_json),
                                "],\"frames\":[", frames, "],\"tokens\":", tokens.as_json(), "}");
  return picture::page(
      training.title + ": heads through training",
      text(training.frames.size(), " steps, ", training.frames.front().step, " to ", last.step,
           ", of one input"),
      picture::script_section("training", "Attention maps through training", "The maps are drawn", data),
      {picture::tools_script, picture::grid_script, "train/report/page_training.js"},
      embedded_file("train/report/page_training.css"));
}

}  // namespace heed
