// Reads kept maps and writes them into a page: weights as base64 of f32, everything else as JSON.
#include "heed/train/report/training_page.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "heed/attention/inspect/map_page.h"
#include "heed/attention/inspect/page_assets.h"
#include "heed/attention/inspect/page_floats.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/embedded_files.h"
#include "heed/train/run/metrics_log.h"

namespace heed {
namespace {

using picture::json;

/// Lists of tokens, each once.
class TokenLists {
 public:
  size_t index(const std::vector<std::string>& tokens) {
    const auto [at, is_new] = known_.try_emplace(tokens, known_.size());
    if (is_new) lists_.push_back(&at->first);
    return at->second;
  }
  std::string as_json() const {
    std::string out;
    for (const auto* list : lists_) {
      std::string words;
      for (const std::string& word : *list)
        words += text(words.empty() ? "" : ",", json(picture::visible(word)));
      out += text(out.empty() ? "" : ",", "[", words, "]");
    }
    return "[" + out + "]";
  }

 private:
  std::map<std::vector<std::string>, size_t> known_;
  std::vector<const std::vector<std::string>*> lists_;
};

std::string head_json(const HeadSnapshot& head) {
  std::string out;
  for (const double value : {head.entropy, head.uniform_entropy, head.confidence, head.diagonal,
                             head.previous, head.next, head.induction})
    out += text(out.empty() ? "" : ",", json(value));
  return "[" + out + "]";
}

std::string frame_json(const MapSnapshot& frame, TokenLists& tokens) {
  std::string maps;
  std::vector<float> weights;
  for (size_t i = 0; i < frame.maps.size(); ++i) {
    const MapView& map = frame.maps[i];
    std::string heads;
    for (const HeadSnapshot& head : frame.heads[i]) heads += text(heads.empty() ? "" : ",", head_json(head));
    maps += text(maps.empty() ? "" : ",", "{\"rows\":", tokens.index(map.query_tokens),
                 ",\"columns\":", tokens.index(map.key_tokens), ",\"heads\":[", heads, "]}");
    weights.insert(weights.end(), map.weights.begin(), map.weights.end());
  }
  return text("{\"step\":", frame.step, ",\"caption\":", json(frame.caption), ",\"maps\":[", maps,
              "],\"weights\":\"", picture::base64_floats(weights), "\"}");
}

std::string curve_json(const Series& series) {
  constexpr size_t most = 1200;  // points: more than pixels
  const size_t stride = series.x.size() / most + 1;
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
  TokenLists tokens;
  std::string frames, loss, maps;
  for (const MapSnapshot& frame : training.frames)
    frames += text(frames.empty() ? "" : ",\n", frame_json(frame, tokens));
  for (const Series& one : training.loss) loss += text(loss.empty() ? "" : ",", curve_json(one));
  for (const MapView& map : last.maps)
    maps += text(maps.empty() ? "" : ",", "{\"name\":", json(map.name), ",\"kind\":", json(map.kind),
                 ",\"layer\":", map.layer, ",\"heads\":", map.heads, "}");
  const HeadChoice chosen = first_head(last.maps);
  const std::string body = text(
      "<section class=\"training\" aria-label=\"Attention maps through training\">\n<noscript>The maps are "
      "drawn by a script inside this page; please allow it to run.</noscript>\n<script "
      "type=\"application/json\">{\"first\":{\"map\":",
      chosen.map, ",\"head\":", chosen.head, "},\"maps\":[", maps, "],\"lossOf\":[", loss, "],\"frames\":[",
      frames, "],\"tokens\":", tokens.as_json(), "}</script>\n</section>\n");
  return picture::page(training.title + ": heads through training",
                       text(training.frames.size(), " steps, ", training.frames.front().step, " to ",
                            last.step, ", of one input"),
                       body,
                       {picture::script_tools(), embedded_file("attention/inspect/page_grid.js"),
                        embedded_file("train/report/page_training.js")},
                       embedded_file("train/report/page_training.css"));
}

}  // namespace heed
