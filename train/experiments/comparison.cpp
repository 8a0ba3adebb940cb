// Reads runs and averages over their seeds.
#include "heed/train/experiments/comparison.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/report/chart.h"
#include "heed/train/run/csv.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/run_folder.h"

namespace heed {
namespace {

Json object_in(const Path& run, const char* name, const std::string& missing) {
  const Path path = run / name;
  if (!io::exists(path)) fail(Fault::file, path.string(), " is not there: ", missing);
  return parse_json(io::read(path), path.string());
}

double mean(const std::vector<const ComparedRun*>& runs, double ComparedRun::*what) {
  double sum = 0;
  for (const ComparedRun* run : runs) sum += run->*what;
  return sum / static_cast<double>(runs.size());
}

/// The mean over those runs where it is known; 0: none.
double mean_known(std::vector<const ComparedRun*> runs, double ComparedRun::*what) {
  std::erase_if(runs, [&](const ComparedRun* run) { return !(run->*what > 0); });
  return runs.empty() ? 0 : mean(runs, what);
}

using picture::fixed;

std::string significant(double value) { return formatted("%.4g", value); }

/// "text 1f2e3d4c, test text 9b8a7f6e" from the hashes in a manifest (Task::metadata).
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

/// The settings that the manifest names as changed in the preset.
void take_changed(ReportSettings& out, const Json& manifest) {
  const Json* settings = manifest.find("settings");
  const Json* preset = settings == nullptr ? nullptr : settings->find("preset");
  const Json* changed = settings == nullptr ? nullptr : settings->find("changed");
  if (preset == nullptr || changed == nullptr) return;
  out.from = "preset " + preset->text();
  for (const JsonMember& one : changed->members())
    out.changed.push_back({one.key, one.value.at("value").text(), one.value.at("preset").text()});
}

void take_manifest(ComparedRun& out, const Json& manifest) {
  take_changed(out.settings, manifest);
  out.seed = manifest.at("seed").integer();
  const Json* baselines = manifest.find("baselines");
  if (baselines == nullptr) baselines = manifest.find("anchors");  // their name in run format 2
  if (baselines != nullptr && baselines->is_text()) out.baselines = baselines->text();
  out.data = data_of(manifest);
  out.parameters = manifest.at("parameters").real();
  out.flops = manifest.at("estimate").at("flops_a_step").real();
  const Json* took = manifest.find("took");
  if (took == nullptr) return;  // killed before it was written
  for (const Json& session : sessions_of(manifest)) {
    if (session.find("took") != nullptr) out.measured_on = speed_traits(session);  // the last one counts
  }
  out.memory = took->at("memory_bytes").real();
  if (const Json* steps = took->find("steps"); steps != nullptr && took->at("seconds_of_steps").real() > 0)
    out.steps_per_second = steps->real() / took->at("seconds_of_steps").real();
}

/// Adds the file's name to errors of `read`.
template <class Read>
void in_file(const Path& path, const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    throw Error(error.fault(), text(path, ": ", error.what()));
  }
}

/// The texts of a field in order of first appearance, each with the labels of its runs.
std::vector<std::pair<std::string, std::string>> labels_by(const Comparison& comparison,
                                                           std::string ComparedRun::*what) {
  std::vector<std::pair<std::string, std::vector<std::string>>> found;
  for (const ComparedRun& run : comparison.runs) {
    if (!run.failure.empty()) continue;
    auto at =
        std::find_if(found.begin(), found.end(), [&](const auto& one) { return one.first == run.*what; });
    if (at == found.end()) at = found.insert(at, {run.*what, {}});
    std::vector<std::string>& labels = at->second;
    if (std::find(labels.begin(), labels.end(), run.label) == labels.end()) labels.push_back(run.label);
  }
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [words, labels] : found) out.emplace_back(words, picture::joined(labels));
  return out;
}

/// Sets each run's differences of machine and program to the first run with a known speed.
void compare_machines(std::vector<ComparedRun>& runs) {
  const auto first =
      std::find_if(runs.begin(), runs.end(), [](const ComparedRun& run) { return run.steps_per_second > 0; });
  for (ComparedRun& run : runs) {
    if (!(run.steps_per_second > 0)) continue;
    run.otherwise = picture::joined(differences(first->measured_on, run.measured_on), "; ");
  }
}

}  // namespace

double ComparedRun::score(const std::string& name) const {
  for (const auto& [key, value] : scores) {
    if (key == name) return value;
  }
  return NAN;
}

const MetricSeries* ComparedRun::metric(const std::string& name) const {
  const auto found =
      std::find_if(metrics.begin(), metrics.end(), [&](const MetricSeries& one) { return one.name == name; });
  return found == metrics.end() ? nullptr : &*found;
}

