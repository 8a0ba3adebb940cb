// Reads runs and averages over their seeds.
#include "heed/train/experiments/comparison.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"
#include "heed/train/experiments/run_curve.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/report/chart.h"
#include "heed/train/run/csv.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/run_folder.h"

namespace heed {
namespace {

double mean(const std::vector<const ComparedRun*>& runs, double ComparedRun::*quantity) {
  double sum = 0;
  for (const ComparedRun* run : runs) sum += run->*quantity;
  return sum / static_cast<double>(runs.size());
}

/// The mean over the runs with a known quantity (above 0); 0: none.
double mean_known(std::vector<const ComparedRun*> runs, double ComparedRun::*quantity) {
  std::erase_if(runs, [&](const ComparedRun* run) { return !(run->*quantity > 0); });
  return runs.empty() ? 0 : mean(runs, quantity);
}

using picture::fixed;

/// A number with four significant digits.
std::string significant(double value) { return formatted("%.4g", value); }

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

/// Takes seed, baselines, data, model size, machine, memory and speed from a manifest.
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
  if (took == nullptr) return;  // the process was killed before it wrote "took"
  for (const Json& session : sessions_of(manifest)) {
    if (session.find("took") != nullptr) out.measured_on = speed_traits(session);  // the last one counts
  }
  out.memory = took->at("memory_bytes").real();
  if (const Json* steps = took->find("steps"); steps != nullptr && took->at("seconds_of_steps").real() > 0)
    out.steps_per_second = steps->real() / took->at("seconds_of_steps").real();
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

/// The different texts of a field in order of first appearance, each with the labels of its runs.
std::vector<std::pair<std::string, std::string>> labels_by(const Comparison& comparison,
                                                           std::string ComparedRun::*field) {
  std::vector<std::pair<std::string, std::vector<std::string>>> labels_by_text;
  for (const ComparedRun& run : comparison.runs) {
    if (!run.failure.empty()) continue;
    auto found =
        std::ranges::find_if(labels_by_text, [&](const auto& item) { return item.first == run.*field; });
    if (found == labels_by_text.end()) found = labels_by_text.insert(found, {run.*field, {}});
    if (std::ranges::count(found->second, run.label) == 0) found->second.push_back(run.label);
  }
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [words, labels] : labels_by_text) out.emplace_back(words, picture::joined(labels));
  return out;
}

/// Sets the machine_difference of each run with a known speed: to the first such run.
void compare_machines(std::vector<ComparedRun>& runs) {
  const auto first =
      std::ranges::find_if(runs, [](const ComparedRun& run) { return run.steps_per_second > 0; });
  for (ComparedRun& run : runs) {
    if (!(run.steps_per_second > 0)) continue;
    run.machine_difference = picture::joined(differences(first->measured_on, run.measured_on), "; ");
  }
}

/// The row of a label: failure and means of its runs.
ComparedRow row_of(const Comparison& comparison, const std::string& label) {
  ComparedRow row{.label = label, .failure = "", .score = {}};
  std::vector<const ComparedRun*> finished;
  std::vector<double> scores;
  for (const ComparedRun& run : comparison.runs) {
    if (run.label != label) continue;
    if (!run.failure.empty()) {
      row.failure = run.failure;
      continue;
    }
    finished.push_back(&run);
    scores.push_back(run.score(comparison.score));
    if (row.machine_difference.empty()) row.machine_difference = run.machine_difference;
  }
  row.score = spread_of(scores);
  if (finished.empty()) return row;
  row.parameters = mean(finished, &ComparedRun::parameters);
  row.flops = mean(finished, &ComparedRun::flops);
  row.steps_per_second = mean_known(finished, &ComparedRun::steps_per_second);
  row.memory = mean_known(finished, &ComparedRun::memory);
  row.seconds = mean(finished, &ComparedRun::seconds);
  return row;
}

/// The mean of a metric over runs at the steps that all have, over steps or over their mean seconds.
Series mean_series(const std::vector<const ComparedRun*>& runs, const std::string& metric,
                   bool against_seconds) {
  Series series{.name = runs.front()->label};
  const auto count = static_cast<double>(runs.size());
  for (const int64_t step : runs.front()->metric(metric)->steps) {
    double values = 0, seconds = 0;
    const bool all_have_it = std::ranges::all_of(runs, [&](const ComparedRun* run) {
      const MetricSeries& logged = *run->metric(metric);
      const MetricSeries* clock = run->metric("seconds");
      const auto place = std::ranges::lower_bound(logged.steps, step);
      if (place == logged.steps.end() || *place != step || (against_seconds && clock == nullptr))
        return false;
      values += logged.values[static_cast<size_t>(place - logged.steps.begin())];
      if (against_seconds) seconds += seconds_at(*clock, step);
      return true;
    });
    if (!all_have_it) continue;
    series.x.push_back(against_seconds ? seconds / count : static_cast<double>(step));
    series.y.push_back(values / count);
  }
  return series;
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
  if (const MetricSeries* seconds = out.metric("seconds"))
    out.seconds = seconds->values.empty() ? 0 : seconds->values.back();
  return out;
}

Spread spread_of(const std::vector<double>& values) {
  Spread spread{.count = static_cast<int64_t>(values.size())};
  if (values.empty()) return {.mean = NAN};
  for (const double value : values) spread.mean += value / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) spread.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return spread;
}

std::string to_string(const Spread& spread) {
  if (spread.count == 0) return "";
  if (spread.count == 1 || !(spread.deviation > 0)) return significant(spread.mean);
  // The deviation has two digits, and the mean as many decimals.
  const int decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(spread.deviation))), 0, 9);
  return fixed(spread.mean, decimals) + " \u00b1 " + fixed(spread.deviation, decimals);
}

Comparison compare_runs(const std::string& title, std::vector<ComparedRun> runs) {
  compare_machines(runs);
  Comparison out{.title = title, .score = "", .runs = std::move(runs)};
  const auto scored =
      std::ranges::find_if(out.runs, [](const ComparedRun& run) { return !run.scores.empty(); });
  if (scored != out.runs.end()) {
    out.score = scored->scores.front().first;
    for (const char* preferred : {"bleu", "accuracy"}) {
      if (!std::isnan(scored->score(preferred))) out.score = preferred;
    }
    out.higher_is_better = higher_is_better(out.score);
  }
  for (const ComparedRun& run : out.runs) {
    if (std::ranges::count(out.rows, run.label, &ComparedRow::label) == 0)
      out.rows.push_back(row_of(out, run.label));
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
  for (const auto& [words, labels] : labels_by(comparison, &ComparedRun::machine_difference)) {
    if (!words.empty())
      out.push_back(text("* steps/s, memory and seconds of ", labels,
                         " were not measured as those of the first run were: ", words));
  }
  return out;
}

std::string_view speed_mark(const ComparedRow& row) { return row.machine_difference.empty() ? "" : "*"; }

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
      if (std::ranges::count(names, name) == 0) names.push_back(name);
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
                  csv_text(run.machine_difference), "\n");
    } else {
      out += text(",,,,,,,", csv_text(run.failure), ",,\n");
    }
  }
  return out;
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
    if (!runs.empty()) chart.series.push_back(mean_series(runs, metric, against_seconds));
  }
  return chart;
}

}  // namespace heed
