// Reads the scores, costs and curves of a finished run.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/train/experiments/comparison.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/run_folder.h"

namespace heed {
namespace {

/// Names and hashes of the data in a manifest: "text 1f2e3d4c, test text 9b8a7f6e".
std::string data_of(const Json& manifest) {
  constexpr std::string_view mark = "sha256 ";
  std::string out;
  for (const auto& [name, value] : manifest.members()) {
    if (!value.is_text()) continue;
    if (name == "data") picture::append_part(out, value.text(), ", ");
    if (name.starts_with(mark))
      picture::append_part(out, text(name.substr(mark.size()), " ", value.text().substr(0, 8)), ", ");
  }
  return out;
}

/// Takes the changes to the preset from a manifest.
void take_changed(ReportSettings& out, const Json& manifest) {
  const Json* settings = manifest.find("settings");
  const Json* preset = settings == nullptr ? nullptr : settings->find("preset");
  const Json* changed = settings == nullptr ? nullptr : settings->find("changed");
  if (preset == nullptr || changed == nullptr) return;
  out.from = "preset " + preset->text();
  for (const auto& [key, values] : changed->members())
    out.changed.push_back(
        {.key = key, .value = values.at("value").text(), .before = values.at("preset").text()});
}

/// A number of an object; 0 where it has none of this name.
double number_in(const Json& object, const char* name) {
  const Json* value = object.find(name);
  return value != nullptr && value->is_number() ? value->real() : 0;
}

/// A text of an object; empty where it has none of this name.
std::string text_in(const Json& object, const char* name) {
  const Json* value = object.find(name);
  return value != nullptr && value->is_text() ? value->text() : "";
}

/// Takes seed, baselines, data, model size, machine, memory and speed from a manifest.
void take_manifest(ComparedRun& out, const Json& manifest) {
  take_changed(out.settings, manifest);
  out.seed = manifest.at("seed").integer();
  const Json* baselines = manifest.find("baselines");
  if (baselines == nullptr) baselines = manifest.find("anchors");  // their name in run format 2
  if (baselines != nullptr && baselines->is_text()) out.baselines = baselines->text();
  out.commit = text_in(manifest, "commit");
  out.started = text_in(manifest, "started");
  out.data = data_of(manifest);
  out.parameters = manifest.at("parameters").real();
  out.flops = manifest.at("estimate").at("flops_a_step").real();
  const Json* took = manifest.find("took");
  if (took == nullptr) return;  // the process was killed before it wrote "took"
  for (const Json& session : sessions_of(manifest)) {
    if (session.find("took") != nullptr) out.measured_on = speed_traits(session);  // the last one counts
  }
  out.memory = took->at("memory_bytes").real();
  out.seconds = number_in(*took, "seconds_of_steps");
  // What remains of the time beside steps and test.
  out.validation_seconds =
      std::max(0.0, number_in(*took, "seconds") - out.seconds - number_in(*took, "seconds_of_test"));
  if (out.seconds > 0) out.steps_per_second = number_in(*took, "steps") / out.seconds;
}

/// Takes the test scores, baselines and step of the scored checkpoint from a run's scores.json.
void take_scores(ComparedRun& out, const Json& scores) {
  out.step = scores.at("step").integer();
  if (const Json* steps = scores.find("of"); steps != nullptr) out.steps = steps->integer();
  if (const Json* examples = scores.find("examples"); examples != nullptr) out.examples = examples->integer();
  for (const auto& [name, value] : scores.members()) {
    const bool is_count = name == "step" || name == "of" || name == "examples";
    if (!is_count && value.is_number()) out.scores.emplace_back(name, value.real());
  }
  const Json* baselines = scores.find("baselines");
  const Json* of_accuracy = baselines == nullptr ? nullptr : baselines->find("accuracy");
  if (of_accuracy == nullptr) return;
  for (const auto& [name, value] : of_accuracy->members())
    out.accuracy_baselines.emplace_back(name, value.real());
}

/// Calls read(), and puts the file's name in front of its errors.
template <class Read>
void in_file(const Path& path, const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    throw Error(error.fault(), text(path, ": ", error.what()));
  }
}

}  // namespace

double ComparedRun::score(const std::string& name) const {
  for (const auto& [key, value] : scores) {
    if (key == name) return value;
  }
  return NAN;
}

double ComparedRun::validation(const std::string& name) const {
  const MetricSeries* series = metric("valid_" + name);
  if (series == nullptr) return NAN;
  const auto found = std::ranges::find(series->steps, step);
  return found == series->steps.end() ? NAN
                                      : series->values[static_cast<size_t>(found - series->steps.begin())];
}

const MetricSeries* ComparedRun::metric(const std::string& name) const {
  const auto found =
      std::find_if(metrics.begin(), metrics.end(), [&](const MetricSeries& one) { return one.name == name; });
  return found == metrics.end() ? nullptr : &*found;
}

ComparedRun read_compared(const Path& run, const std::string& label) {
  const Path scores_file = run / "scores.json";
  if (!io::exists(scores_file))
    fail(Fault::file, scores_file, " is not there: the run has not been scored; finish it with ",
         program_name(), " resume.");
  const Json scores = parse_json(io::read(scores_file), scores_file.string());
  const std::optional<Json> manifest = RunFolder::elsewhere(run).read_manifest();
  if (!manifest) fail(Fault::file, run / "manifest.json", " is not there: this is not the folder of a run.");
  ComparedRun out{.label = label, .folder = run.string(), .failure = ""};
  in_file(scores_file, [&] { take_scores(out, scores); });
  in_file(run / "manifest.json", [&] { take_manifest(out, *manifest); });
  out.metrics = read_metrics(run / "metrics.jsonl");
  if (io::exists(run / "config.toml")) out.settings.all = io::read(run / "config.toml");
  return out;
}

}  // namespace heed