ComparedRun read_compared(const Path& run, const std::string& label) {
  const Json scores = object_in(
      run, "scores.json", text("the run has not been scored; finish it with ", program_name(), " resume."));
  const std::optional<Json> manifest = RunFolder::elsewhere(run).read_manifest();
  if (!manifest) fail(Fault::file, run / "manifest.json", " is not there: this is not the folder of a run.");
  ComparedRun out{.label = label, .folder = run.string(), .failure = ""};
  in_file(run / "scores.json", [&] {
    out.step = scores.at("step").integer();
    if (const Json* of = scores.find("of"); of != nullptr) out.steps = of->integer();
    if (const Json* examples = scores.find("examples"); examples != nullptr)
      out.examples = examples->integer();
    for (const auto& [name, value] : scores.members()) {
      const bool count = name == "step" || name == "of" || name == "examples";
      if (!count && value.is_number()) out.scores.emplace_back(name, value.real());
    }
    const Json* known = scores.find("baselines");
    if (known != nullptr) known = known->find("accuracy");
    if (known == nullptr) return;
    for (const auto& [name, value] : known->members())
      out.accuracy_baselines.emplace_back(name, value.real());
  });
  in_file(run / "manifest.json", [&] { take_manifest(out, *manifest); });
  out.metrics = read_metrics(run / "metrics.jsonl");
  if (io::exists(run / "config.toml")) out.settings.all = io::read(run / "config.toml");
  if (const MetricSeries* seconds = out.metric("seconds"))
    out.seconds = seconds->values.empty() ? 0 : seconds->values.back();
  return out;
}

Spread spread_of(const std::vector<double>& values) {
  Spread out{.count = static_cast<int64_t>(values.size())};
  if (values.empty()) return {NAN, 0, 0};
  for (const double value : values) out.mean += value / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - out.mean) * (value - out.mean);
  if (values.size() > 1) out.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return out;
}

std::string to_string(const Spread& spread) {
  if (spread.count == 0) return "";
  if (spread.count == 1 || !(spread.deviation > 0)) return significant(spread.mean);
  // Two digits of the deviation decide the digits of the mean.
  const int decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(spread.deviation))), 0, 9);
  return fixed(spread.mean, decimals) + " \u00b1 " + fixed(spread.deviation, decimals);
}

Comparison compare_runs(const std::string& title, std::vector<ComparedRun> runs) {
  compare_machines(runs);
  Comparison out{.title = title, .score = "", .runs = std::move(runs)};
  const auto first = std::find_if(out.runs.begin(), out.runs.end(),
                                  [](const ComparedRun& run) { return !run.scores.empty(); });
  if (first != out.runs.end()) {
    out.score = first->scores.front().first;
    for (const char* better : {"bleu", "accuracy"}) {
      if (!std::isnan(first->score(better))) out.score = better;
    }
    out.higher_is_better = out.score == "accuracy" || out.score == "bleu";
  }
  for (const ComparedRun& run : out.runs) {
    const bool known = std::any_of(out.rows.begin(), out.rows.end(),
                                   [&](const ComparedRow& row) { return row.label == run.label; });
    if (known) continue;
    ComparedRow row{.label = run.label, .failure = "", .score = {}};
    std::vector<const ComparedRun*> present;
    std::vector<double> scores;
    for (const ComparedRun& other : out.runs) {
      if (other.label != run.label) continue;
      if (!other.failure.empty()) {
        row.failure = other.failure;
        continue;
      }
      present.push_back(&other);
      scores.push_back(other.score(out.score));
      if (row.otherwise.empty()) row.otherwise = other.otherwise;
    }
    row.score = spread_of(scores);
    if (!present.empty()) {
      row.parameters = mean(present, &ComparedRun::parameters);
      row.flops = mean(present, &ComparedRun::flops);
      row.steps_per_second = mean_known(present, &ComparedRun::steps_per_second);
      row.memory = mean_known(present, &ComparedRun::memory);
      row.seconds = mean(present, &ComparedRun::seconds);
    }
    out.rows.push_back(row);
  }
  return out;
}

int exit_code(const Comparison& comparison) {
  for (const ComparedRun& run : comparison.runs) {
    if (!run.failure.empty()) return run.code;
  }
  return 0;
}

std::vector<std::string> comparison_notes(const Comparison& comparison) {
  std::vector<std::string> out;
  const auto baselines = labels_by(comparison, &ComparedRun::baselines);
  for (const auto& [words, labels] : baselines) {
    if (!words.empty())
      out.push_back(text("baselines", baselines.size() > 1 ? " of " + labels : "", ": ", words));
  }
  const auto data = labels_by(comparison, &ComparedRun::data);
  if (data.size() > 1) {
    out.emplace_back("not all runs had the same data, so their scores do not say which is better:");
    for (const auto& [words, labels] : data)
      out.push_back(text("data of ", labels, ": ", words.empty() ? "none that the manifest names" : words));
  }
  for (const auto& [words, labels] : labels_by(comparison, &ComparedRun::otherwise)) {
    if (!words.empty())
      out.push_back(text("* steps/s, memory and seconds of ", labels,
                         " were not measured as those of the first run were: ", words));
  }
  return out;
}

std::string_view speed_mark(const ComparedRow& row) { return row.otherwise.empty() ? "" : "*"; }

std::string comparison_text(const Comparison& comparison) {
  std::vector<TableRow> rows{{"", score_name(comparison.score), "steps/s", "peak MB", "parameters",
                              "GFLOP/step", "seconds", "failed"}};
  bool has_failures = false;
  for (const ComparedRow& row : comparison.rows) {
    has_failures = has_failures || !row.failure.empty();
    rows.push_back({terminal_word(row.label)});
    if (row.score.count > 0) {
      rows.back().insert(
          rows.back().end(),
          {to_string(row.score),
           row.steps_per_second > 0 ? text(significant(row.steps_per_second), speed_mark(row)) : "-",
           row.memory > 0 ? fixed(row.memory / 1e6, 0) : "-", fixed(row.parameters, 0),
           significant(row.flops * 1e-9), fixed(row.seconds, 1)});
    }
    if (!row.failure.empty()) rows.back().push_back(row.failure);
  }
  if (!has_failures) rows[0].pop_back();
  std::string out = aligned_table(rows, {.alignment = "lrrrrrrl"});
  for (const std::string& line : comparison_notes(comparison)) out += line + "\n";
  return out;
}

std::string comparison_csv(const Comparison& comparison) {
  std::vector<std::string> names;
  bool has_baselines = false;
  for (const ComparedRun& run : comparison.runs) {
    has_baselines = has_baselines || !run.baselines.empty();
    for (const auto& [name, value] : run.scores) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::string out = "label,seed";
  for (const std::string& name : names) out += "," + csv_name(name);
  if (has_baselines) out += ",baselines";
  out +=
      ",steps_per_second,peak_bytes,parameters,flops_a_step,seconds,run,failure,measured_on,"
      "differs_from_first\n";
  for (const ComparedRun& run : comparison.runs) {
    out += text(csv_text(run.label), ",", run.seed);
    for (const std::string& name : names) {
      const double value = run.score(name);
      out += std::isfinite(value) ? text(",", value) : std::string(",");
    }
    if (has_baselines) out += "," + csv_text(run.baselines);
    if (run.failure.empty()) {
      out += text(",", run.steps_per_second > 0 ? text(run.steps_per_second) : "", ",",
                  run.memory > 0 ? text(static_cast<int64_t>(run.memory)) : "", ",",
                  static_cast<int64_t>(run.parameters), ",", run.flops, ",", run.seconds, ",",
                  csv_text(run.folder), ",,", csv_text(to_string(run.measured_on)), ",",
                  csv_text(run.otherwise), "\n");
    } else {
      out += text(",,,,,,,", csv_text(run.failure), ",,\n");
    }
  }
  return out;
}

double seconds_at(const MetricSeries& seconds, int64_t step) {
  if (seconds.values.empty()) return NAN;
  const auto next = std::lower_bound(seconds.steps.begin(), seconds.steps.end(), step);
  if (next == seconds.steps.end()) return seconds.values.back();
  const auto i = static_cast<size_t>(next - seconds.steps.begin());
  const double step_before = i == 0 ? 0 : static_cast<double>(seconds.steps[i - 1]);
  const double before = i == 0 ? 0 : seconds.values[i - 1];
  const double share = (static_cast<double>(step) - step_before) / (static_cast<double>(*next) - step_before);
  return before + share * (seconds.values[i] - before);
}

Chart comparison_chart(const Comparison& comparison, const std::string& metric, bool against_seconds) {
  Chart chart{.title = (metric == "loss" ? "training loss" : score_name(metric)) +
                       (against_seconds ? " over seconds of training" : " over steps")};
  chart.max_y = max_score(metric);
  chart.last_values = true;
  if (against_seconds) chart.x_label = "seconds";
  for (const ComparedRow& row : comparison.rows) {
    std::vector<const ComparedRun*> runs;
    for (const ComparedRun& run : comparison.runs) {
      if (run.label == row.label && run.metric(metric) != nullptr) runs.push_back(&run);
    }
    Series line{.name = row.label};
    if (runs.empty()) continue;
    const MetricSeries& first = *runs[0]->metric(metric);
    for (const int64_t step : first.steps) {
      double value = 0, seconds = 0;
      bool all = true;
      for (const ComparedRun* run : runs) {
        const MetricSeries& one = *run->metric(metric);
        const auto at = std::lower_bound(one.steps.begin(), one.steps.end(), step);
        const MetricSeries* clock = run->metric("seconds");
        all = all && at != one.steps.end() && *at == step && (!against_seconds || clock != nullptr);
        if (!all) break;
        value += one.values[static_cast<size_t>(at - one.steps.begin())];
        if (against_seconds) seconds += seconds_at(*clock, step);
      }
      if (!all) continue;
      const auto count = static_cast<double>(runs.size());
      line.x.push_back(against_seconds ? seconds / count : static_cast<double>(step));
      line.y.push_back(value / count);
    }
    chart.series.push_back(std::move(line));
  }
  return chart;
}

}  // namespace heed
